from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import ks_2samp

from cdsampler.benchmark.references import _autocorrelation
from cdsampler.benchmark.references._energies import energies, is_molecule, length
from cdsampler.benchmark.references._molecular_dynamics import chiral_volumes
from cdsampler.benchmark.references._reference import Reference
from cdsampler.errors import InvalidInputError

# A length that differs by more is a matter of units, or of the order of atoms.
LENGTH_TOLERANCE = 0.06
UNITS = {10.0: "it looks like ångström: divide by 10", 2 ** (1 / 6): "it looks like units of σ: divide by 2^(1/6)"}


class Moments(NamedTuple):
    """Energies of a set of samples; kJ/mol for molecules.

    Attributes
    ----------
    n : int
    autocorrelation : float
        In samples.
    mean, mean_error, sd, sd_error : float
        With standard errors that allow for the autocorrelation.
    """

    n: int
    autocorrelation: float
    mean: float
    mean_error: float
    sd: float
    sd_error: float


class Comparison(NamedTuple):
    """Independent samples against a reference.

    Attributes
    ----------
    reference, other : Moments
    mean_z, sd_z : float
        Differences of means and standard deviations of the energies, in standard errors.
    ks_statistic, ks_p : float
        Two-sample Kolmogorov-Smirnov test of the energies, thinned by their autocorrelation.
    n_mirrored : int
        Configurations of the other samples that have the mirror form, which energies can't tell.
    """

    reference: Moments
    other: Moments
    mean_z: float
    sd_z: float
    ks_statistic: float
    ks_p: float
    n_mirrored: int


def energy_moments(values: np.ndarray, autocorrelation: float) -> Moments:
    """Return mean and standard deviation of energies with their errors.

    Parameters
    ----------
    values : ndarray, shape (n,)
    autocorrelation
        In samples.
    """
    n_effective = len(values) / autocorrelation
    deviation = values - values.mean()
    variance, fourth = float(np.mean(deviation**2)), float(np.mean(deviation**4))
    sd = np.sqrt(variance)
    sd_error = np.sqrt(max(fourth - variance**2, 0.0) / n_effective) / (2 * sd) if sd > 0 else 0.0
    return Moments(
        len(values), autocorrelation, float(values.mean()), float(sd / np.sqrt(n_effective)), float(sd), float(sd_error)
    )


def check_samples(reference: Reference, samples: np.ndarray) -> Comparison:
    """Compare samples of another origin with a reference, by their energies.

    Parameters
    ----------
    reference
    samples : array_like, shape (n, dim)
        As in `Reference.samples`, in the order in which they were drawn.

    Returns
    -------
    Comparison

    Raises
    ------
    InvalidInputError
        Wrong shape, fewer than 8 samples, numbers that aren't finite, or particles in another unit.
    """
    rows = _checked(reference, samples)
    mine, theirs = energies(reference.name, reference.samples), energies(reference.name, rows)
    if not np.all(np.isfinite(theirs)):
        n_bad = np.count_nonzero(~np.isfinite(theirs))
        raise InvalidInputError(f"{n_bad} of {len(rows)} samples lie outside the support of {reference.name}.")
    first = energy_moments(mine, reference.autocorrelation)
    second = energy_moments(theirs, _autocorrelation.of_series(theirs))
    test = ks_2samp(*(_autocorrelation.thinned(e, m.autocorrelation) for e, m in ((mine, first), (theirs, second))))
    return Comparison(
        first,
        second,
        (second.mean - first.mean) / max(float(np.hypot(first.mean_error, second.mean_error)), 1e-300),
        (second.sd - first.sd) / max(float(np.hypot(first.sd_error, second.sd_error)), 1e-300),
        float(test.statistic),
        float(test.pvalue),
        int(np.count_nonzero(chiral_volumes(rows) <= 0)) if is_molecule(reference.name) else 0,
    )


def read_samples(path: Path) -> np.ndarray:
    """Read an .npy file of samples.

    Raises
    ------
    InvalidInputError
        It can't be read, or doesn't hold numbers.
    """
    try:
        samples = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInputError(f"Can't read samples from {path}: {error}") from error
    if not isinstance(samples, np.ndarray) or samples.dtype.kind not in "fiu":
        raise InvalidInputError(f"{path} must be an .npy file with one array of real numbers.")
    return samples


def _checked(reference: Reference, samples: np.ndarray) -> np.ndarray:
    rows = np.asarray(samples, dtype=np.float64)
    dim = reference.samples.shape[1]
    if rows.ndim != 2 or rows.shape[1] != dim:
        raise InvalidInputError(f"Samples of {reference.name} must have shape (n, {dim}), got {rows.shape}.")
    if len(rows) < 8:
        raise InvalidInputError(f"{len(rows)} samples are too few to compare: give at least 8.")
    bad = np.count_nonzero(~np.isfinite(rows).all(axis=1))
    if bad:
        raise InvalidInputError(f"{bad} of {len(rows)} samples hold numbers that aren't finite: leave them out.")
    natural, found = length(reference.name, reference.samples), length(reference.name, rows)
    if natural is not None and found is not None:
        ratio = found[1] / natural[1]
        if abs(ratio - 1) > LENGTH_TOLERANCE:
            hints = [hint for factor, hint in UNITS.items() if abs(ratio / factor - 1) < LENGTH_TOLERANCE]
            raise InvalidInputError(
                f"The {found[0]} of these samples of {reference.name} is {found[1]:.4g}, {ratio:.4g} times the "
                f"reference's {natural[1]:.4g}: {hints[0] if hints else 'check the unit and the order of atoms'}."
            )
    return rows
