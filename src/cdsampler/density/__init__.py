"""The only place where a target is evaluated, checked for non-finite values and charged."""

from cdsampler.density._bounds import check_bounded as check_bounded
from cdsampler.density._bounds import check_position as check_position
from cdsampler.density._bounds import coordinate_names as coordinate_names
from cdsampler.density._evaluations import Evaluations as Evaluations
from cdsampler.density._fingerprint import Fingerprint as Fingerprint
from cdsampler.density._fingerprint import fingerprint as fingerprint
from cdsampler.density._log_density import AbstractLogDensity as AbstractLogDensity
from cdsampler.density._log_density import LogDensity as LogDensity
from cdsampler.density._log_density import check_layout as check_layout
from cdsampler.density._log_density import guard_non_finite as guard_non_finite
from cdsampler.density._point import Component as Component
from cdsampler.density._point import Point as Point
