import dataclasses
import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from cdsampler.density import AbstractLogDensity, Evaluations, LogDensity, check_position
from cdsampler.errors import InvalidInputError, SamplingWarning
from cdsampler.host import original_errors
from cdsampler.parameters import Model
from cdsampler.sampling._production import Production
from cdsampler.sampling._result import Result
from cdsampler.sampling._run import Progress, check_counts
from cdsampler.sampling._sharing import plan_of_first
from cdsampler.sampling._team import team_of
from cdsampler.tuning import Plan, RoundSummary, make_plan

# Below this many evaluations nothing can be tuned.
LEAST_TUNING = 2000


@original_errors
def sample(
    log_density: Callable[..., Any] | AbstractLogDensity | Model,
    dim: int | None = None,
    n_samples: int = 1000,
    *,
    params: Any = None,
    seed: int = 0,
    start: Any = None,
    anchor: Any = None,
    scale: float = 1.0,
    independent: bool = False,
    budget: int | None = None,
    max_evaluations: int | None = None,
    plan: Plan | None = None,
    reference_scale: float | None = None,
    replicas: int | None = None,
    names: Sequence[str] | None = None,
    value_and_grad: Callable[..., Any] | None = None,
    chunk_size: int | None = None,
    devices: Sequence[jax.Device] | None = None,
    on_round: Callable[[RoundSummary], None] = lambda summary: None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Draw samples from an unnormalised density: tune on a pilot, freeze, produce, and say what to distrust.

    Parameters
    ----------
    log_density
        A JAX function from a position of shape (dim,) to a scalar, a density object (such as `HostLogDensity` for
        functions that JAX can't trace), or a `Model` (such as the adapters make of other libraries' programs).
    dim
        Number of coordinates; only with a plain function.
    n_samples
        Draws wanted. If they can't be shared out evenly between chains there are a few more.
    params
        A structure of named parameters with shapes and bounds, in place of `dim`: see `ParameterSpace`. The function
        then takes that structure.
    seed
        Same seed, same samples bit for bit on one kind of device, whatever the chunk size and the number of devices and
        processes.
    start : array_like, shape (dim,), optional
        Where the search for a mode starts: a point inside the support. With named parameters, a structure of values.
    anchor : array_like, shape (dim,), optional
        As `start`. Where the reference is centred; default the mode that the search finds.
    scale
        Rough standard deviation of the parameters; only used where the density doesn't tell.
    independent
        One chain per sample (the paper's mode), instead of some tens of chains with many draws each.
    budget
        Evaluations per sample in independent mode, tuning apart; default what three restarts need.
    max_evaluations
        Hard limit on the total, tuning included. Without it, production is repeated with draws up to 8 times as far
        apart if they prove to be worth less than half of their number (the result's plan then has that thinning).
    plan
        Reuse the plan of an earlier result: no tuning.
    reference_scale
        Force the reference `N(anchor, reference_scale² I)`; by default it is learned.
    replicas
        Force the number of replicas.
    names
        Of the coordinates.
    value_and_grad
        See `LogDensity`.
    chunk_size
        Most chains in flight in a process.
    devices
        Devices that production is spread over, by default all. With `jax.distributed` every process has to make the
        same call: the first one tunes, each runs its devices' share, and all return the whole result. A list of the
        process's own devices keeps the call to itself.
    on_round
        Called after each tuning round; of several processes only the first calls it.
    on_progress
        Called several times a second in production, likewise.

    Returns
    -------
    Result
        With its `plan`, `ess`, `rhat` and `warnings`, and with named parameters their `variables`; each warning is
        also issued as a `SamplingWarning`.

    Raises
    ------
    InvalidInputError
        A bad argument, or a budget that is too small; before any expensive work where that can be known.
    DensityError
        The density isn't finite at any start, is plus infinity somewhere, or doesn't return a scalar.
    ProcessError
        Another process has failed, is silent, or was called with something else.
    """
    model = _model(log_density, dim, params, names, value_and_grad)
    density = model.density if model is not None else _density(log_density, dim, names, value_and_grad)
    prior = None if model is None else model.prior
    check_counts(n_samples, seed, chunk_size)
    _check(n_samples, scale, independent, budget, max_evaluations, reference_scale, replicas)
    if plan is not None and any(given is not None for given in (start, anchor, reference_scale, replicas)):
        raise InvalidInputError(
            "start, anchor, reference_scale and replicas belong to tuning: leave them out with a plan."
        )
    tuning = Evaluations.zero().total()
    if plan is None:
        tune = functools.partial(
            make_plan,
            density,
            seed=seed,
            start=_position(density, model, "start", start),
            anchor=_position(density, model, "anchor", anchor),
            scale=scale,
            reference_scale=reference_scale,
            n_replicas=replicas,
            max_evaluations=max_evaluations,
            prior=prior,
        )
        plan = plan_of_first(tune, on_round, {"seed": seed, "dim": density.dim}, team_of(devices))
        tuning = _charged(plan)
    elif plan.dim != density.dim:
        raise InvalidInputError(f"The plan is for {plan.dim} dimensions and the density has {density.dim}.")
    production = Production(
        density,
        prior,
        n_samples,
        tuning,
        independent=independent,
        budget=budget,
        max_evaluations=max_evaluations,
        chunk_size=chunk_size,
        on_progress=on_progress,
        devices=devices,
    )
    result = dataclasses.replace(production.run(plan, seed), model=model)
    for warning in result.warnings:
        warnings.warn(str(warning), SamplingWarning, stacklevel=2)
    return result


def _model(
    log_density: Any,
    dim: int | None,
    params: Any,
    names: Sequence[str] | None,
    value_and_grad: Callable[..., Any] | None,
) -> Model | None:
    """Return the model that is given, or made of a function and its parameters; None if there are none."""
    if params is None and not isinstance(log_density, Model):
        return None
    for name, given in (("dim", dim), ("names", names), ("value_and_grad", value_and_grad)):
        if given is not None:
            raise InvalidInputError(f"{name}={given!r} doesn't go with named parameters: leave it out.")
    if isinstance(log_density, Model):
        if params is not None:
            raise InvalidInputError("The model has its parameters already: leave params out.")
        return log_density
    if isinstance(log_density, AbstractLogDensity) or not callable(log_density):
        raise InvalidInputError(f"params needs a function of the named parameters, got {log_density!r}.")
    return Model.from_structure(log_density, params)


def _position(density: AbstractLogDensity, model: Model | None, name: str, given: Any) -> np.ndarray | None:
    """Return a point in the density's coordinates, from one or from a structure of values."""
    if given is None:
        return None
    if model is not None and isinstance(given, Mapping):
        if model.unconstrain is None:
            raise InvalidInputError(f"{name} must be {density.dim} unconstrained coordinates for this model.")
        given = model.unconstrain(given)
    return check_position(density, name, given)


def _density(
    log_density: Any, dim: int | None, names: Sequence[str] | None, value_and_grad: Callable[..., Any] | None
) -> AbstractLogDensity:
    if isinstance(log_density, AbstractLogDensity):
        if dim is not None and dim != log_density.dim:
            raise InvalidInputError(f"dim={dim}, but the density has {log_density.dim} coordinates: leave dim out.")
        if names is not None or value_and_grad is not None:
            raise InvalidInputError("names and value_and_grad belong to the density object: give them to LogDensity.")
        return log_density
    if dim is None:
        raise InvalidInputError("dim is missing: give the number of coordinates of the log density.")
    return LogDensity(log_density, dim, value_and_grad=value_and_grad, names=None if names is None else tuple(names))


def _check(
    n_samples: int,
    scale: float,
    independent: bool,
    budget: int | None,
    max_evaluations: int | None,
    reference_scale: float | None,
    replicas: int | None,
) -> None:
    for name, value in (("scale", scale), ("reference_scale", reference_scale)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise InvalidInputError(f"{name} must be positive and finite, got {value!r}.")
    if replicas is not None and replicas < 2:
        raise InvalidInputError(f"Tempering needs at least 2 replicas, got {replicas}: leave it out to have it chosen.")
    if budget is not None and not independent:
        raise InvalidInputError(
            "budget is per sample and needs independent=True; to limit the total give max_evaluations."
        )
    if budget is not None and budget < 1:
        raise InvalidInputError(f"budget must be at least 1, got {budget}.")
    least = LEAST_TUNING + 2 * n_samples
    if max_evaluations is not None and max_evaluations < least:
        raise InvalidInputError(
            f"max_evaluations={max_evaluations} is too small for {n_samples} samples: allow at least {least}."
        )


def _charged(plan: Plan) -> Evaluations:
    counts = (plan.value_evaluations, plan.gradient_evaluations, 0, 0, 0)
    return Evaluations(*(np.asarray(count, dtype=np.int64) for count in counts))  # type: ignore[arg-type]
