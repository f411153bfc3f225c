"""Conditional interpolants `F_{t|z}` and the schedules of time and noise along them."""

from cdsampler.interpolants._affine import AbstractAffineInterpolant as AbstractAffineInterpolant
from cdsampler.interpolants._affine import Linear as Linear
from cdsampler.interpolants._affine import Trigonometric as Trigonometric
from cdsampler.interpolants._base import AbstractInterpolant as AbstractInterpolant
from cdsampler.interpolants._conditional import ConditionalChart as ConditionalChart
from cdsampler.interpolants._conditional import conditional_density as conditional_density
from cdsampler.interpolants._general import AutodiffInterpolant as AutodiffInterpolant
from cdsampler.interpolants._general import ChartedInterpolant as ChartedInterpolant
from cdsampler.interpolants._schedules import NOISE_SHAPES as NOISE_SHAPES
from cdsampler.interpolants._schedules import geometric_times as geometric_times
from cdsampler.interpolants._schedules import linear_times as linear_times
from cdsampler.interpolants._schedules import noise_variances as noise_variances
from cdsampler.interpolants._schedules import polynomial_times as polynomial_times
