"""Run the published code of "Conditional Diffusion Sampling" on the Gaussian-mixture tasks.

The script needs a checkout of that code and a Python that has ``torch``, ``numpy``, ``scipy`` and ``tqdm``;
it doesn't import ``cdsampler``, which never needs ``torch``. Nothing in the checkout is edited or copied:
the modules it imports but doesn't ship, or that these tasks never use, are replaced by stand-ins in memory.

The paper's budget counts one evaluation per replica (or particle of a group) and step. The script records that
nominal budget beside the evaluations that truly reach the target, counted where the samplers call it.

Example
-------
::

    python authors_runner.py CHECKOUT --task gm-2 --sampler cds --budget 2000 --samples 1000 --out cds.npz
"""

import argparse
import importlib
import importlib.util
import json
import subprocess
import sys
import time
import types
import warnings
from pathlib import Path

REQUIRED = ("torch", "numpy", "scipy", "tqdm")

# Files the published packages import and don't ship.
UNSHIPPED = tuple(
    f"torch_sampling.kernels.{part}" for kernel in ("nuts", "mams", "svgd")
    for part in (f"{kernel}_kernel", f"functional.{kernel}_fn")
)  # fmt: skip

# Packages imported for tasks or for bookkeeping that this script doesn't use.
UNUSED = (
    "h5py",
    "hydra",
    "omegaconf",
    "openmm",
    "openmm.app",
    "openmm.unit",
    "openmmtools",
    "openmmtools.testsystems",
    "ot",
    "simtk",
    "simtk.openmm",
    "simtk.unit",
)

# The values of ``experiments/configs/task/{gm,gmnu}_{2,16}_40.yaml``.
MIXTURE = {"scale": 40.0, "log_var_scaling": 1.0, "n_mixes": 40, "seed": 0}
HEAVY = {"perc_big_mixes": 0.15, "weight_big_mixes": 20.0}
TASKS = {
    "gm-2": {"dim": 2, **MIXTURE},
    "gmnu-2": {"dim": 2, **MIXTURE, **HEAVY},
    "gm-16": {"dim": 16, **MIXTURE},
    "gmnu-16": {"dim": 16, **MIXTURE, **HEAVY},
}
REPLICAS = {2: 5, 16: 10}  # experiments/run/run_cds_gm.py and run_pt_gm.py


class StandIn(types.ModuleType):
    """A module whose every attribute is a class that refuses to be used."""

    __path__ = ()

    def __getattr__(self, name):
        """Make the class called ``name`` on first use."""
        if name.startswith("__"):
            raise AttributeError(name)

        def refuse(*_args, **_kwargs):
            raise RuntimeError(f"{self.__name__}.{name} is a stand-in: this script can't run what needs it")

        made = type(name, (), {"__init__": refuse})
        setattr(self, name, made)
        return made


class Alias(types.ModuleType):
    """A module that looks up every attribute in another one, at the time of use.

    Parameters
    ----------
    name : str
        The name under which it's imported.
    source : str
        The module that has the attributes.
    """

    __path__ = ()

    def __init__(self, name, source):
        super().__init__(name)
        self._source = source

    def __getattr__(self, name):
        """Look ``name`` up in the source."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self._source), name)


class EvaluationCounter:
    """Count the points at which a target is evaluated, by replacing its two methods.

    A gradient's own call of ``log_prob`` is part of the same evaluation and isn't counted again.

    Parameters
    ----------
    target : TargetDistribution
        The outermost target, changed in place.

    Attributes
    ----------
    value_only, with_gradient : int
        Points evaluated so far without and with a gradient.
    """

    def __init__(self, target):
        self.value_only = 0
        self.with_gradient = 0
        self._inside_gradient = False
        self._log_prob = target.log_prob
        self._grad_log_prob = target.grad_log_prob
        target.log_prob = self.log_prob
        target.grad_log_prob = self.grad_log_prob

    def log_prob(self, x):
        """Evaluate, counting the points of ``x`` unless a gradient asked."""
        if not self._inside_gradient:
            self.value_only += x.numel() // x.shape[-1]
        return self._log_prob(x)

    def grad_log_prob(self, x, return_log_prob=False):
        """Evaluate with gradient, counting the points of ``x``."""
        self.with_gradient += x.numel() // x.shape[-1]
        self._inside_gradient = True
        try:
            return self._grad_log_prob(x, return_log_prob=return_log_prob)
        finally:
            self._inside_gradient = False

    def reset(self):
        """Start again from zero, and return the total so far."""
        total = self.value_only + self.with_gradient
        self.value_only = self.with_gradient = 0
        return total


def install(name, module):
    """Register ``module`` under ``name``, and as an attribute of its parent where that's there."""
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if isinstance(sys.modules.get(parent), StandIn):
        setattr(sys.modules[parent], child, module)


def install_stand_ins(checkout):
    """Make the checkout's packages importable without touching ``sys.path`` or the checkout.

    Parameters
    ----------
    checkout : pathlib.Path
        The root of the published repository.
    """
    for name in ("torch_sampling", "experiments", "experiments.utils"):
        package = types.ModuleType(name)  # bare: experiments/utils/__init__.py would import plots and loggers
        package.__path__ = [str(checkout.joinpath(*name.split(".")))]
        sys.modules[name] = package
    sys.modules["experiments.utils.plot"] = StandIn("experiments.utils.plot")

    for name in UNSHIPPED:
        if not checkout.joinpath(*name.split(".")).with_suffix(".py").is_file():
            install(name, StandIn(name))
    missing = {name for name in UNUSED if "." not in name and importlib.util.find_spec(name) is None}
    for name in UNUSED:
        if name.partition(".")[0] in missing:
            install(name, StandIn(name))

    # Some files still import the package by the name it had before publication.
    sys.modules["sampling"] = Alias("sampling", "torch_sampling")
    for name in ("targets", "targets.target_distribution"):
        sys.modules[f"sampling.{name}"] = Alias(f"sampling.{name}", f"torch_sampling.{name}")


def load_authors(checkout):
    """Import what this script uses from the checkout.

    Parameters
    ----------
    checkout : pathlib.Path
        The root of the published repository.

    Returns
    -------
    types.SimpleNamespace
        ``targets``, ``kernels``, ``samplers``, ``mixtures`` and ``schedules``, the modules.
    """
    sys.dont_write_bytecode = True  # leave no caches in the checkout
    install_stand_ins(checkout)
    with warnings.catch_warnings():  # the package silences all warnings when imported: keep that inside
        warnings.simplefilter("ignore")
        return types.SimpleNamespace(
            targets=importlib.import_module("torch_sampling.targets"),
            kernels=importlib.import_module("torch_sampling.kernels"),
            samplers=importlib.import_module("torch_sampling.samplers"),
            mixtures=importlib.import_module("torch_sampling.utils.targets"),
            schedules=importlib.import_module("experiments.utils.samplers"),
        )


def build_target(authors, task):
    """Build a task's mixture with the checkout's own function."""
    heavy = "perc_big_mixes" in TASKS[task]
    name = "nonuniform_gaussian_mixture" if heavy else "uniform_gaussian_mixture"
    return getattr(authors.mixtures, name)(**TASKS[task])


def find_mode(target, args):
    """Climb to a mode by gradient ascent on the target's log-density.

    The paper starts every chain at the highest mode, found by 1 000 iterations, but its file of initial
    points isn't published. Here the climb starts at every mean of the mixture and the highest end is kept,
    or it starts at the origin alone and ends at a mode near the centre. The choice changes the results of a
    short run.

    Parameters
    ----------
    target : TargetDistribution
        The target.
    args : argparse.Namespace
        The command line.

    Returns
    -------
    torch.Tensor
        The mode, of shape (1, dim).
    """
    x = target.means.clone() if args.mode == "highest" else target.means.new_zeros(1, target.dim)
    for _ in range(args.mode_iterations):
        x = (x + args.mode_step_size * target.grad_log_prob(x)).detach()
    best = target.log_prob(x).argmax().item()
    return x[best : best + 1]


def geometric_betas(authors, args):
    """Return the annealing schedule: a single 1 for one replica, else geometric from ``beta_min`` to 1."""
    import torch

    if args.replicas == 1:
        return torch.tensor([1.0])
    return authors.schedules.build_interpolation_schedule("geometric", args.replicas, args.beta_min, 1.0)


def run_nrpt(authors, target, x0, args):
    """Run non-reversible parallel tempering and keep the coldest replica.

    Parameters
    ----------
    authors : types.SimpleNamespace
        The checkout's modules.
    target : TargetDistribution
        The target.
    x0 : torch.Tensor
        The initial points, of shape (samples, dim).
    args : argparse.Namespace
        The command line.

    Returns
    -------
    torch.Tensor
        The samples, of shape (samples, dim).
    """
    sampler = authors.samplers.PT(
        target=target,
        reference=authors.targets.InfUniform(dim=target.dim),
        beta_schedule=geometric_betas(authors, args),
        kernel=authors.kernels.MALAKernel(),
        step_size=args.step_size,
        swap_mode="nrpt",
        swap_every=1,
        adaptation_rate=args.adaptation_rate,
        compile=False,
        verbose=False,
    )
    return sampler(x0, n_steps=args.budget // args.replicas)[:, -1, :]


def run_cds(authors, target, x0, args):
    """Run conditional diffusion sampling: the tempered jump to t0, then the integration to 1.

    Parameters
    ----------
    authors : types.SimpleNamespace
        The checkout's modules.
    target : TargetDistribution
        The target.
    x0 : torch.Tensor
        The initial points, of shape (samples, dim); the reference draws ``z`` are the same points.
    args : argparse.Namespace
        The command line.

    Returns
    -------
    torch.Tensor
        The samples, of shape (samples, dim).
    """
    times = authors.schedules.build_interpolation_schedule("geometric", args.integration_steps, args.t0, 1.0)
    noise = authors.schedules.build_noise_schedule(args.noise_var, times, "constant")
    integration_budget = args.integration_steps * (1 + args.corrector_steps)
    sampler = authors.samplers.CDS(
        target=target,
        time_schedule=times,
        noise_schedule=noise,
        corrector_mode="mala",
        corrector_steps=args.corrector_steps,
        corrector_adaptation_rate=0.0,
        corrector_step_size=args.step_size,
        jump_steps=max(args.budget - integration_budget, 0) // args.replicas,
        jump_beta_schedule=geometric_betas(authors, args),
        jump_ref_std=args.ref_std,
        jump_step_mode="mala",
        jump_swap_mode="nrpt",
        jump_swap_every=1,
        jump_adaptation_rate=args.adaptation_rate,
        compile=False,
        verbose=False,
    )
    return sampler(x0=x0, z=x0.clone())


def run_smc(authors, target, x0, args):
    """Run annealed sequential Monte Carlo as the published mixture runs do: geometric β, resampling at every step.

    Their nominal budget is that of a group, so that it has ``budget // particles`` temperatures. A step evaluates
    each particle twice, once for its weight and once for its move. The move takes the log-density and gradient of
    the particle's slot from the step before: those of the old β, and not of the particle that resampling put there.
    ``--refresh-cache`` evaluates them anew, which is one more evaluation a step and makes the move right.

    Parameters
    ----------
    authors : types.SimpleNamespace
        The checkout's modules.
    target : TargetDistribution
        The target.
    x0 : torch.Tensor
        The initial points, of shape (samples, dim).
    args : argparse.Namespace
        The command line.

    Returns
    -------
    torch.Tensor
        The particles after the last resampling, of shape (samples, dim).
    """
    n_betas = max(args.budget // args.particles, 2)
    sampler = authors.samplers.SMC(
        target=target,
        beta_schedule=authors.schedules.build_interpolation_schedule("geometric", n_betas, args.beta_min, 1.0),
        kernel=authors.kernels.MALAKernel(),
        n_particles=args.particles,
        step_size=args.step_size,
        resampling_threshold=1.0,
        resampling_method="systematic",
        adaptation_rate=args.adaptation_rate,
        verbose=False,
        compile=False,
    )
    if args.refresh_cache:
        move = sampler._kernel_fn

        def move_from_fresh(state, step_size, beta):
            annealed = authors.targets.AnnealedTarget(target, beta)
            grad, log_prob = annealed.grad_log_prob(state.x, return_log_prob=True)
            return move(state._replace(log_prob=log_prob, grad=grad), step_size, beta)

        sampler._kernel_fn = move_from_fresh
    return sampler(x0)


SAMPLERS = {"nrpt": run_nrpt, "cds": run_cds, "smc": run_smc}

# Settings of the command line that concern one sampler alone.
OF_CDS = ("t0", "integration_steps", "noise_var", "corrector_steps", "ref_std")
OF_SMC = ("particles", "refresh_cache")
FOREIGN = {"nrpt": OF_CDS + OF_SMC, "cds": OF_SMC, "smc": (*OF_CDS, "replicas")}


def checkout_commit(checkout):
    """Return the checkout's commit, or None where git can't tell."""
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def settings_json(args):
    """Describe the run, but for the paths of this machine, as JSON."""
    import torch

    settings = {name: value for name, value in vars(args).items() if name not in ("checkout", "out")}
    for name in FOREIGN[args.sampler]:
        del settings[name]
    settings["target"] = TASKS[args.task]
    settings["commit"] = checkout_commit(args.checkout)
    settings["threads"] = torch.get_num_threads()
    return json.dumps(settings, sort_keys=True)


def sample(authors, args):
    """Build the target, find the mode, run the sampler, and gather what's saved.

    Parameters
    ----------
    authors : types.SimpleNamespace
        The checkout's modules.
    args : argparse.Namespace
        The command line.

    Returns
    -------
    dict of str to array-like
        The arrays to save, by name.
    """
    import numpy as np
    import torch

    torch.manual_seed(args.seed)
    target = build_target(authors, args.task)
    counter = EvaluationCounter(target)
    mode = find_mode(target, args)
    mode_evaluations = counter.reset()

    start = time.perf_counter()
    samples = SAMPLERS[args.sampler](authors, target, mode.repeat(args.samples, 1), args)
    seconds = time.perf_counter() - start
    samples = samples.detach().cpu().numpy().astype(np.float32)
    return {
        "samples": samples,
        "value_evaluations": counter.value_only / args.samples,
        "gradient_evaluations": counter.with_gradient / args.samples,
        "nominal_budget": args.budget,
        "seconds": seconds,
        "diverged": int((~np.isfinite(samples).all(axis=1)).sum()),
        "mode": mode[0].numpy(),
        "mode_evaluations": mode_evaluations,
        "settings": settings_json(args),
        "torch_version": torch.__version__,
    }


def summary(args, result):
    """Say in one line what was run, what it cost, and how many samples diverged."""
    import numpy as np

    finite = np.abs(result["samples"][np.isfinite(result["samples"])])
    return (
        f"{args.task} {args.sampler}: {args.samples} samples, nominal budget {args.budget}, "
        f"true evaluations per sample {result['value_evaluations']:g} value-only "
        f"and {result['gradient_evaluations']:g} with gradient, {result['seconds']:.1f} s, "
        f"{result['diverged']} not finite, largest finite |x| {finite.max(initial=0):.4g}"
    )


def number(kind, low, high=float("inf"), closed=True):
    """Return an argparse type: a number from ``low`` (itself allowed if ``closed``) to below ``high``."""

    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a valid {kind.__name__}") from None
        if not (low <= value < high) or (value == low and not closed):
            bound = f"{'at least' if closed else 'above'} {low}"
            limit = "" if high == float("inf") else f" and below {high}"
            raise argparse.ArgumentTypeError(f"{text} must be {bound}{limit}")
        return value

    return parse


def build_parser():
    """Return the command line's parser."""
    count, positive = number(int, 1), number(float, 0, closed=False)
    fraction = number(float, 0, 1, closed=False)
    parser = argparse.ArgumentParser(
        description="Run the published conditional-diffusion-sampling code on a Gaussian-mixture task.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("checkout", type=Path, help="root of a checkout of the published repository")
    add("--task", choices=tuple(TASKS), required=True, help="the target")
    add("--sampler", choices=tuple(SAMPLERS), required=True, help="the method")
    add("--budget", type=count, default=2000, help="nominal evaluations per sample")
    add("--samples", type=count, default=1000, help="chains, each giving one sample")
    add("--seed", type=number(int, 0), default=0, help="torch seed")
    add("--out", type=Path, required=True, help="npz file to write")
    add("--replicas", type=number(int, 0), default=0, help="replicas; 0 means 5 in 2-d and 10 in 16-d")
    add("--beta-min", type=fraction, default=0.001, help="lowest inverse temperature")
    add("--step-size", type=positive, default=0.1, help="initial MALA step size; times t0 in the jump of cds")
    add("--adaptation-rate", type=number(float, 0), default=0.05, help="adaptation of the tempering's steps")
    cds = parser.add_argument_group("cds only").add_argument
    cds("--t0", type=fraction, default=0.01, help="time to which the tempering jumps")
    cds("--integration-steps", type=number(int, 2), default=100, help="geometric times from t0 to 1")
    cds("--noise-var", type=number(float, 0), default=0.5, help="constant noise variance of the integration")
    cds("--corrector-steps", type=number(int, 0), default=0, help="MALA corrections per integration step")
    cds("--ref-std", type=positive, default=1.0, help="standard deviation of the reference")
    smc = parser.add_argument_group("smc only").add_argument
    smc("--particles", type=count, default=100, help="particles of a group")
    smc("--refresh-cache", action="store_true", help="evaluate particles anew before they move: the repaired code")
    mode = parser.add_argument_group("initial mode").add_argument
    mode("--mode", choices=("highest", "central"), default="highest", help="climb from means or origin")
    mode("--mode-iterations", type=number(int, 0), default=1000, help="gradient-ascent iterations")
    mode("--mode-step-size", type=positive, default=0.1, help="gradient-ascent step size")
    return parser


def parse_args(argv=None):
    """Read and check the command line; anything wrong exits with status 2."""
    parser = build_parser()
    args = parser.parse_args(argv)
    args.replicas = args.replicas or REPLICAS[TASKS[args.task]["dim"]]
    if not args.checkout.is_dir():
        parser.error(f"no such checkout: {args.checkout}")
    for name in ("torch_sampling/samplers/cds.py", "experiments/utils/samplers.py"):
        if not (args.checkout / name).is_file():
            parser.error(f"{args.checkout} is not a checkout of the published repository: it has no {name}")
    if args.sampler == "nrpt" and args.budget < args.replicas:
        parser.error(f"a budget of {args.budget} gives no step to {args.replicas} replicas")
    if args.sampler == "smc" and args.samples % args.particles:
        parser.error(f"{args.samples} samples are no whole number of groups of {args.particles} particles")
    if not args.out.absolute().parent.is_dir():
        parser.error(f"no such folder to write to: {args.out.absolute().parent}")
    if args.out.is_dir():
        parser.error(f"{args.out} is a folder, not a file to write")
    absent = [name for name in REQUIRED if importlib.util.find_spec(name) is None]
    if absent:
        parser.error(f"this Python has no {', '.join(absent)}; run the script with one that has")
    return args


def main(argv=None):
    """Run the command line."""
    args = parse_args(argv)
    authors = load_authors(args.checkout.resolve())
    import numpy as np

    result = sample(authors, args)
    with args.out.open("wb") as file:
        np.savez(file, **result)
    print(summary(args, result))


if __name__ == "__main__":
    main()
