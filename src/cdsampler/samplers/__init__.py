"""Samplers: tempering, local chains, transport by the conditional SDE, and their driver."""

from cdsampler.samplers._base import AbstractSampler as AbstractSampler
from cdsampler.samplers._base import AbstractStage as AbstractStage
from cdsampler.samplers._driver import ChunkOutcome as ChunkOutcome
from cdsampler.samplers._driver import chain_keys as chain_keys
from cdsampler.samplers._driver import run_chunk as run_chunk
from cdsampler.samplers._nrpt import NRPT as NRPT
from cdsampler.samplers._nrpt import TemperingStatistics as TemperingStatistics
