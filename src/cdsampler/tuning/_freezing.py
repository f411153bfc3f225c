"""What tuning came to, as a plan."""

import numpy as np

from cdsampler.density import AbstractLogDensity, coordinate_names
from cdsampler.kernels import HMC, MALA, AbstractKernel, RandomWalk
from cdsampler.paths import PriorReference
from cdsampler.tuning._account import Account
from cdsampler.tuning._checks import Checks
from cdsampler.tuning._first_look import FirstLook
from cdsampler.tuning._fit import MixtureFit
from cdsampler.tuning._learning import mixture_of
from cdsampler.tuning._local import LocalTrial
from cdsampler.tuning._plan import Plan
from cdsampler.tuning._slowness import local_autocorrelation
from cdsampler.tuning._survey import Survey
from cdsampler.tuning._tempering import PilotGroup, Verified

# Restarts that the burn-in waits for, and between two draws of one chain.
BURN_IN_RESTARTS, RESTARTS_PER_DRAW = 3.0, 2.0
MAX_TRANSPORT_STEPS = 64
# Steps in which chains fill basins that the reference hardly knows, at most.
LONGEST_FILLING = 256.0
# Jittered trajectories between draws, at most: their autocorrelation time is measured while distant starts come in.
LONGEST_WAIT = 32.0
# Autocorrelation times before the first draw of chains that start where the pilot's had forgotten their starts.
BURN_IN_LOCAL = 2


def basin_wait(found: Survey, fit: MixtureFit | None, log_z: float) -> float:
    """Return after how many proposals of the reference a chain leaves the basin where the reference is thinnest.

    By detailed balance it takes as long for chains that start at the reference to fill it. A state of weight w, the
    target's density over the reference's and Z, rejects all but one of w proposals.
    """
    if fit is None or found.n_basins == 0 or not np.isfinite(log_z):
        return 0.0
    log_weights = found.draws.log_density - fit.log_density(found.draws.positions) - log_z
    last = int(found.draws.groups.max())
    groups = range(last - found.n_basins + 1, last + 1)
    thinnest = max(float(np.median(log_weights[found.draws.groups == group])) for group in groups)
    return float(min(np.exp(min(thinnest, 50.0)), LONGEST_FILLING))


def frozen_local(density: AbstractLogDensity, look: FirstLook, local: LocalTrial, account: Account) -> Plan:
    """Return the plan of local chains alone."""
    thinning = int(np.ceil(local.tau))
    typical = float(np.max(np.abs(local.log_density)))
    checks = Checks(
        is_bounded=look.scanned.is_bounded,
        resolution=float(np.finfo(density.dtype).eps) * typical,
        smallest_acceptance=local.acceptance,
        memory=local.memory,
    )
    return Plan(
        names=coordinate_names(density),
        shift=np.asarray(local.chart.shift, dtype=np.float64),
        scale_tril=np.asarray(local.chart.scale_tril, dtype=np.float64),
        centre=np.zeros(density.dim),
        width=1.0,
        mixture=None,
        uses_prior=False,
        betas=np.ones(1),
        step_sizes=np.asarray([local.kernel.step_size], dtype=np.float64),
        rejection=np.zeros(0),
        kernel="hmc",
        num_integration_steps=local.kernel.evaluations_per_step,
        smallest_step=local.kernel.smallest_step,
        restart_rate=1 / local.tau,
        burn_in=BURN_IN_LOCAL * thinning,
        thinning=thinning,
        n_transport=0,
        transport_step=0.0,
        walk=np.zeros((0, 1), np.int64),
        starts=local.positions,
        rounds=local.rounds,
        checks=checks,
        value_evaluations=int(account.spent.value),
        gradient_evaluations=int(account.spent.gradient),
    )


def frozen(
    density: AbstractLogDensity,
    found: Survey,
    verified: Verified,
    kernel: AbstractKernel,
    pilot: PilotGroup,
    checks: Checks,
    ridge: LocalTrial | None,
) -> Plan:
    """Return the plan of tempering and transport."""
    ladder, measured = verified.ladder, verified.measured
    length = kernel.evaluations_per_step
    name = _name(kernel)
    cold_step = float(measured.step_sizes[-1])
    langevin = cold_step if name == "mala" else 0.5 * cold_step**2
    tau = local_autocorrelation(float(measured.jump[-1]), found.fit.local_variance())
    # The SDE needs gradients.
    n_transport = int(np.clip(np.ceil(tau * length), 1, MAX_TRANSPORT_STEPS)) if density.has_gradient else 0
    per_restart = 1 / verified.restart_rate if verified.restart_rate > 0 else 16.0 * len(ladder.betas)
    ramp = len(ladder.betas) - 1
    # Where the reference is thin, a chain waits for its trajectories instead of for a restart.
    slowest = 0.0 if ridge is None else min(ridge.tau, LONGEST_WAIT)
    burn_in = max(
        BURN_IN_RESTARTS * per_restart, BURN_IN_LOCAL * slowest, basin_wait(found, ladder.fit, pilot.rounds[-1].log_z)
    )
    spent = pilot.account.spent
    return Plan(
        names=coordinate_names(density),
        shift=np.asarray(found.chart.shift, dtype=np.float64),
        scale_tril=np.asarray(found.chart.scale_tril, dtype=np.float64),
        centre=found.centre,
        width=float(found.width),
        mixture=None if ladder.fit is None else mixture_of(ladder.fit),
        uses_prior=isinstance(ladder.reference, PriorReference),
        betas=ladder.betas,
        step_sizes=measured.step_sizes,
        rejection=measured.rejection,
        kernel=name,
        num_integration_steps=length,
        smallest_step=kernel.smallest_step if isinstance(kernel, HMC) else 1.0,
        restart_rate=verified.restart_rate,
        burn_in=ramp + int(np.ceil(burn_in)),
        thinning=max(1, int(np.ceil(max(RESTARTS_PER_DRAW * per_restart, slowest)))),
        n_transport=n_transport,
        transport_step=langevin,
        walk=measured.walk,
        starts=None,
        rounds=(() if ridge is None else ridge.rounds) + tuple(pilot.rounds),
        checks=checks,
        value_evaluations=int(spent.value),
        gradient_evaluations=int(spent.gradient),
    )


def _name(kernel: AbstractKernel) -> str:
    return "mala" if isinstance(kernel, MALA) else "rwm" if isinstance(kernel, RandomWalk) else "hmc"
