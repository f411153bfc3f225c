"""Reference distributions, the annealing path between reference and target, and schedules of β."""

from cdsampler.paths._annealing import AbstractPointDensity as AbstractPointDensity
from cdsampler.paths._annealing import AnnealingPath as AnnealingPath
from cdsampler.paths._annealing import DenoisingPosterior as DenoisingPosterior
from cdsampler.paths._annealing import TemperedDensity as TemperedDensity
from cdsampler.paths._mixture import MixtureReference as MixtureReference
from cdsampler.paths._prior import PriorReference as PriorReference
from cdsampler.paths._reference import AbstractReference as AbstractReference
from cdsampler.paths._reference import FlatReference as FlatReference
from cdsampler.paths._reference import GaussianReference as GaussianReference
from cdsampler.paths._schedule import check_schedule as check_schedule
from cdsampler.paths._schedule import cumulative_barrier as cumulative_barrier
from cdsampler.paths._schedule import equal_rejection_schedule as equal_rejection_schedule
from cdsampler.paths._schedule import geometric_schedule as geometric_schedule
from cdsampler.paths._schedule import linear_schedule as linear_schedule
