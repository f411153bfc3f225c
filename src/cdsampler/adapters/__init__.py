"""Models of other libraries as targets; each needs its library, which is an extra."""

from cdsampler.adapters._numpyro import from_numpyro as from_numpyro
from cdsampler.adapters._openmm import from_openmm as from_openmm
from cdsampler.adapters._program import Program as Program
from cdsampler.adapters._program import from_program as from_program
from cdsampler.adapters._pymc import from_pymc as from_pymc
from cdsampler.adapters._stan import from_stan as from_stan
from cdsampler.adapters._torch import from_torch as from_torch
