"""Molecules: force fields in JAX, OpenMM systems converted to them, alanine dipeptide."""

from cdsampler.targets._internal_coordinates import InternalCoordinates as InternalCoordinates
from cdsampler.targets.molecules._alanine_dipeptide import alanine_dipeptide as alanine_dipeptide
from cdsampler.targets.molecules._force_field import EnergyTerms as EnergyTerms
from cdsampler.targets.molecules._force_field import ForceField as ForceField
from cdsampler.targets.molecules._molecule import CartesianCoordinates as CartesianCoordinates
from cdsampler.targets.molecules._molecule import Molecule as Molecule
from cdsampler.targets.molecules._molecule import TorsionalCoordinates as TorsionalCoordinates
from cdsampler.targets.molecules._molecule import random_labels as random_labels
from cdsampler.targets.molecules._openmm import parameters_from_openmm as parameters_from_openmm
from cdsampler.targets.molecules._parameters import ForceFieldParameters as ForceFieldParameters
from cdsampler.targets.molecules._parameters import GeneralisedBornParameters as GeneralisedBornParameters
