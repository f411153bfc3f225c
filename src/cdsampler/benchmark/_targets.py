from collections.abc import Callable

from cdsampler.benchmark._names import known
from cdsampler.targets import (
    AbstractTarget,
    alanine_dipeptide,
    bayesian_neural_network,
    gaussian_mixture,
    lennard_jones,
)

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


def build_target(name: str) -> AbstractTarget:
    """Return a target by name.

    Raises
    ------
    InvalidInputError
        Unknown name; the message lists the names.
    """
    return TARGETS[known(name, TARGETS, "target")][1]()
