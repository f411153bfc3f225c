from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cdsampler.errors import InvalidInputError
from cdsampler.host import HostLogDensity
from cdsampler.parameters import Model


def from_stan(
    model: Any,
    data: str | Path | None = None,
    *,
    workers: int = 1,
    on_error: Literal["raise", "reject"] = "reject",
) -> Model:
    """Return a Stan program as a target, through BridgeStan.

    Parameters
    ----------
    model
        A `bridgestan.StanModel`, or the path of a compiled library (.so) or of a program (.stan), which BridgeStan then
        compiles: that needs make and a C++ compiler, and at the first time a download of Stan's sources.
    data
        The program's data: a JSON string or the path of a JSON file. Only with a path.
    workers
        Threads that compute points side by side; the program must be compiled with STAN_THREADS.
    on_error
        As of `HostLogDensity`. Stan raises where parameters are out of their domain, and rejects the point itself, so
        that is the default.

    Returns
    -------
    Model
        Variables are the parameters block's, transformed and generated quantities left out.

    Raises
    ------
    ImportError
        BridgeStan is missing.
    InvalidInputError
        No such file, or data with a model that has them already.
    """
    stan = _loaded(model, data)
    dim = int(stan.param_unc_num())

    def value(x: np.ndarray) -> float:
        return float(stan.log_density(x, propto=False, jacobian=True))

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = stan.log_density_gradient(x, propto=False, jacobian=True)
        return float(value), np.array(gradient)

    names = list(stan.param_names(include_tp=False, include_gq=False))

    def variables(positions: np.ndarray) -> dict[str, np.ndarray]:
        rows = [stan.param_constrain(np.ascontiguousarray(q, dtype=np.float64)) for q in positions]
        return _by_name(names, np.array(rows).reshape(len(positions), len(names)))

    def unconstrain(values: Mapping[str, Any]) -> np.ndarray:
        return np.asarray(stan.param_unconstrain(_flat(names, values)), dtype=np.float64)

    density = HostLogDensity(
        value,
        dim,
        value_and_grad=value_and_gradient,
        names=tuple(stan.param_unc_names()),
        workers=workers,
        on_error=on_error,
    )
    return Model(density, variables, unconstrain)


def _loaded(model: Any, data: str | Path | None) -> Any:
    if not isinstance(model, str | Path):
        if data is not None:
            raise InvalidInputError("A StanModel has its data already: leave data out.")
        return model
    path = Path(model)
    if not path.is_file():
        raise InvalidInputError(f"There is no file {path}: give a compiled library (.so) or a program (.stan).")
    try:
        import bridgestan
    except ImportError as error:
        raise ImportError("from_stan needs BridgeStan: pip install 'cdsampler[stan]'.") from error
    return bridgestan.StanModel(str(path), data=None if data is None else str(data))


def _split(name: str) -> tuple[str, tuple[int, ...]]:
    """Return the variable and the indices, from 0, that "w.2.1" stands for."""
    base, *indices = name.split(".")
    return base, tuple(int(i) - 1 for i in indices)


def _by_name(names: list[str], rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return arrays by variable; Stan lists the elements in column-major order, so each is put where its index says."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name in names:
        base, index = _split(name)
        shapes[base] = tuple(max(n, i + 1) for n, i in zip(shapes.get(base, (0,) * len(index)), index, strict=True))
    found: dict[str, Any] = {base: np.zeros((len(rows), *shape)) for base, shape in shapes.items()}
    for column, name in enumerate(names):
        base, index = _split(name)
        found[base][slice(None), *index] = rows[:, column]
    return found


def _flat(names: list[str], values: Mapping[str, Any]) -> np.ndarray:
    flat = np.zeros(len(names))
    for column, name in enumerate(names):
        base, index = _split(name)
        if base not in values:
            raise InvalidInputError(f"The values lack {base}.")
        try:
            array: Any = np.asarray(values[base], dtype=np.float64)
            flat[column] = array[index]
        except (IndexError, TypeError, ValueError) as error:
            raise InvalidInputError(f"{base} has no element {name}: {values[base]!r}.") from error
    return flat
