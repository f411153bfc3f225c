"""Benchmark targets, each with what is known exactly about it."""

from cdsampler.targets._base import AbstractExactTarget as AbstractExactTarget
from cdsampler.targets._base import AbstractTarget as AbstractTarget
from cdsampler.targets._gaussian_mixture import GaussianMixture as GaussianMixture
from cdsampler.targets._gaussian_mixture import gaussian_mixture as gaussian_mixture
