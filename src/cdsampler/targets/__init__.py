"""Benchmark targets, each with what is known exactly about it."""

from cdsampler.targets._base import AbstractExactTarget as AbstractExactTarget
from cdsampler.targets._base import AbstractParticleTarget as AbstractParticleTarget
from cdsampler.targets._base import AbstractTarget as AbstractTarget
from cdsampler.targets._bayesian_neural_network import BayesianNeuralNetwork as BayesianNeuralNetwork
from cdsampler.targets._bayesian_neural_network import bayesian_neural_network as bayesian_neural_network
from cdsampler.targets._gaussian_mixture import GaussianMixture as GaussianMixture
from cdsampler.targets._gaussian_mixture import gaussian_mixture as gaussian_mixture
from cdsampler.targets._lennard_jones import LennardJones as LennardJones
from cdsampler.targets._lennard_jones import icosahedron as icosahedron
from cdsampler.targets._lennard_jones import lennard_jones as lennard_jones
from cdsampler.targets.molecules import Molecule as Molecule
from cdsampler.targets.molecules import alanine_dipeptide as alanine_dipeptide
