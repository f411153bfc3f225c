"""Metrics of two backbone dihedral angles: Ramachandran histograms, free energies and weights of basins.

Angles are in radians on the torus: any real number stands for itself modulo 2π.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cdsampler.errors import InvalidInputError
from cdsampler.metrics._validate import FloatArray, as_finite_rows, as_vector, require_at_least

BOLTZMANN = 0.008314462618
"""Boltzmann's constant times Avogadro's, in kJ/mol/K."""

_CHAINS_ENOUGH = 8  # chain means whose spread is worth more than that of batches, which miss slow modes


class BasinWeight(NamedTuple):
    """Share of the draws in a basin, its standard error, and the number ``n`` of draws."""

    weight: float
    standard_error: float
    n: int


def ramachandran_kl(
    angles: ArrayLike,
    reference: ArrayLike,
    bins: int = 36,
    pseudocount: float | None = 0.5,
    *,
    epsilon: float | None = None,
    reference_weights: ArrayLike | None = None,
) -> float:
    """Kullback-Leibler divergence of a sample's Ramachandran histogram from the reference's.

    Parameters
    ----------
    angles : array_like, [n, 2]
        Dihedral angles φ and ψ of the sample, in radians.
    reference : array_like, [m, 2]
        The same angles of the reference; its size may differ.
    bins : int
        Number of equal bins of each angle.
    pseudocount : float or None
        Number of draws added to each bin of both histograms before they are normalised.
    epsilon : float, optional
        Instead of ``pseudocount``, which must be None then: a number added to the *normalised* histograms P and
        Q, as the published benchmark does with 1e-10.
    reference_weights : array_like, [m], optional
        Weights of the reference's rows, up to a factor; equal by default. Counts are then in units of an
        effective draw, of which there are (Σ w)² / Σ w².

    Returns
    -------
    float
        ``KL(reference || sample) = Σ P log(P / Q)`` in nats; with ``epsilon``,
        ``Σ P log((P + epsilon) / (Q + epsilon))``.

    Raises
    ------
    InvalidInputError
        If a shape is wrong, an angle is not finite, weights are negative or sum to 0, ``bins < 1``, or not
        exactly one of ``pseudocount`` and ``epsilon`` is a positive number.

    Notes
    -----
    With ``epsilon = 1e-10`` a bin that the sample misses costs ``P log(P / 1e-10)``: such bins outweigh all
    others, and the value says mostly how many of them a finite sample leaves empty. The pseudocount is worth
    half a draw, so an empty bin costs no more than its evidence. Both are biased upwards for finite samples:
    compare with the floor of exact samples of the same size.
    """
    if (pseudocount is None) == (epsilon is None):
        raise InvalidInputError(
            f"pseudocount is {pseudocount} and epsilon is {epsilon}; pass one of them and None for the other."
        )
    added = _require_positive("pseudocount", pseudocount) if epsilon is None else _require_positive("epsilon", epsilon)
    counts = _counts("angles", angles, bins)
    expected = _counts("reference", reference, bins, reference_weights)
    if epsilon is None:
        counts, expected = counts + added, expected + added
    sample_shares, shares = counts / counts.sum(), expected / expected.sum()
    if epsilon is None:
        return float((shares * np.log(shares / sample_shares)).sum())
    return float((shares * np.log((shares + added) / (sample_shares + added))).sum())


def free_energy_rmse(
    angles: ArrayLike,
    reference: ArrayLike,
    bins: int = 36,
    min_probability: float = 1e-4,
    temperature_kelvin: float = 300.0,
    *,
    reference_weights: ArrayLike | None = None,
) -> float:
    """Root-mean-square error of the free energy surface of two dihedral angles, in kJ/mol.

    Parameters
    ----------
    angles : array_like, [n, 2]
        Dihedral angles φ and ψ of the sample, in radians.
    reference : array_like, [m, 2]
        The same angles of the reference; its size may differ.
    bins : int
        Number of equal bins of each angle.
    min_probability : float
        Only bins with more than this share of the reference count.
    temperature_kelvin : float
        The temperature T.
    reference_weights : array_like, [m], optional
        Weights of the reference's rows, up to a factor; equal by default.

    Returns
    -------
    float
        The root of the plain mean over those bins of the squared difference of ``F = −k T log p``, after the
        mean difference, weighted by the reference's p, is taken off, as free energies have no zero. A bin that
        the sample misses counts as half a draw.

    Raises
    ------
    InvalidInputError
        If a shape is wrong, an angle is not finite, weights are negative or sum to 0, an option is out of
        range, or no bin is above ``min_probability``.
    """
    temperature = _require_positive("temperature_kelvin", temperature_kelvin)
    if not 0 <= min_probability < 1:
        raise InvalidInputError(f"min_probability is {min_probability}; it must be at least 0 and below 1.")
    counts = _counts("angles", angles, bins)
    expected = _counts("reference", reference, bins, reference_weights)
    shares = expected / expected.sum()
    kept = shares > min_probability
    if not kept.any():
        raise InvalidInputError(
            f"No bin holds more than min_probability {min_probability} of the reference; lower it, or use fewer bins."
        )
    sample_shares = np.maximum(counts[kept], 0.5) / counts.sum()
    differences = -BOLTZMANN * temperature * np.log(sample_shares / shares[kept])
    differences -= np.average(differences, weights=shares[kept])
    return float(np.sqrt(np.mean(differences**2)))


def basin_weight(in_basin: ArrayLike, chain_shape: tuple[int, int] | None = None) -> BasinWeight:
    """Weight of a basin, with a standard error that allows for correlated draws.

    Parameters
    ----------
    in_basin : array_like, [chain, draw] or [n]
        Whether each draw is in the basin (or its probability to be). An array [n] is one chain, unless
        ``chain_shape`` says otherwise.
    chain_shape : tuple of int, optional
        ``(chains, draws)`` of an array [n] that holds one chain after the other.

    Returns
    -------
    BasinWeight
        From at least 8 chains, the standard error is that of the mean of the chains' means. From fewer, it is
        that of the means of batches of about √draws consecutive draws, over all chains; it is too small if the
        basin is left more seldom than that. No visit, or no absence, gives an error of 0: it means not seen,
        rather than certain.

    Raises
    ------
    InvalidInputError
        If the shape is wrong, a value is outside [0, 1] or there are fewer than two draws.
    """
    chains = _as_chains(in_basin, chain_shape)
    n_chains, n_draws = chains.shape
    length = n_draws if n_chains >= _CHAINS_ENOUGH else int(np.sqrt(n_draws))
    per_chain = n_draws // length
    # The draws that fill no batch are the first ones.
    means = chains[:, n_draws - per_chain * length :].reshape(-1, length).mean(axis=1)
    error = np.std(means, ddof=1) / np.sqrt(len(means))
    return BasinWeight(float(chains.mean()), float(error), chains.size)


def _counts(name: str, angles: ArrayLike, bins: int, weights: ArrayLike | None = None) -> FloatArray:
    """Histogram [bins²] of angles [n, 2] on the torus, its total the effective number of draws."""
    require_at_least("bins", bins, 1)
    rows = as_finite_rows(name, angles)
    if rows.shape[1] != 2:
        raise InvalidInputError(f"{name} has shape {rows.shape}; pass two angles per draw, shape [n, 2].")
    turns = np.mod(rows / (2 * np.pi) + 0.5, 1.0)
    places = (turns * bins).astype(np.int64) % bins  # rounding may give a whole turn, which is bin 0
    cells = places[:, 0] * bins + places[:, 1]
    scaled = np.ones(len(rows)) if weights is None else _effective_counts(weights, len(rows))
    return np.bincount(cells, weights=scaled, minlength=bins**2).astype(np.float64)


def _effective_counts(weights: ArrayLike, n: int) -> FloatArray:
    values = as_finite_rows("reference_weights", as_vector("reference_weights", weights))[:, 0]
    if len(values) != n or values.min() < 0 or values.sum() == 0:
        raise InvalidInputError(
            f"reference_weights has {len(values)} numbers, of sum {values.sum()} and minimum {values.min()}, for {n} "
            "rows; pass one number per row, none negative and not all 0."
        )
    return values * (values.sum() / (values**2).sum())


def _as_chains(in_basin: ArrayLike, chain_shape: tuple[int, int] | None) -> FloatArray:
    values = np.asarray(in_basin, dtype=np.float64)
    shape = chain_shape or (values.shape if values.ndim == 2 else (1, values.size))
    if values.ndim not in (1, 2) or values.size < 2 or min(shape) < 1 or shape[0] * shape[1] != values.size:
        raise InvalidInputError(
            f"in_basin has shape {values.shape} and chain_shape is {chain_shape}; pass at least two draws, "
            "[chain, draw], or [n] with a chain_shape whose product is n."
        )
    if not ((values >= 0) & (values <= 1)).all():
        raise InvalidInputError(
            f"in_basin ranges from {values.min()} to {values.max()}; pass booleans, or probabilities in [0, 1]."
        )
    return values.reshape(shape)


def _require_positive(name: str, value: float | None) -> float:
    if value is None or not (np.isfinite(value) and value > 0):
        raise InvalidInputError(f"{name} is {value}; pass a positive finite number.")
    return value
