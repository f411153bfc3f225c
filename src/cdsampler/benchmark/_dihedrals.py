from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from cdsampler.metrics import c7ax_indicator, dihedral_angles, free_energy_rmse, ramachandran_kl
from cdsampler.targets.molecules._alanine_dipeptide import PHI, PSI


def backbone_angles(rows: np.ndarray) -> np.ndarray:
    """Return φ and ψ of alanine dipeptide in rad, shape (n, 2), of flat positions, shape (n, 66)."""
    return dihedral_angles(np.asarray(rows).reshape(len(rows), -1, 3), [PHI, PSI])


def c7ax_weight(rows: np.ndarray) -> float:
    """Return the share of configurations in the basin C7ax."""
    return float(np.mean(c7ax_indicator(backbone_angles(rows)[:, 0])))


def ramachandran_metrics(temperature_kelvin: float) -> Mapping[str, Callable[[np.ndarray, np.ndarray], float]]:
    """Return metrics of two samples of flat positions by their backbone angles."""
    metrics: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
        "ramachandran_kl": ramachandran_kl,
        "ramachandran_kl_published": partial(ramachandran_kl, bins=100, pseudocount=None, epsilon=1e-10),
        "free_energy_rmse": partial(free_energy_rmse, temperature_kelvin=temperature_kelvin),
    }
    return {name: partial(_of_angles, metric) for name, metric in metrics.items()}


def _of_angles(metric: Callable[[np.ndarray, np.ndarray], float], x: np.ndarray, y: np.ndarray) -> float:
    return metric(backbone_angles(x), backbone_angles(y))
