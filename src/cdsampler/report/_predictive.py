"""Predictions of the neural network along a line through its inputs."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cdsampler.errors import InvalidInputError
from cdsampler.report._format import count
from cdsampler.report._style import EXACT, EXACT_FILL, REJECTION, SAMPLES, TICK_SIZE, finish
from cdsampler.targets import BayesianNeuralNetwork

_QUANTILES = (0.05, 0.95)
_MOST_NETWORKS = 2000
_HALF_LENGTH, _N_POINTS = 8.0, 161  # norms of the training inputs are 4.5 ± 0.7


def predictive_figure(
    target: BayesianNeuralNetwork, samples: np.ndarray, reference: np.ndarray | None = None
) -> Figure:
    """Draw mean and 5 to 95 % band of a new label along a fixed line through the origin of the inputs.

    Parameters
    ----------
    target
    samples, reference : ndarray, shape (n, 550) and (m, 550)
        Parameters; of very many, the first 2000 at equal spacing.

    Returns
    -------
    Figure
        Below, the same less the function that made the labels. The band includes the labels' noise. The line is the
        same for all runs.

    Raises
    ------
    InvalidInputError
        No parameters, or another shape.
    """
    direction = np.random.default_rng(0).standard_normal(target.train_inputs.shape[1])
    t = np.linspace(-_HALF_LENGTH, _HALF_LENGTH, _N_POINTS)
    inputs = jnp.asarray(t[:, None] * (direction / np.linalg.norm(direction)), target.train_inputs.dtype)
    truth = np.asarray(target.predict(target.true_parameters[None, :], inputs))[0]
    own = _band(target, samples, inputs)
    exact = None if reference is None else _band(target, reference, inputs)
    labels = _Labels(len(samples), 0 if reference is None else len(reference))
    figure = Figure(figsize=(7.2, 6.4), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw(upper, t, truth, own, exact, 0 * truth, labels)
    _draw(lower, t, truth, own, exact, truth, labels)
    upper.legend(fontsize=TICK_SIZE, frameon=False)
    finish(upper, title="Prediction of a new label", y="label")
    finish(lower, x="t, at the input t u with a fixed unit vector u", y="label minus that function")
    return figure


class _Labels(NamedTuple):
    """Numbers of networks, for the legend."""

    n_samples: int
    n_reference: int


Band = tuple[np.ndarray, np.ndarray]


def _draw(
    axes: Axes, t: np.ndarray, truth: np.ndarray, own: Band, exact: Band | None, zero: np.ndarray, labels: _Labels
) -> None:
    """Draw means and bands above `zero`, shape (points,)."""
    if exact is not None:
        label = f"reference, 5 to 95 % (m = {count(labels.n_reference)})"
        axes.fill_between(t, *(exact[1] - zero), color=EXACT_FILL, linewidth=0, label=label)
        axes.plot(t, exact[0] - zero, color=EXACT, linewidth=1.2, label="reference, mean")
    axes.plot(t, own[0] - zero, color=SAMPLES, linewidth=1.4, label="samples, mean")
    names = (f"samples, 5 and 95 % (n = {count(labels.n_samples)})", None)
    for edge, name in zip(own[1], names, strict=True):
        axes.plot(t, edge - zero, color=SAMPLES, linewidth=0.9, linestyle=(0, (4, 2)), label=name)
    axes.plot(t, truth - zero, color=REJECTION, linewidth=1.2, linestyle=":", label="function that made the labels")
    axes.margins(x=0)


def _band(target: BayesianNeuralNetwork, parameters: np.ndarray, inputs: jax.Array) -> Band:
    if np.ndim(parameters) != 2 or np.shape(parameters)[1] != target.dim or not len(parameters):
        raise InvalidInputError(f"Parameters must have shape (n, {target.dim}) with n > 0, got {np.shape(parameters)}.")
    some = jnp.asarray(parameters[:: -(-len(parameters) // _MOST_NETWORKS)], inputs.dtype)
    mean, band = target.predictive_band(jax.random.key(0), some, inputs, _QUANTILES)
    return np.asarray(mean), np.asarray(band)
