"""Every sampler by name, built from a task's settings."""

from collections.abc import Callable

import numpy as np

from cdsampler.benchmark._names import known
from cdsampler.benchmark._presets import Preset
from cdsampler.errors import InvalidInputError
from cdsampler.interpolants import geometric_times, noise_variances
from cdsampler.kernels import HMC, MALA, AbstractKernel
from cdsampler.paths import AbstractReference, FlatReference, GaussianReference, geometric_schedule
from cdsampler.samplers import (
    CDS,
    NRPT,
    RDMC,
    SMC,
    SVGD,
    AbstractSampler,
    AbstractStage,
    Corrector,
    DiGS,
    LocalChain,
    MAMSChain,
    NUTSChain,
    ReferenceDraw,
)

N_KNOTS = 65


def _kernel(preset: Preset) -> AbstractKernel:
    return _hmc_kernel(preset) if preset.kernel == "hmc" else MALA(preset.step_size)


def _hmc_kernel(preset: Preset) -> HMC:
    return HMC(np.sqrt(preset.step_size), preset.n_leapfrog, preset.smallest_step)


def _reference(preset: Preset, scale: float) -> AbstractReference:
    return FlatReference() if preset.reference == "flat" else GaussianReference(scale)


def _start(preset: Preset) -> str:
    return "reference" if preset.reference == "gaussian" and preset.initialisation != "mode" else "anchor"


def _nrpt(preset: Preset, *, scale: float | None = None, is_reversible: bool = False) -> NRPT:
    reference = _reference(preset, preset.reference_scale if scale is None else scale)
    betas = geometric_schedule(preset.n_replicas, preset.beta_min, with_zero=reference.is_proper)
    return NRPT(reference, betas, _kernel(preset), start=_start(preset), is_reversible=is_reversible)


def _smc(
    preset: Preset,
    *,
    scale: float | None = None,
    n_particles: int | None = None,
    ess_threshold: float | None = None,
    returns: str | None = None,
) -> SMC:
    reference = _reference(preset, preset.reference_scale if scale is None else scale)
    betas = geometric_schedule(N_KNOTS, preset.beta_min, with_zero=reference.is_proper)
    return SMC(
        reference,
        betas,
        _kernel(preset),
        n_particles=preset.n_particles if n_particles is None else n_particles,
        n_moves=preset.n_moves,
        ess_threshold=preset.ess_threshold if ess_threshold is None else ess_threshold,
        resampling=preset.resampling,
        start="reference" if reference.is_proper else "anchor",
        returns=preset.returns if returns is None else returns,
    )


def _cds(preset: Preset, stage1: AbstractStage, budget: int | None = None) -> CDS:
    n_steps = preset.integration_steps
    cost = 1 + preset.corrector_steps
    if preset.rho is not None:
        if budget is None:
            raise InvalidInputError(f"rho is {preset.rho}, and shares out a budget: give one.")
        n_steps = max(int((1 - preset.rho) * budget) // cost, 1)
    if isinstance(stage1, ReferenceDraw):
        n_steps = n_steps if budget is None else max((budget - 1) // cost, 1)
    times = geometric_times(preset.t0, n_steps)
    corrector = Corrector(MALA(preset.step_size), preset.corrector_steps) if preset.corrector_steps else None
    return CDS(stage1, times, noise_variances(times, preset.noise_variance), corrector=corrector)


def _cds_inverse_map(preset: Preset, budget: int | None) -> CDS:
    return CDS(_nrpt(preset, scale=preset.tau), preset.t0, transport="inverse-map")


def _digs(preset: Preset, budget: int | None) -> DiGS:
    return DiGS(
        _kernel(preset),
        np.linspace(preset.alpha_min, preset.alpha_max, preset.n_levels),
        n_sweeps=preset.n_sweeps,
        n_denoising=preset.n_denoising,
        scale=preset.noise_scale,
    )


def _rdmc(preset: Preset, budget: int | None) -> RDMC:
    widths = (0.3 * float(np.sqrt(preset.step_size)), 3 * preset.reference_scale)
    return RDMC(
        preset.reference_scale,
        preset.step_size,
        n_inner=preset.n_inner,
        n_moves=preset.n_inner_moves,
        widths=widths,
    )


def _nuts(preset: Preset, budget: int | None) -> NUTSChain:
    return NUTSChain(np.sqrt(preset.step_size), max_num_doublings=preset.max_doublings)


def _mams(preset: Preset, budget: int | None) -> MAMSChain:
    return MAMSChain(
        np.sqrt(preset.step_size),
        num_integration_steps=preset.mams_steps,
        is_random_length=preset.is_random_length,
    )


def _svgd(preset: Preset, budget: int | None) -> SVGD:
    reference = GaussianReference(preset.reference_scale)
    is_at_mode = preset.initialisation != "reference"
    return SVGD(
        preset.n_particles,
        preset.learning_rate * float(np.sqrt(preset.step_size)),
        reference=reference,
        optimizer=preset.optimizer,  # type: ignore[arg-type]
        start="anchor" if is_at_mode else "reference",
        jitter=float(np.sqrt(preset.step_size)) if is_at_mode else 0.0,
    )


Builder = Callable[[Preset, int | None], AbstractSampler]

SAMPLERS: dict[str, tuple[str, Builder]] = {
    "cds": (
        "conditional diffusion sampling: tempering of π_{t0|z}, then the conditional SDE",
        lambda p, budget: _cds(p, _nrpt(p, scale=p.tau), budget),
    ),
    "cds-oasmc": (
        "the same with annealed particles in stage 1",
        lambda p, budget: _cds(p, _smc(p, scale=p.tau), budget),
    ),
    "cds-hmc": (
        "the same with Hamiltonian Monte Carlo in stage 1",
        lambda p, b: _cds(p, LocalChain(_hmc_kernel(p)), b),
    ),
    "cds-inverse-map": ("the same with F⁻¹ instead of the SDE", _cds_inverse_map),
    "cds-sde-only": (
        "the SDE alone, from a draw of the reference (ρ = 0)",
        lambda p, budget: _cds(p, ReferenceDraw(GaussianReference(p.tau)), budget),
    ),
    "nrpt": ("non-reversible parallel tempering with the same reference", lambda p, budget: _nrpt(p)),
    "pt": (
        "reversible parallel tempering: the swaps' parity is drawn at random",
        lambda p, budget: _nrpt(p, is_reversible=True),
    ),
    "oasmc": ("optimised annealed sequential Monte Carlo, in groups of particles", lambda p, budget: _smc(p)),
    "smc": (
        "sequential Monte Carlo along the geometric schedule, resampling at every temperature",
        lambda p, budget: _smc(p, ess_threshold=1.0),
    ),
    "ais": (
        "annealed importance sampling: no resampling, every chain has its weight",
        lambda p, budget: _smc(p, n_particles=1, returns="particles"),
    ),
    "digs": ("diffusive Gibbs sampling: adds noise, then samples given the noisy copy", _digs),
    "rdmc": ("reverse diffusion Monte Carlo, with scores from inner chains", _rdmc),
    "mala": (
        "Metropolis-adjusted Langevin (local: finds one mode)",
        lambda p, budget: LocalChain(MALA(p.step_size)),
    ),
    "hmc": ("Hamiltonian Monte Carlo (local)", lambda p, budget: LocalChain(_hmc_kernel(p))),
    "nuts": ("the no-U-turn sampler, through BlackJAX (local)", _nuts),
    "mams": ("the Metropolis-adjusted microcanonical sampler, through BlackJAX (local)", _mams),
    "svgd": ("Stein variational gradient descent, through BlackJAX, in groups of particles", _svgd),
}

KEEPS_ITS_SCHEDULE = ("smc",)
"""Samplers whose β stay geometric whatever the preset says."""


def build_sampler(name: str, preset: Preset, budget: int | None = None) -> AbstractSampler:
    """Return an untuned sampler by name.

    Parameters
    ----------
    name
        Of `SAMPLERS`.
    preset
        The task's settings.
    budget
        Evaluations per sample, for those that share it out between stages; it isn't set yet.

    Raises
    ------
    InvalidInputError
        Unknown name (the message lists the names), or settings that don't go together.
    """
    return SAMPLERS[known(name, SAMPLERS, "sampler")][1](preset, budget)
