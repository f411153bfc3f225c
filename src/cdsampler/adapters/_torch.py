from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cdsampler.errors import DensityError
from cdsampler.host import HostLogDensity


def from_torch(
    function: Callable[[Any], Any],
    dim: int,
    *,
    batched: bool = True,
    device: str = "cpu",
    dtype: Any = None,
    names: Sequence[str] | None = None,
) -> HostLogDensity:
    """Return a function or module of PyTorch as a target, with torch's own gradient.

    Parameters
    ----------
    function
        Maps a tensor of shape (n, dim) to shape (n,); without `batched`, of shape (dim,) to a scalar, and
        `torch.func.vmap` is used.
    dim
        Number of coordinates.
    batched
        Whether the function takes many points at once.
    device
        Torch's, where the function is evaluated.
    dtype
        Torch's floating type of the function's input; default `torch.float64` unless the module's parameters have
        another.
    names
        Of the coordinates.

    Raises
    ------
    ImportError
        PyTorch is missing.
    """
    try:
        import torch
    except ImportError as error:
        raise ImportError("from_torch needs PyTorch: pip install torch, from its page for your machine.") from error
    kind = dtype or _dtype_of(function, torch)
    batch = function if batched else torch.func.vmap(function)

    def tensor(positions: np.ndarray) -> Any:
        return torch.as_tensor(positions, dtype=kind, device=device)

    def checked(values: Any, n: int) -> Any:
        if tuple(values.shape) not in ((n,), (n, 1)):
            shape = tuple(values.shape)
            raise DensityError(f"The torch function must return shape ({n},) for {n} points, got {shape}.")
        return values.reshape(n)

    def value(positions: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return checked(batch(tensor(positions)), len(positions)).cpu().numpy()

    def value_and_gradient(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        points = tensor(positions).requires_grad_(True)
        with torch.enable_grad():
            values = checked(batch(points), len(positions))
            # Each value depends on its own point alone, so that the sum's gradient has all of theirs.
            (gradient,) = torch.autograd.grad(values.sum(), points)
        return values.detach().cpu().numpy(), gradient.cpu().numpy()

    labels = None if names is None else tuple(names)
    return HostLogDensity(value, dim, value_and_grad=value_and_gradient, batched=True, names=labels)


def _dtype_of(function: Any, torch: Any) -> Any:
    if isinstance(function, torch.nn.Module):
        for parameter in function.parameters():
            return parameter.dtype
    return torch.float64
