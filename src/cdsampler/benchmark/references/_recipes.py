import difflib

from cdsampler.benchmark.references._lennard_jones import LennardJonesHMC
from cdsampler.benchmark.references._mixtures import ExactSampling
from cdsampler.benchmark.references._molecular_dynamics import ReplicaExchangeMD
from cdsampler.benchmark.references._neural_network import NeuralNetworkHMC
from cdsampler.benchmark.references._recipe import AbstractRecipe
from cdsampler.errors import InvalidInputError

# Steps and distances between draws were chosen by measured acceptance and autocorrelation of the energy: a hundred
# or two evaluations for the clusters, a thousand or more for the network.
RECIPES: dict[str, AbstractRecipe] = {
    recipe.name: recipe
    for recipe in (
        *(ExactSampling(name, 10_000) for name in ("gm-2", "gmnu-2", "gm-16", "gmnu-16")),
        LennardJonesHMC(
            name="lj-13",
            n=10_000,
            step_size=0.02,
            leapfrog_steps=20,
            burn_in=300,
            spacing=75,
            chains_per_block=50,
            draws_per_chain=20,
            n_particles=13,
        ),
        LennardJonesHMC(
            name="lj-55",
            n=10_000,
            step_size=0.015,
            leapfrog_steps=20,
            burn_in=200,
            spacing=40,
            chains_per_block=50,
            draws_per_chain=20,
            n_particles=55,
        ),
        ReplicaExchangeMD("aldp", 20_000),
        ReplicaExchangeMD("aldp-implicit", 2_000),
        NeuralNetworkHMC(
            name="bnn",
            n=2_000,
            step_size=0.005,
            leapfrog_steps=50,
            burn_in=1600,
            spacing=40,
            chains_per_block=44,
            draws_per_chain=10,
        ),
    )
}


def recipe_of(name: str) -> AbstractRecipe:
    """Return the recipe of a target's reference; coordinates don't matter, so "-cartesian" is dropped.

    Raises
    ------
    InvalidInputError
        Unknown name; the message lists the names.
    """
    plain = name.removesuffix("-cartesian")
    if plain in RECIPES and (plain == name or plain.startswith("aldp")):
        return RECIPES[plain]
    near = difflib.get_close_matches(name, RECIPES, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise InvalidInputError(f"There is no reference for {name!r}: choose from {', '.join(RECIPES)}.{hint}")
