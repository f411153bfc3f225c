"""Choices made on a small pilot group of chains, then frozen."""

from cdsampler.tuning._adapt import Tuned as Tuned
from cdsampler.tuning._adapt import adapt as adapt
from cdsampler.tuning._agreement import energy_test as energy_test
from cdsampler.tuning._autotune import make_plan as make_plan
from cdsampler.tuning._checks import Checks as Checks
from cdsampler.tuning._freezing import RESTARTS_PER_DRAW as RESTARTS_PER_DRAW
from cdsampler.tuning._mode import Mode as Mode
from cdsampler.tuning._mode import find_mode as find_mode
from cdsampler.tuning._pilot import Pilot as Pilot
from cdsampler.tuning._pilot import PilotRound as PilotRound
from cdsampler.tuning._pilot import tune as tune
from cdsampler.tuning._plan import Plan as Plan
from cdsampler.tuning._plan import RoundSummary as RoundSummary
from cdsampler.tuning._reference_width import WidthSearch as WidthSearch
from cdsampler.tuning._reference_width import minimise_skl as minimise_skl
from cdsampler.tuning._smc_rounds import tune_smc as tune_smc
from cdsampler.tuning._steps import Adapted as Adapted
from cdsampler.tuning._steps import adapt_steps as adapt_steps
from cdsampler.tuning._trajectory_steps import adapt_mams as adapt_mams
from cdsampler.tuning._trajectory_steps import adapt_nuts as adapt_nuts
