"""Settings of samplers, one set for each task: what this library recommends, and what the paper used."""

from dataclasses import dataclass, fields, replace
from typing import Any, get_args, get_type_hints

from cdsampler.benchmark._names import known
from cdsampler.errors import InvalidInputError

_CHOICES: dict[str, tuple[str, ...]] = {
    "reference": ("gaussian", "flat"),
    "initialisation": ("reference", "mode", "own"),
    "kernel": ("mala", "hmc"),
    "resampling": ("systematic", "multinomial"),
    "returns": ("particles", "one"),
    "optimizer": ("adam", "adagrad", "sgd"),
}


@dataclass(frozen=True)
class Preset:
    """Settings of a task, the same for every budget. Each sampler takes what concerns it.

    Attributes
    ----------
    n_replicas
        Replicas of tempering.
    reference_scale
        Standard deviation of the Gaussian reference in target coordinates, τ/t0: with τ it fixes t0.
    beta_min
        Smallest positive β of the geometric schedule that tuning starts from, and that a flat reference keeps.
    step_size
        MALA's, where tuning starts, in squared target units; kernels with steps in target units start from its root.
    noise_variance
        σ² of the SDE, constant.
    integration_steps
        Steps of the SDE.
    tau
        Standard deviation of the reference in path coordinates; below the reference scale.
    reference
        "gaussian" about the mode (for the neural network that is the prior), or "flat".
    initialisation
        Where chains start: "reference" (draws of N(mode, reference_scale²)), "mode" (all there, as in the paper), or
        "own": samplers with a reference start from it, all others at the mode.
    is_schedule_adapted
        Whether β moves to equal rejections, or stays geometric.
    kernel
        "mala" or "hmc", wherever a sampler has a local kernel of its own choice.
    n_leapfrog, smallest_step
        Leapfrog steps of HMC, and how much smaller its step size may be drawn; see `cdsampler.HMC`.
    corrector_steps
        MALA steps after each step of the SDE.
    rho
        Share of the budget that stage 1 of CDS gets; if given, the SDE takes as many steps as the rest pays for.
    n_particles
        Particles of a group, of annealed samplers and SVGD.
    n_moves
        Kernel steps of a particle at each temperature.
    ess_threshold, resampling, returns
        See `cdsampler.SMC`.
    alpha_min, alpha_max, n_levels, n_sweeps, n_denoising, noise_scale
        See `cdsampler.DiGS`; the levels are equally spaced in α.
    max_doublings
        Greatest tree depth of NUTS.
    mams_steps
        Integration steps of MAMS: their mean, or their number if `is_random_length` is false.
    is_random_length
        Whether MAMS draws the length of its trajectories.
    n_inner, n_inner_moves
        Inner chains of RDMC and their moves.
    learning_rate, optimizer
        Of SVGD.
    """

    n_replicas: int
    reference_scale: float
    beta_min: float = 1e-3
    step_size: float = 1.0
    noise_variance: float = 0.5
    integration_steps: int = 100
    tau: float = 1.0
    reference: str = "gaussian"
    initialisation: str = "reference"
    is_schedule_adapted: bool = True
    kernel: str = "mala"
    n_leapfrog: int = 5
    smallest_step: float = 1.0
    corrector_steps: int = 0
    rho: float | None = None
    n_particles: int = 100
    n_moves: int = 1
    ess_threshold: float = 0.5
    resampling: str = "systematic"
    returns: str = "particles"
    alpha_min: float = 0.1
    alpha_max: float = 0.9
    n_levels: int = 5
    n_sweeps: int = 1
    n_denoising: int = 4
    noise_scale: float = 1.0
    max_doublings: int = 5
    mams_steps: float = 3.0
    is_random_length: bool = True
    n_inner: int = 10
    n_inner_moves: int = 4
    learning_rate: float = 1.0
    optimizer: str = "adam"

    def __post_init__(self) -> None:
        for name, options in _CHOICES.items():
            known(getattr(self, name), options, f"value of {name}")
        if self.rho is not None and not 0 <= self.rho < 1:
            raise InvalidInputError(f"rho must be at least 0 and below 1, got {self.rho}.")
        if not 0 < self.alpha_min <= self.alpha_max < 1:
            raise InvalidInputError(
                f"alpha_min and alpha_max must grow within (0, 1), got {self.alpha_min} and {self.alpha_max}."
            )
        for name in (
            "n_levels",
            "n_sweeps",
            "n_denoising",
            "n_moves",
            "n_particles",
            "n_leapfrog",
            "integration_steps",
        ):
            if getattr(self, name) < 1:
                raise InvalidInputError(f"{name} must be at least 1, got {getattr(self, name)}.")

    @property
    def t0(self) -> float:
        """Initial time of the linear interpolant."""
        return self.tau / self.reference_scale


# Draws about the mode have overlapping atoms, from where local moves don't get on.
_CLUSTER: dict[str, Any] = {"initialisation": "own", "noise_scale": 0.1}

PRESETS: dict[str, Preset] = {
    "gm-2": Preset(n_replicas=5, reference_scale=50.0),
    "gmnu-2": Preset(n_replicas=5, reference_scale=50.0),
    "gm-16": Preset(n_replicas=12, reference_scale=70.0),
    "gmnu-16": Preset(n_replicas=18, reference_scale=100.0),
    "lj-13": Preset(n_replicas=12, reference_scale=0.5, beta_min=1e-5, step_size=1e-3, tau=0.05, **_CLUSTER),
    "lj-55": Preset(n_replicas=24, reference_scale=0.5, beta_min=1e-5, step_size=1e-3, tau=0.05, **_CLUSTER),
    "aldp": Preset(n_replicas=24, reference_scale=0.3, beta_min=1e-4, step_size=1e-3, tau=0.03, **_CLUSTER),
    "aldp-implicit": Preset(n_replicas=24, reference_scale=0.3, beta_min=1e-4, step_size=1e-3, tau=0.03, **_CLUSTER),
    "aldp-cartesian": Preset(
        n_replicas=24,
        reference_scale=0.1,
        beta_min=1e-5,
        step_size=1e-5,
        tau=0.01,
        initialisation="own",
        noise_scale=0.01,
    ),
    # The prior is N(0, I): as the reference about 0, the path tempers the likelihood.
    "bnn": Preset(n_replicas=24, reference_scale=1.0, beta_min=1e-5, step_size=1e-3, tau=0.1, noise_scale=0.1),
}

_PAPER = {"reference": "flat", "initialisation": "mode", "n_levels": 1, "is_random_length": False}


def _paper(t0: float, step: float, beta_min: float, **settings: Any) -> Preset:
    """Return the paper's settings of a task: base step for every kernel and for σ, τ = 1, all chains at the mode."""
    return Preset(
        n_replicas=5,
        reference_scale=1 / t0,
        beta_min=beta_min,
        step_size=step,
        noise_variance=step**2,
        **{**_PAPER, "max_doublings": 5, "mams_steps": 3.0, "n_leapfrog": 5, **settings},
    )


_PAPER_GM = _paper(0.01, 0.1, 0.01)
_PAPER_LJ = _paper(0.2, 1e-4, 0.7)
_PAPER_ALDP = _paper(0.1, 1e-6, 0.3, kernel="hmc")

PAPER_PRESETS: dict[str, Preset] = {
    **dict.fromkeys(("gm-2", "gmnu-2", "gm-16", "gmnu-16"), _PAPER_GM),
    **dict.fromkeys(("lj-13", "lj-55"), _PAPER_LJ),
    **dict.fromkeys(("aldp", "aldp-implicit", "aldp-cartesian"), _PAPER_ALDP),
    "bnn": _paper(0.1, 1e-5, 0.7, reference="gaussian"),
}
"""The paper's base steps, initial times and initialisation (appendix 'Experimental Setup'), one point of its grids.

Its base step is the step size of every kernel where adaptation starts, and σ of the SDE.
"""

PRESET_KINDS: dict[str, dict[str, Preset]] = {"recommended": PRESETS, "paper": PAPER_PRESETS}


def preset_of(task: str, kind: str = "recommended") -> Preset:
    """Return a task's settings.

    Parameters
    ----------
    task
        Name of a target of the catalog.
    kind
        "recommended" or "paper".

    Raises
    ------
    InvalidInputError
        Unknown name; the message lists the names.
    """
    presets = PRESET_KINDS[known(kind, PRESET_KINDS, "preset")]
    return presets[known(task, presets, "target")]


def with_overrides(preset: Preset, **changes: float | int | str | bool | None) -> Preset:
    """Return the preset with the settings that aren't None replaced."""
    return replace(preset, **{k: v for k, v in changes.items() if v is not None})  # type: ignore[arg-type]


def parse_setting(text: str) -> tuple[str, Any]:
    """Return name and value of `name=value`, converted to the type of that setting of a preset.

    Raises
    ------
    InvalidInputError
        No such setting, or a value of another type.
    """
    name, separator, value = text.partition("=")
    known(name, [field.name for field in fields(Preset)], "setting")
    kind = get_type_hints(Preset)[name]
    kind = next((k for k in get_args(kind) if k is not type(None)), kind)
    values: dict[str, bool] = {"true": True, "false": False}
    try:
        parsed = values[value.lower()] if kind is bool else kind(value)
    except (ValueError, KeyError):
        parsed = None
    if not separator or parsed is None:
        raise InvalidInputError(f"Settings are given as NAME=VALUE, and {name} is a {kind.__name__}: got {text!r}.")
    return name, parsed
