"""Metrics: how far a sample is from a target, and how far an exact sample of the same size would be.

All metrics are plain functions of float64 NumPy arrays. `evaluate` computes those that suit a target against an
`ExactReference`, each beside its finite-sample `Floor`.

Source: Castro-Macías et al. 2026, 'Conditional Diffusion Sampling', appendix 'Evaluation Metrics'.
"""

from cdsampler.metrics.dihedrals import c7ax_indicator as c7ax_indicator
from cdsampler.metrics.dihedrals import dihedral_angles as dihedral_angles
from cdsampler.metrics.evaluate import DEFAULT_FLOOR_REPEATS as DEFAULT_FLOOR_REPEATS
from cdsampler.metrics.evaluate import METRICS as METRICS
from cdsampler.metrics.evaluate import FloorRepeats as FloorRepeats
from cdsampler.metrics.evaluate import MetricValue as MetricValue
from cdsampler.metrics.evaluate import evaluate as evaluate
from cdsampler.metrics.floors import Floor as Floor
from cdsampler.metrics.floors import one_sample_floor as one_sample_floor
from cdsampler.metrics.floors import two_sample_floor as two_sample_floor
from cdsampler.metrics.histogram import energy_total_variation as energy_total_variation
from cdsampler.metrics.histogram import plausible_range as plausible_range
from cdsampler.metrics.kabsch import kabsch_distances as kabsch_distances
from cdsampler.metrics.kabsch import kabsch_wasserstein_1_and_2 as kabsch_wasserstein_1_and_2
from cdsampler.metrics.likelihood import NegativeLogLikelihoods as NegativeLogLikelihoods
from cdsampler.metrics.likelihood import negative_log_likelihoods as negative_log_likelihoods
from cdsampler.metrics.mmd import median_bandwidth as median_bandwidth
from cdsampler.metrics.mmd import mmd_squared as mmd_squared
from cdsampler.metrics.modes import mode_weight_total_variation as mode_weight_total_variation
from cdsampler.metrics.modes import mode_weights as mode_weights
from cdsampler.metrics.modes import modes_found as modes_found
from cdsampler.metrics.moments import QuadraticConstants as QuadraticConstants
from cdsampler.metrics.moments import quadratic_constants as quadratic_constants
from cdsampler.metrics.moments import quadratic_observable as quadratic_observable
from cdsampler.metrics.moments import relative_mae as relative_mae
from cdsampler.metrics.ramachandran import BOLTZMANN as BOLTZMANN
from cdsampler.metrics.ramachandran import BasinWeight as BasinWeight
from cdsampler.metrics.ramachandran import basin_weight as basin_weight
from cdsampler.metrics.ramachandran import free_energy_rmse as free_energy_rmse
from cdsampler.metrics.ramachandran import ramachandran_kl as ramachandran_kl
from cdsampler.metrics.reference import ExactReference as ExactReference
from cdsampler.metrics.transport import energy_wasserstein_1 as energy_wasserstein_1
from cdsampler.metrics.transport import wasserstein as wasserstein
from cdsampler.metrics.transport import wasserstein_1_and_2 as wasserstein_1_and_2
from cdsampler.metrics.unlabelled import matched_rmsd as matched_rmsd
from cdsampler.metrics.unlabelled import pair_distance_total_variation as pair_distance_total_variation
from cdsampler.metrics.unlabelled import sorted_radius_wasserstein_2 as sorted_radius_wasserstein_2
