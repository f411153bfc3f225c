"""Names of targets and samplers, and the settings that each task is run with."""

from cdsampler.benchmark._compare import SHORTLIST as SHORTLIST
from cdsampler.benchmark._compare import Comparison as Comparison
from cdsampler.benchmark._compare import Entry as Entry
from cdsampler.benchmark._compare import Pair as Pair
from cdsampler.benchmark._compare import compare as compare
from cdsampler.benchmark._dihedrals import backbone_angles as backbone_angles
from cdsampler.benchmark._exact import exact_reference as exact_reference
from cdsampler.benchmark._exact import metric_rows as metric_rows
from cdsampler.benchmark._presets import PAPER_PRESETS as PAPER_PRESETS
from cdsampler.benchmark._presets import PRESET_KINDS as PRESET_KINDS
from cdsampler.benchmark._presets import PRESETS as PRESETS
from cdsampler.benchmark._presets import Preset as Preset
from cdsampler.benchmark._presets import parse_setting as parse_setting
from cdsampler.benchmark._presets import preset_of as preset_of
from cdsampler.benchmark._presets import with_overrides as with_overrides
from cdsampler.benchmark._protocol import Protocol as Protocol
from cdsampler.benchmark._protocol import prepare as prepare
from cdsampler.benchmark._protocol import prepare_on as prepare_on
from cdsampler.benchmark._protocol import produce as produce
from cdsampler.benchmark._protocol import tune_sampler as tune_sampler
from cdsampler.benchmark._protocol import with_budget_per_sample as with_budget_per_sample
from cdsampler.benchmark._samplers import SAMPLERS as SAMPLERS
from cdsampler.benchmark._samplers import build_sampler as build_sampler
from cdsampler.benchmark._starts import starting_point as starting_point
from cdsampler.benchmark._targets import TARGETS as TARGETS
from cdsampler.benchmark._targets import build_target as build_target
