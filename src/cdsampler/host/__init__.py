"""Densities that are computed outside JAX: NumPy functions, simulators, other programs."""

from cdsampler.host._density import HostLogDensity as HostLogDensity
from cdsampler.host._errors import original_errors as original_errors
from cdsampler.host._function import HostFunction as HostFunction
