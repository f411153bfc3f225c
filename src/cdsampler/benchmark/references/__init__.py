"""Reference samples that this library makes itself, keeps in a cache, and checks against samples of other origin."""

from cdsampler.benchmark.references._check import Comparison as Comparison
from cdsampler.benchmark.references._check import Moments as Moments
from cdsampler.benchmark.references._check import check_samples as check_samples
from cdsampler.benchmark.references._check import energy_moments as energy_moments
from cdsampler.benchmark.references._check import read_samples as read_samples
from cdsampler.benchmark.references._energies import energies as energies
from cdsampler.benchmark.references._energies import is_molecule as is_molecule
from cdsampler.benchmark.references._lennard_jones import LennardJonesHMC as LennardJonesHMC
from cdsampler.benchmark.references._make import Listing as Listing
from cdsampler.benchmark.references._make import generate_reference as generate_reference
from cdsampler.benchmark.references._make import list_references as list_references
from cdsampler.benchmark.references._make import load_reference as load_reference
from cdsampler.benchmark.references._make import make_reference as make_reference
from cdsampler.benchmark.references._mixtures import ExactSampling as ExactSampling
from cdsampler.benchmark.references._molecular_dynamics import ReplicaExchangeMD as ReplicaExchangeMD
from cdsampler.benchmark.references._neural_network import NeuralNetworkHMC as NeuralNetworkHMC
from cdsampler.benchmark.references._reference import Reference as Reference
from cdsampler.benchmark.references._store import cache_folder as cache_folder
