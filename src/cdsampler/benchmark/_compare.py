"""Several samplers on one density whose truth nobody knows, and whether they agree."""

import itertools
import time
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cdsampler.benchmark._names import known
from cdsampler.benchmark._presets import Preset
from cdsampler.benchmark._protocol import prepare_on, produce
from cdsampler.benchmark._samplers import SAMPLERS
from cdsampler.density import AbstractLogDensity
from cdsampler.errors import InvalidInputError, SamplingWarning
from cdsampler.sampling import Result, sample
from cdsampler.tuning import energy_test, find_mode

DEFAULT = "default"
SHORTLIST = (DEFAULT, "nrpt", "oasmc", "cds", "hmc")
N_JUDGED = 400
N_PERMUTATIONS = 4000
N_PARTICLES = 50


class Entry(NamedTuple):
    """One sampler's run.

    Attributes
    ----------
    name : str
        Of the catalog, or "default" for `cdsampler.sample`.
    result : Result or None
        None if the sampler refused; then `error` says why.
    error : str
    seconds : float
        Tuning, production and compilation.
    """

    name: str
    result: Result | None
    error: str
    seconds: float


class Pair(NamedTuple):
    """Whether two samplers agree.

    Attributes
    ----------
    first, second : str
    distance : float
        Energy distance of their draws, in coordinates of unit variance.
    p_value : float
        That draws of one law are as far apart; chains are permuted as wholes.
    log_z_gap : float or None
        Difference of their estimates of log Z in standard errors; None if one has none.
    """

    first: str
    second: str
    distance: float
    p_value: float
    log_z_gap: float | None


class Comparison(NamedTuple):
    """All runs, and every pair of those that gave samples."""

    entries: tuple[Entry, ...]
    pairs: tuple[Pair, ...]


def compare(
    density: AbstractLogDensity,
    n_samples: int,
    budget: int,
    *,
    samplers: Sequence[str] = SHORTLIST,
    scale: float = 1.0,
    seed: int = 0,
    on_entry: Callable[[Entry], None] = lambda entry: None,
) -> Comparison:
    """Run a shortlist of samplers on one density at the same evaluations, and compare their draws.

    Agreement is no proof: samplers that all start near one mode agree on it. Disagreement is one that at least one of
    them is wrong.

    Parameters
    ----------
    density
        Target.
    n_samples
        Of each sampler.
    budget
        Evaluations per sample in production; the default sampler gets `n_samples` times that in all, tuning included.
    samplers
        Names of the catalog, and "default" for `cdsampler.sample`, which runs first: its draws say how wide the others'
        reference should be, about twice their spread about the mode.
    scale
        Rough standard deviation of the parameters, where the density doesn't tell.
    seed
    on_entry
        Called after each sampler.

    Returns
    -------
    Comparison

    Raises
    ------
    InvalidInputError
        Unknown names, or fewer than two samplers.
    """
    for name in samplers:
        known(name, [DEFAULT, *SAMPLERS], "sampler")
    if len(set(samplers)) < 2:
        raise InvalidInputError(f"A comparison needs at least 2 different samplers, got {', '.join(samplers)}.")
    entries = []
    preset = _preset(None, np.zeros(density.dim), scale)
    for name in sorted(samplers, key=lambda name: name != DEFAULT):
        began = time.perf_counter()
        try:
            result = _run(name, density, n_samples, budget, preset, scale, seed)
            entry = Entry(name, result, "", time.perf_counter() - began)
        except InvalidInputError as error:
            # A sampler that can't do it (a budget below its first step, say) is a finding of the comparison.
            entry = Entry(name, None, str(error), time.perf_counter() - began)
        if name == DEFAULT and entry.result is not None:
            preset = _preset(entry.result, find_mode(density).position, scale)
        entries.append(entry)
        on_entry(entry)
    return Comparison(tuple(entries), tuple(_pairs(entries, seed)))


def _run(
    name: str, density: AbstractLogDensity, n_samples: int, budget: int, preset: Preset, scale: float, seed: int
) -> Result:
    if name == DEFAULT:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SamplingWarning)  # they are in the result
            return sample(density, n_samples=n_samples, seed=seed, scale=scale, max_evaluations=n_samples * budget)
    return produce(prepare_on(name, lambda: density, n_samples, budget, preset=preset, seed=seed), n_samples, seed=seed)


def _preset(result: Result | None, mode: np.ndarray, scale: float) -> Preset:
    """Return settings that suit what the default's draws show, or the scale given."""
    width, narrow = 3 * scale, scale
    if result is not None:
        centred = result.positions.astype(np.float64) - mode
        width = 2 * float(np.sqrt(np.max(np.mean(centred**2, axis=0))))
        narrow = float(np.min(result.positions.astype(np.float64).std(axis=0)))
    step = max((0.3 * narrow) ** 2, 1e-12)
    return Preset(
        n_replicas=10, reference_scale=max(width, 1e-6), tau=0.02 * width, step_size=step, n_particles=N_PARTICLES
    )


def _pairs(entries: Sequence[Entry], seed: int) -> list[Pair]:
    rng = np.random.default_rng(seed)
    draws = {entry.name: _judged(entry.result) for entry in entries if entry.result is not None}
    log_z = {entry.name: entry.result.log_z for entry in entries if entry.result is not None}
    pairs = []
    for one, other in itertools.combinations(draws, 2):
        distance, p_value = energy_test(*_alike(draws[one], draws[other]), rng, n_permutations=N_PERMUTATIONS)
        pairs.append(Pair(one, other, distance, p_value, _gap(log_z[one], log_z[other])))
    return pairs


def _gap(one: tuple[float, float] | None, other: tuple[float, float] | None) -> float | None:
    if one is None or other is None:
        return None
    error = float(np.hypot(one[1], other[1]))
    return (one[0] - other[0]) / error if np.isfinite(error) and error > 0 else None


def _judged(result: Result) -> np.ndarray:
    """Return at most `N_JUDGED` draws as chains by draws, so that what depends on each other is permuted together."""
    n_chains, n_draws, _ = result.samples.shape
    if n_chains == 1:  # a row of particles in random order
        return result.samples[0, :N_JUDGED, None, :]
    if n_draws == 1:
        return result.samples[:N_JUDGED]
    kept = np.linspace(0, n_draws - 1, min(n_draws, max(N_JUDGED // n_chains, 1))).astype(int)
    return result.samples[:, kept]


def _alike(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both with as many draws per chain, by taking independent draws together."""
    n_draws = max(first.shape[1], second.shape[1])

    def gathered(draws: np.ndarray) -> np.ndarray:
        if draws.shape[1] == n_draws:
            return draws
        flat = draws.reshape(-1, draws.shape[2])
        return flat[: len(flat) // n_draws * n_draws].reshape(-1, n_draws, draws.shape[2])

    return gathered(first), gathered(second)
