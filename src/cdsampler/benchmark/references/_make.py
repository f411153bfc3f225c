import datetime
import importlib.metadata
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax

from cdsampler.benchmark.references import _store as store
from cdsampler.benchmark.references._recipe import AbstractRecipe, Block
from cdsampler.benchmark.references._recipes import RECIPES, recipe_of
from cdsampler.benchmark.references._reference import CorruptFileError, Reference, read_reference, write_reference
from cdsampler.errors import InvalidInputError, ReferenceWarning
from cdsampler.sampling._pool import Ledger, run_jobs

OnProgress = Callable[[int, int, str], None]
# What `load_reference` makes without being asked to.
QUICK_MINUTES = 6.0
# Mean energies from different starts that are further apart than this, in standard errors, haven't converged.
MAX_STARTS_Z = 3.0


class Listing(NamedTuple):
    """What there is for one target.

    Attributes
    ----------
    name, method : str
    minutes : float
        About how long it takes to make on two cores.
    where : str
        "cached", "packaged", "made on first use" or "to be made".
    path : Path
        Of the cached file, whether it exists or not.
    """

    name: str
    method: str
    minutes: float
    where: str
    path: Path


def list_references() -> list[Listing]:
    """Return what references there are, and where."""
    return [Listing(name, r.method, r.minutes, _where(r), store.path_of(name)) for name, r in RECIPES.items()]


def load_reference(name: str, *, on_progress: OnProgress | None = None) -> Reference:
    """Return the reference of a target: from the cache, from the library, or made now if that takes a few minutes.

    Parameters
    ----------
    name
        Of a target; "-cartesian" makes no difference.
    on_progress
        Called with blocks done, blocks in all and what they are, if the reference has to be made.

    Returns
    -------
    Reference

    Raises
    ------
    InvalidInputError
        Unknown name; there is nothing yet and making it takes long; or the cache can't be written to.

    Warns
    -----
    ReferenceWarning
        The cached file is damaged; it's then treated as if it weren't there.
    """
    recipe = recipe_of(name)
    path = store.path_of(recipe.name)
    if path.exists():
        try:
            return read_reference(path, recipe.name, recipe.dim)
        except CorruptFileError as error:
            instead = "the packaged one is used" if store.has_packaged(recipe.name) else "it's made anew"
            warnings.warn(f"The reference in {path} is damaged: {error}; {instead}.", ReferenceWarning, stacklevel=2)
    if store.has_packaged(recipe.name):
        return store.read_packaged(recipe.name, recipe.dim)
    if recipe.minutes > QUICK_MINUTES:
        raise InvalidInputError(
            f"There is no reference for {recipe.name} yet, and making it takes about {recipe.minutes:.0f} minutes: run "
            f"'cdsampler reference {recipe.name} --regenerate' or generate_reference({recipe.name!r})."
        )
    return make_reference(recipe, seed=0, on_progress=on_progress)


def generate_reference(
    name: str, *, seed: int = 0, n: int | None = None, on_progress: OnProgress | None = None
) -> Reference:
    """Make the reference of a target anew, and keep it in the cache.

    Parameters
    ----------
    name
        Of a target; "-cartesian" makes no difference.
    seed
        Same seed, same samples, with the same versions of the libraries on one kind of processor, whether x64 is
        enabled or not.
    n
        Samples; default the recipe's number.
    on_progress
        Called with blocks done, blocks in all and what they are, after each block.

    Returns
    -------
    Reference

    Raises
    ------
    InvalidInputError
        Unknown name, bad number or seed, or the cache can't be written to.
    MissingExtraError
        Molecular dynamics without OpenMM.
    KeyboardInterrupt
        Finished blocks are kept: the same call goes on where this one stopped, and ends in the same samples.
    """
    return make_reference(recipe_of(name).with_n(n), seed=seed, on_progress=on_progress)


def make_reference(recipe: AbstractRecipe, *, seed: int = 0, on_progress: OnProgress | None = None) -> Reference:
    """Make a reference by any recipe, and keep it in the cache under the recipe's name.

    Parameters
    ----------
    recipe
    seed
    on_progress
        As for `generate_reference`.

    Raises
    ------
    InvalidInputError
        Bad seed, or the cache can't be written to.
    """
    if isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise InvalidInputError(f"seed must lie in [0, 2^63), got {seed!r}.")
    store.require_writable()
    partial = store.PartialRun(recipe, seed, _version())
    blocks = (_one_by_one if recipe.is_sequential else _side_by_side)(recipe, seed, partial, on_progress)
    draws = recipe.assemble(blocks)
    provenance: dict[str, Any] = {
        "method": recipe.method,
        "settings": recipe.settings(),
        "seed": seed,
        "versions": {"cdsampler": _version(), **recipe.versions()},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "n": len(draws.samples),
        **draws.facts,
    }
    reference = Reference(recipe.name, draws.samples, None, draws.is_independent, draws.autocorrelation, provenance)
    provenance["checksum"] = reference.checksum
    _warn_of_starts(reference)
    write_reference(reference, store.path_of(recipe.name))
    partial.remove()
    return reference


def _one_by_one(
    recipe: AbstractRecipe, seed: int, partial: store.PartialRun, on_progress: OnProgress | None
) -> list[Block]:
    blocks: list[Block] = []
    for index in range(recipe.n_blocks):
        block = partial.load(index)
        if block is None:
            block = _block(recipe, seed, index, blocks[-1] if blocks else None)
            partial.keep(index, block)
        blocks.append(block)
        if on_progress is not None:
            on_progress(index + 1, recipe.n_blocks, recipe.method)
    return blocks


def _side_by_side(
    recipe: AbstractRecipe, seed: int, partial: store.PartialRun, on_progress: OnProgress | None
) -> list[Block]:
    blocks = {index: block for index in range(recipe.n_blocks) if (block := partial.load(index)) is not None}
    missing = [index for index in range(recipe.n_blocks) if index not in blocks]
    n_before, n_reported = len(blocks), -1

    def work(index: int) -> int:
        blocks[index] = _block(recipe, seed, index, None)
        partial.keep(index, blocks[index])
        return index

    def report(n_finished: int) -> None:
        nonlocal n_reported
        if on_progress is not None and n_finished != n_reported:
            n_reported = n_finished
            on_progress(n_before + n_finished, recipe.n_blocks, recipe.method)

    if missing and run_jobs(work, missing, Ledger(), report, len(missing)).is_partial:
        raise KeyboardInterrupt
    return [blocks[index] for index in range(recipe.n_blocks)]


def _block(recipe: AbstractRecipe, seed: int, index: int, previous: Block | None) -> Block:
    # References don't depend on JAX's default type, nor do blocks that one process leaves to another.
    with jax.enable_x64(False):
        return recipe.block(seed, index, previous)


def _warn_of_starts(reference: Reference) -> None:
    z = reference.provenance.get("starts_z")
    if z is not None and abs(z) > MAX_STARTS_Z:
        warnings.warn(
            f"Chains of {reference.name} from different starts have mean energies {abs(z):.1f} standard errors apart: "
            "they probably haven't converged. Give the recipe a longer burn-in (make_reference).",
            ReferenceWarning,
            stacklevel=3,
        )


def _where(recipe: AbstractRecipe) -> str:
    if store.path_of(recipe.name).exists():
        return "cached"
    if store.has_packaged(recipe.name):
        return "packaged"
    return "made on first use" if recipe.minutes <= QUICK_MINUTES else "to be made"


def _version() -> str:
    return importlib.metadata.version("cdsampler")
