"""Independent samples from unnormalised, multimodal densities with as few density evaluations as possible."""

__version__ = "0.1.0"

from cdsampler.charts import NumpyroChart as NumpyroChart
from cdsampler.charts import TransformedLogDensity as TransformedLogDensity
from cdsampler.density import LogDensity as LogDensity
from cdsampler.errors import CdsamplerError as CdsamplerError
from cdsampler.errors import DensityError as DensityError
from cdsampler.errors import InvalidInputError as InvalidInputError
from cdsampler.errors import SamplingWarning as SamplingWarning
from cdsampler.interpolants import Linear as Linear
from cdsampler.interpolants import Trigonometric as Trigonometric
from cdsampler.interpolants import geometric_times as geometric_times
from cdsampler.interpolants import noise_variances as noise_variances
from cdsampler.kernels import HMC as HMC
from cdsampler.kernels import MALA as MALA
from cdsampler.kernels import RandomWalk as RandomWalk
from cdsampler.paths import FlatReference as FlatReference
from cdsampler.paths import GaussianReference as GaussianReference
from cdsampler.paths import PriorReference as PriorReference
from cdsampler.paths import geometric_schedule as geometric_schedule
from cdsampler.samplers import CDS as CDS
from cdsampler.samplers import NRPT as NRPT
from cdsampler.samplers import RDMC as RDMC
from cdsampler.samplers import SMC as SMC
from cdsampler.samplers import SVGD as SVGD
from cdsampler.samplers import Corrector as Corrector
from cdsampler.samplers import DiGS as DiGS
from cdsampler.samplers import LocalChain as LocalChain
from cdsampler.samplers import MAMSChain as MAMSChain
from cdsampler.samplers import NUTSChain as NUTSChain
from cdsampler.sampling import Result as Result
from cdsampler.sampling import run as run
from cdsampler.sampling import sample as sample
from cdsampler.tuning import Plan as Plan
from cdsampler.tuning import adapt as adapt
from cdsampler.tuning import find_mode as find_mode
from cdsampler.tuning import tune as tune
