"""Samplers: tempering, local chains, transport by the conditional SDE, and their driver."""

from cdsampler.samplers._base import AbstractSampler as AbstractSampler
from cdsampler.samplers._base import AbstractStage as AbstractStage
from cdsampler.samplers._cds import CDS as CDS
from cdsampler.samplers._cds import InPathCoordinates as InPathCoordinates
from cdsampler.samplers._diagnostics import Evidence as Evidence
from cdsampler.samplers._diagnostics import TemperingDiagnostics as TemperingDiagnostics
from cdsampler.samplers._diagnostics import stepping_stones as stepping_stones
from cdsampler.samplers._diagnostics import tempering_diagnostics as tempering_diagnostics
from cdsampler.samplers._driver import ChunkOutcome as ChunkOutcome
from cdsampler.samplers._driver import Harvest as Harvest
from cdsampler.samplers._driver import chain_keys as chain_keys
from cdsampler.samplers._driver import run_chunk as run_chunk
from cdsampler.samplers._integrators import INTEGRATORS as INTEGRATORS
from cdsampler.samplers._integrators import constant_step_variances as constant_step_variances
from cdsampler.samplers._integrators import langevin_steps as langevin_steps
from cdsampler.samplers._integrators import step_coefficients as step_coefficients
from cdsampler.samplers._inverse_map import InverseMap as InverseMap
from cdsampler.samplers._local import LocalChain as LocalChain
from cdsampler.samplers._local import LocalStatistics as LocalStatistics
from cdsampler.samplers._nrpt import NRPT as NRPT
from cdsampler.samplers._nrpt import TemperingStatistics as TemperingStatistics
from cdsampler.samplers._swap import swap_records as swap_records
from cdsampler.samplers._transport import AffineTransport as AffineTransport
from cdsampler.samplers._transport import Corrector as Corrector
from cdsampler.samplers._transport import PathTransport as PathTransport
from cdsampler.samplers._transport import TransportStatistics as TransportStatistics
