"""Pictures of a run, as they suit its target."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from cdsampler import benchmark, report
from cdsampler.metrics import ExactReference, MetricValue
from cdsampler.sampling import Result
from cdsampler.targets import (
    AbstractExactTarget,
    AbstractParticleTarget,
    AbstractTarget,
    BayesianNeuralNetwork,
    LennardJones,
    Molecule,
)
from cdsampler.targets.molecules import _alanine_dipeptide as dipeptide

MOST_DRAWS = 10_000
MOST_CLUSTERS = 2000  # whose pair distances are shown
N_STRUCTURES, N_CLUSTERS = 8, 4


class Rows(NamedTuple):
    """Samples and reference draws as metrics compare them, with their energies in the reference's unit.

    Attributes
    ----------
    samples : ndarray, shape (n, k)
    exact : ndarray, shape (m, k), or None
    energies, exact_energies : ndarray, shape (n,) and (m,), or None
    """

    samples: np.ndarray
    exact: np.ndarray | None
    energies: np.ndarray | None
    exact_energies: np.ndarray | None


def make_rows(target: AbstractTarget, result: Result, exact: ExactReference | None, seed: int) -> Rows:
    """Return the rows to draw; as many draws as samples of what is sampled exactly, and else the whole pool."""
    samples = benchmark.metric_rows(target, result.positions)
    if exact is None:
        return Rows(samples, None, None, None)
    n = min(MOST_DRAWS, len(samples) if exact.size is None else exact.size)
    draws = exact.draw(seed, n)
    return Rows(samples, draws, exact.energies(samples), exact.energies(draws))


def save_pictures(
    folder: Path, target: AbstractTarget, result: Result, rows: Rows, metrics: Sequence[MetricValue] | None
) -> list[Path]:
    """Write figure.png, and what else suits the target.

    Parameters
    ----------
    folder
        Of the pictures.
    target
    result
    rows
        Of `make_rows`.
    metrics
        None without a reference.

    Returns
    -------
    list of Path
    """
    figures = {"figure": _run_figure(target, result, rows, metrics)}
    if not isinstance(target, AbstractParticleTarget) and len(result.names) > 1:
        figures["pairs"] = report.pair_figure(result, rows.exact)
    if isinstance(target, Molecule):
        figures["ramachandran"] = report.ramachandran_figure(
            benchmark.backbone_angles(rows.samples),
            None if rows.exact is None else benchmark.backbone_angles(rows.exact),
            temperature_kelvin=target.temperature_kelvin,
        )
        figures["structure"] = _molecules(rows.samples)
    if isinstance(target, LennardJones):
        figures["structure"] = _clusters(rows)
    if isinstance(target, BayesianNeuralNetwork):
        figures["predictive"] = report.predictive_figure(target, rows.samples, rows.exact)
    return [report.save_figure(figure, folder / f"{name}.png") for name, figure in figures.items()]


def _run_figure(target: AbstractTarget, result: Result, rows: Rows, metrics: Sequence[MetricValue] | None) -> Figure:
    shown = energies = None
    if isinstance(target, LennardJones):
        shown = _shown(rows, _pair_distances, ("pair distance (r_m)",))
    if isinstance(target, Molecule):
        shown = _shown(rows, lambda x: np.degrees(benchmark.backbone_angles(x)), ("φ (degrees)", "ψ (degrees)"))
        if rows.energies is not None and rows.exact_energies is not None:
            energies = report.Shown(
                rows.energies[:, None], rows.exact_energies[:, None], ("potential energy (kJ/mol)",)
            )
    return report.run_figure(
        result,
        None if isinstance(target, AbstractParticleTarget) else rows.exact,
        target.name,
        metrics=metrics,
        exact_log_density=None if rows.exact_energies is None else -rows.exact_energies,
        n_modes=len(target.mode_weights) if isinstance(target, AbstractExactTarget) else None,
        shown=shown,
        energies=energies,
    )


def _shown(rows: Rows, quantity: Callable[[np.ndarray], np.ndarray], names: tuple[str, ...]) -> report.Shown:
    return report.Shown(quantity(rows.samples), None if rows.exact is None else quantity(rows.exact), names)


def _pair_distances(rows: np.ndarray) -> np.ndarray:
    x = rows[:MOST_CLUSTERS].reshape(min(len(rows), MOST_CLUSTERS), -1, 3)
    first, second = np.triu_indices(x.shape[1], 1)
    return np.linalg.norm(x[:, first] - x[:, second], axis=2).reshape(-1, 1)


def _molecules(rows: np.ndarray) -> Figure:
    chosen = rows[np.linspace(0, len(rows) - 1, min(N_STRUCTURES, len(rows))).astype(int)].reshape(-1, 22, 3)
    structures = np.concatenate([dipeptide.minimum_positions_nm()[None], chosen])
    return report.structure_figure(
        structures,
        bonds=dipeptide.bonds(),
        names=dipeptide.atom_names(),
        titles=[f"A minimum of the energy in vacuum, and {len(chosen)} samples (thin)"],
    )


def _clusters(rows: Rows) -> Figure:
    n = min(N_CLUSTERS, len(rows.samples))
    structures = rows.samples[np.linspace(0, len(rows.samples) - 1, n).astype(int)]
    titles = ["sample"] * n
    if rows.exact is not None:
        structures = np.concatenate([structures, rows.exact[:1]])
        titles.append("reference")
    return report.structure_figure(structures.reshape(len(structures), -1, 3), titles=titles)
