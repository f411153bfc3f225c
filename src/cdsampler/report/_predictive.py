"""Predictions of the neural network along a line through its inputs."""

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
        The band includes the noise of the labels. The line is the same for all runs.

    Raises
    ------
    InvalidInputError
        No parameters, or another shape.
    """
    direction = np.random.default_rng(0).standard_normal(target.train_inputs.shape[1])
    t = np.linspace(-_HALF_LENGTH, _HALF_LENGTH, _N_POINTS)
    inputs = jnp.asarray(t[:, None] * (direction / np.linalg.norm(direction)), target.train_inputs.dtype)
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    if reference is not None:
        mean, band = _band(target, reference, inputs)
        axes.fill_between(
            t, *band, color=EXACT_FILL, linewidth=0, label=f"reference, 5 to 95 % (m = {count(len(reference))})"
        )
        axes.plot(t, mean, color=EXACT, linewidth=1.2, label="reference, mean")
    mean, band = _band(target, samples, inputs)
    axes.plot(t, mean, color=SAMPLES, linewidth=1.4, label="samples, mean")
    for edge, label in zip(band, (f"samples, 5 and 95 % (n = {count(len(samples))})", ""), strict=True):
        axes.plot(t, edge, color=SAMPLES, linewidth=0.9, linestyle=(0, (4, 2)), label=label or "_nolegend_")
    truth = np.asarray(target.predict(target.true_parameters[None, :], inputs))[0]
    axes.plot(t, truth, color=REJECTION, linewidth=1.2, linestyle=":", label="function that made the labels")
    _finish(axes)
    return figure


def _finish(axes: Axes) -> None:
    axes.legend(fontsize=TICK_SIZE, frameon=False)
    axes.margins(x=0)
    finish(axes, title="Prediction of a new label", x="t, at the input t u with a fixed unit vector u", y="label")


def _band(target: BayesianNeuralNetwork, parameters: np.ndarray, inputs: jax.Array) -> tuple[np.ndarray, np.ndarray]:
    if np.ndim(parameters) != 2 or np.shape(parameters)[1] != target.dim or not len(parameters):
        raise InvalidInputError(f"Parameters must have shape (n, {target.dim}) with n > 0, got {np.shape(parameters)}.")
    some = jnp.asarray(parameters[:: -(-len(parameters) // _MOST_NETWORKS)], inputs.dtype)
    mean, band = target.predictive_band(jax.random.key(0), some, inputs, _QUANTILES)
    return np.asarray(mean), np.asarray(band)
