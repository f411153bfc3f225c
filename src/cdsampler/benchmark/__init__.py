"""Names of targets and samplers, and the settings that each task is run with."""

from cdsampler.benchmark._catalog import PRESETS as PRESETS
from cdsampler.benchmark._catalog import SAMPLERS as SAMPLERS
from cdsampler.benchmark._catalog import TARGETS as TARGETS
from cdsampler.benchmark._catalog import Preset as Preset
from cdsampler.benchmark._catalog import build_sampler as build_sampler
from cdsampler.benchmark._catalog import build_target as build_target
from cdsampler.benchmark._catalog import tune_sampler as tune_sampler
from cdsampler.benchmark._catalog import with_overrides as with_overrides
from cdsampler.benchmark._dihedrals import backbone_angles as backbone_angles
from cdsampler.benchmark._exact import exact_reference as exact_reference
from cdsampler.benchmark._exact import metric_rows as metric_rows
from cdsampler.benchmark._starts import starting_point as starting_point
