import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cdsampler.density import AbstractLogDensity, Evaluations
from cdsampler.errors import InvalidInputError
from cdsampler.interpolants import geometric_times, noise_variances
from cdsampler.kernels import HMC, MALA
from cdsampler.paths import GaussianReference, geometric_schedule
from cdsampler.samplers import CDS, NRPT, AbstractSampler, LocalChain
from cdsampler.targets import (
    AbstractTarget,
    alanine_dipeptide,
    bayesian_neural_network,
    gaussian_mixture,
    lennard_jones,
)
from cdsampler.tuning import tune


@dataclass(frozen=True)
class Preset:
    """Settings of a task, the same for every budget.

    Attributes
    ----------
    n_replicas
        Replicas of stage 1.
    reference_scale
        Standard deviation of the reference in target coordinates, τ/t0: with τ it fixes t0.
    beta_min
        Smallest positive β where tuning starts.
    step_size
        MALA step where tuning starts, in squared target units.
    noise_variance
        σ² of the SDE, constant.
    integration_steps
        Steps of the SDE.
    tau
        Standard deviation of the reference in path coordinates; below the reference scale.
    """

    n_replicas: int
    reference_scale: float
    beta_min: float = 1e-3
    step_size: float = 1.0
    noise_variance: float = 0.5
    integration_steps: int = 100
    tau: float = 1.0

    @property
    def t0(self) -> float:
        """Initial time of the linear interpolant."""
        return self.tau / self.reference_scale


class Tuned(NamedTuple):
    """A sampler ready for production, and what tuning it cost."""

    sampler: AbstractSampler
    evaluations: Evaluations


TARGETS: dict[str, tuple[str, Callable[[], AbstractTarget]]] = {
    "gm-2": ("40 equal Gaussians in 2 dimensions", lambda: gaussian_mixture(2, uniform=True)),
    "gmnu-2": (
        "40 Gaussians in 2 dimensions, six of them 20 times as heavy",
        lambda: gaussian_mixture(2, uniform=False),
    ),
    "gm-16": ("40 equal Gaussians in 16 dimensions", lambda: gaussian_mixture(16, uniform=True)),
    "gmnu-16": (
        "40 Gaussians in 16 dimensions, six of them 20 times as heavy",
        lambda: gaussian_mixture(16, uniform=False),
    ),
    "lj-13": ("Cluster of 13 Lennard-Jones particles, 36 dimensions", lambda: lennard_jones(13)),
    "lj-55": ("Cluster of 55 Lennard-Jones particles, 162 dimensions", lambda: lennard_jones(55)),
    "aldp": ("Alanine dipeptide in vacuum at 300 K, 60 internal coordinates", alanine_dipeptide),
    "aldp-implicit": (
        "Alanine dipeptide in implicit solvent at 300 K, 60 internal coordinates",
        lambda: alanine_dipeptide("implicit"),
    ),
    "aldp-cartesian": (
        "Alanine dipeptide in vacuum at 300 K, 63 Cartesian coordinates",
        lambda: alanine_dipeptide(coordinates="cartesian"),
    ),
    "bnn": ("Posterior of a Bayesian neural network with 550 parameters", bayesian_neural_network),
}

PRESETS: dict[str, Preset] = {
    "gm-2": Preset(n_replicas=5, reference_scale=50.0),
    "gmnu-2": Preset(n_replicas=5, reference_scale=50.0),
    "gm-16": Preset(n_replicas=12, reference_scale=70.0),
    "gmnu-16": Preset(n_replicas=18, reference_scale=100.0),
    "lj-13": Preset(n_replicas=12, reference_scale=0.5, beta_min=1e-5, step_size=1e-3, tau=0.05),
    "lj-55": Preset(n_replicas=24, reference_scale=0.5, beta_min=1e-5, step_size=1e-3, tau=0.05),
    "aldp": Preset(n_replicas=24, reference_scale=0.3, beta_min=1e-4, step_size=1e-3, tau=0.03),
    "aldp-implicit": Preset(n_replicas=24, reference_scale=0.3, beta_min=1e-4, step_size=1e-3, tau=0.03),
    "aldp-cartesian": Preset(n_replicas=24, reference_scale=0.1, beta_min=1e-5, step_size=1e-5, tau=0.01),
    # The prior is N(0, I): as the reference about 0, the path tempers the likelihood.
    "bnn": Preset(n_replicas=24, reference_scale=1.0, beta_min=1e-5, step_size=1e-3, tau=0.1),
}


def _nrpt(preset: Preset) -> AbstractSampler:
    betas = geometric_schedule(preset.n_replicas, preset.beta_min)
    return NRPT(GaussianReference(preset.reference_scale), betas, MALA(preset.step_size))


def _cds(preset: Preset) -> AbstractSampler:
    stage1 = NRPT(
        GaussianReference(preset.tau), geometric_schedule(preset.n_replicas, preset.beta_min), MALA(preset.step_size)
    )
    times = geometric_times(preset.t0, preset.integration_steps)
    return CDS(stage1, times, noise_variances(times, preset.noise_variance))


def _cds_inverse_map(preset: Preset) -> AbstractSampler:
    stage1 = NRPT(
        GaussianReference(preset.tau), geometric_schedule(preset.n_replicas, preset.beta_min), MALA(preset.step_size)
    )
    return CDS(stage1, preset.t0, transport="inverse-map")


SAMPLERS: dict[str, tuple[str, Callable[[Preset], AbstractSampler]]] = {
    "cds": ("conditional diffusion sampling: tempering of π_{t0|z}, then the conditional SDE", _cds),
    "cds-inverse-map": ("the same with F⁻¹ instead of the SDE", _cds_inverse_map),
    "nrpt": ("non-reversible parallel tempering with the same Gaussian reference", _nrpt),
    "mala": (
        "Metropolis-adjusted Langevin from the mode (local: finds one mode)",
        lambda p: LocalChain(MALA(p.step_size)),
    ),
    "hmc": (
        "Hamiltonian Monte Carlo from the mode, 5 leapfrog steps (local)",
        lambda p: LocalChain(HMC(p.step_size, 5)),
    ),
}


def build_target(name: str) -> AbstractTarget:
    """Return a target by name.

    Raises
    ------
    InvalidInputError
        Unknown name; the message lists the names.
    """
    return TARGETS[_known(name, TARGETS, "target")][1]()


def build_sampler(name: str, preset: Preset) -> AbstractSampler:
    """Return an untuned sampler by name.

    Raises
    ------
    InvalidInputError
        Unknown name; the message lists the names.
    """
    return SAMPLERS[_known(name, SAMPLERS, "sampler")][1](preset)


def tune_sampler(
    sampler: AbstractSampler, density: AbstractLogDensity, anchor: np.ndarray, seed: int, *, n_rounds: int = 5
) -> Tuned:
    """Tune what can be tuned; a local chain is returned as it is.

    The SDE's Langevin steps are then kept below the step size that MALA was tuned to at β = 1.

    Parameters
    ----------
    sampler
        From `build_sampler`.
    density
        Target.
    anchor : ndarray, shape (dim,)
    seed
        The pilot's stream is not the production's.
    n_rounds
        Rounds of the pilot.
    """
    if not isinstance(sampler, NRPT | CDS):
        return Tuned(sampler, Evaluations.zero().total())
    # Production splits the key of its seed; folding in keeps the pilot apart from both halves.
    pilot = tune(sampler, density, anchor, jax.random.fold_in(jax.random.key(seed), 2**32 - 1), n_rounds=n_rounds)
    tuned = pilot.sampler
    if isinstance(tuned, CDS) and tuned.transport == "sde" and isinstance(tuned.stage1, NRPT):
        tuned = replace_max_step(tuned, float(tuned.stage1.kernel.step_size[-1]))
    return Tuned(tuned, pilot.evaluations)


def replace_max_step(sampler: CDS, step: float) -> CDS:
    """Return the sampler with another limit on its Langevin steps."""
    is_none = lambda x: x is None  # noqa: E731
    return eqx.tree_at(lambda s: s.max_langevin_step, sampler, jnp.asarray(step), is_leaf=is_none)


def with_overrides(preset: Preset, **changes: float | int | None) -> Preset:
    """Return the preset with the settings that aren't None replaced."""
    return replace(preset, **{k: v for k, v in changes.items() if v is not None})  # type: ignore[arg-type]


def _known(name: str, names: Iterable[str], kind: str) -> str:
    options = list(names)
    if name in options:
        return name
    near = difflib.get_close_matches(name, options, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise InvalidInputError(f"Unknown {kind} {name!r}: choose from {', '.join(options)}.{hint}")
