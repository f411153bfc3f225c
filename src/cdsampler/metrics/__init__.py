"""Metrics: how far a sample is from a target, and how far an exact sample of the same size would be.

All metrics are plain functions of float64 NumPy arrays. `evaluate` computes every one of them against an
`ExactReference`, each beside its finite-sample `Floor`.

Source: Castro-Macías et al. 2026, 'Conditional Diffusion Sampling', appendix 'Evaluation Metrics'.
"""

from cdsampler.metrics.evaluate import DEFAULT_FLOOR_REPEATS as DEFAULT_FLOOR_REPEATS
from cdsampler.metrics.evaluate import METRICS as METRICS
from cdsampler.metrics.evaluate import FloorRepeats as FloorRepeats
from cdsampler.metrics.evaluate import MetricValue as MetricValue
from cdsampler.metrics.evaluate import evaluate as evaluate
from cdsampler.metrics.floors import Floor as Floor
from cdsampler.metrics.floors import one_sample_floor as one_sample_floor
from cdsampler.metrics.floors import two_sample_floor as two_sample_floor
from cdsampler.metrics.histogram import energy_total_variation as energy_total_variation
from cdsampler.metrics.mmd import median_bandwidth as median_bandwidth
from cdsampler.metrics.mmd import mmd_squared as mmd_squared
from cdsampler.metrics.modes import mode_weight_total_variation as mode_weight_total_variation
from cdsampler.metrics.modes import mode_weights as mode_weights
from cdsampler.metrics.modes import modes_found as modes_found
from cdsampler.metrics.moments import QuadraticConstants as QuadraticConstants
from cdsampler.metrics.moments import quadratic_constants as quadratic_constants
from cdsampler.metrics.moments import quadratic_observable as quadratic_observable
from cdsampler.metrics.moments import relative_mae as relative_mae
from cdsampler.metrics.reference import ExactReference as ExactReference
from cdsampler.metrics.transport import wasserstein as wasserstein
from cdsampler.metrics.transport import wasserstein_1_and_2 as wasserstein_1_and_2
