"""Markov kernels on cached points, with one shared Metropolis step, and step-size adaptation."""

from cdsampler.kernels._adaptation import adapt_step_size as adapt_step_size
from cdsampler.kernels._base import AbstractKernel as AbstractKernel
from cdsampler.kernels._base import KernelInfo as KernelInfo
from cdsampler.kernels._base import Noise as Noise
from cdsampler.kernels._base import draw_noise as draw_noise
from cdsampler.kernels._hmc import HMC as HMC
from cdsampler.kernels._mala import MALA as MALA
from cdsampler.kernels._metropolis import metropolis as metropolis
from cdsampler.kernels._random_walk import RandomWalk as RandomWalk
