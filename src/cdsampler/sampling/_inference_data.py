"""The one place that knows the difference between ArviZ 0.x (InferenceData) and 1.x (DataTree)."""

import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

with warnings.catch_warnings():
    # ArviZ 0.23 announces ArviZ 1 on import; this module supports both.
    warnings.simplefilter("ignore", FutureWarning)
    import arviz as az

_IS_LEGACY = int(az.__version__.split(".")[0]) < 1


def to_inference_data(
    variables: Mapping[str, np.ndarray],
    sample_stats: Mapping[str, np.ndarray],
    attributes: Mapping[str, Any],
    *,
    coords: Mapping[str, Sequence[Any]],
    dims: Mapping[str, Sequence[str]],
) -> Any:
    """Return ArviZ's container.

    Parameters
    ----------
    variables
        Arrays of shape (n_chains, n_draws, ...).
    sample_stats
        Arrays of shape (n_chains, n_draws).
    attributes
        Plain values; they are attached to the posterior and survive netCDF.
    coords, dims
        Labels of the axes after the first two.
    """
    groups: dict[str, Any] = {"posterior": dict(variables), "sample_stats": dict(sample_stats)}
    labels: dict[str, Any] = {"coords": dict(coords), "dims": {name: list(axes) for name, axes in dims.items()}}
    with warnings.catch_warnings():
        # One draw from each of many chains is what independent samples are.
        warnings.filterwarnings("ignore", message="More chains|Found chain dimension")
        data = az.from_dict(**groups, **labels) if _IS_LEGACY else az.from_dict(groups, **labels)
    posterior = data.posterior if _IS_LEGACY else data["posterior"]
    posterior.attrs.update(attributes)
    return data


def effective_sizes(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bulk effective size and R-hat of each coordinate; NaN with fewer than 4 draws or 2 chains.

    Parameters
    ----------
    samples : ndarray, shape (n_chains, n_draws, dim)
    """
    n_chains, n_draws, dim = samples.shape
    if n_draws < 4 or n_chains < 2:
        return np.full(dim, np.nan), np.full(dim, np.nan)
    ess = [float(np.asarray(az.ess(samples[:, :, d]))) for d in range(dim)]
    rhat = [float(np.asarray(az.rhat(samples[:, :, d]))) for d in range(dim)]
    return np.asarray(ess), np.asarray(rhat)


def write_netcdf(data: Any, path: Path) -> Path:
    """Write the container; the file appears under its name only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # In a folder of its own, since a temporary file would keep its private permissions.
    folder = tempfile.TemporaryDirectory(dir=path.parent)
    temporary = Path(folder.name) / path.name
    with folder:
        data.to_netcdf(temporary, engine="h5netcdf")
        os.replace(temporary, path)
    return path


def read_netcdf(path: Path) -> Any:
    """Read what `write_netcdf` wrote, fully into memory."""
    if _IS_LEGACY:
        return az.from_netcdf(str(path), engine="h5netcdf")
    import xarray as xr

    return xr.load_datatree(path, engine="h5netcdf")
