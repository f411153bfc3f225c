"""Run the published code of "Diffusive Gibbs Sampling" on a Gaussian mixture, counting what reaches its energy.

The script needs a checkout of that code and a Python that has ``torch`` and ``numpy``; it doesn't import
``cdsampler``, which never needs ``torch``. ``compare_peers.py`` calls it.

Example
-------
::

    python peer_digs.py CHECKOUT --mixture mixture.npz --sweeps 25,300 --out digs.npz

The mixture's file has ``means`` (modes, dim), ``weights`` (modes,) and the scalar ``variance``.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch


class CountedEnergy:
    """Minus the log-density of a mixture, which counts the points it's given, with and without a gradient.

    Parameters
    ----------
    means, weights, variance : array_like
        Of the components.
    """

    def __init__(self, means, weights, variance):
        self.means = torch.as_tensor(means, dtype=torch.float64)
        self.log_weights = torch.log(torch.as_tensor(weights, dtype=torch.float64))
        self.variance = float(variance)
        self.value_only = self.with_gradient = 0

    def __call__(self, x):
        """Return the energies of points, shape (n,)."""
        if x.requires_grad:
            self.with_gradient += len(x)
        else:
            self.value_only += len(x)
        squares = ((x[:, None, :] - self.means) ** 2).sum(-1)
        log_norm = 0.5 * x.shape[1] * np.log(2 * np.pi * self.variance)
        return log_norm - torch.logsumexp(self.log_weights - squares / (2 * self.variance), dim=1)


def main():
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("checkout", type=Path, help="root of a checkout of the published repository")
    add("--mixture", type=Path, required=True)
    add("--out", type=Path, required=True, help="npz file to write")
    add("--sweeps", default="300", help="numbers of sweeps after which the chains are kept, in increasing order")
    add("--chains", type=int, default=500, help="chains, all from the origin")
    add("--alpha", type=float, default=0.1)
    add("--langevin-steps", type=int, default=5, help="of a sweep")
    add("--step-size", type=float, default=0.1)
    add("--seed", type=int, default=0)
    args = parser.parse_args()

    sys.dont_write_bytecode = True  # leave no caches in the checkout
    sys.path.insert(0, str(args.checkout))
    from samplers.DiffusiveGibbs import langevin_diffusive_gibbs_sampler_step

    torch.manual_seed(args.seed)
    with np.load(args.mixture) as mixture:
        energy = CountedEnergy(mixture["means"], mixture["weights"], mixture["variance"])
    x, done, kept = torch.zeros(args.chains, energy.means.shape[1], dtype=torch.float64), 0, {}
    for n_sweeps in map(int, args.sweeps.split(",")):
        x = langevin_diffusive_gibbs_sampler_step(
            x,
            energy,
            alpha=args.alpha,
            std=float(np.sqrt(1 - args.alpha**2)),
            num_gibbs_sweeps=n_sweeps - done,
            num_langevin_steps_per_sweep=args.langevin_steps,
            step_size=args.step_size,
            use_mala=True,
        )
        done = n_sweeps
        kept[f"samples_{n_sweeps}"] = x.numpy()
        kept[f"value_{n_sweeps}"] = energy.value_only / args.chains
        kept[f"gradient_{n_sweeps}"] = energy.with_gradient / args.chains
    np.savez(args.out, **kept)


if __name__ == "__main__":
    main()
