import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from cdsampler._typing import Array, Float, Position, PRNGKey, Scalar
from cdsampler.density import LogDensity
from cdsampler.errors import InvalidInputError
from cdsampler.targets._base import AbstractTarget

N_INPUTS, N_HIDDEN = 20, 25
N_FIRST = (N_INPUTS + 1) * N_HIDDEN  # weights and biases of the hidden layer
N_TRAIN = N_TEST = 500
NOISE_STD = 0.1
# The training points are worked off in this many blocks: activations of a thousand networks then stay in a CPU's cache.
N_BLOCKS = 5
N_AT_ONCE = 256  # networks, in predictions


class BayesianNeuralNetwork(AbstractTarget):
    """The posterior of a small neural network's parameters given synthetic data (normalised prior and likelihood).

    The network has 20 inputs, 25 ReLU units and one linear output without bias,
    f(x) = relu(x W1 / √20 + b1) W2 / √25. Its 550 parameters are flat in the order W1 (20 by 25, row by row), b1 (25),
    W2 (25). The prior is N(0, I); as the reference of a tempered path it's `GaussianReference(1.0)` about the anchor 0.
    Inputs are drawn from N(0, I), labels from one draw of the prior, with noise N(0, 0.1²); always in double precision
    and by NumPy, whence they're the same everywhere. They're stored in JAX's default type.

    Parameters
    ----------
    data_seed
        Non-negative; part of the task's definition, so that runs compare only if it's the same.

    Attributes
    ----------
    true_parameters : Array, shape (550,)
        Those that made the labels.
    train_inputs, test_inputs : Array, shape (500, 20)
    train_labels, test_labels : Array, shape (500,)

    Raises
    ------
    InvalidInputError
        The seed isn't a non-negative integer.
    """

    name: str = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    data_seed: int = eqx.field(static=True)
    true_parameters: Array
    train_inputs: Array
    train_labels: Array
    test_inputs: Array
    test_labels: Array

    def __init__(self, data_seed: int = 0):
        if isinstance(data_seed, bool) or not isinstance(data_seed, int | np.integer) or data_seed < 0:
            raise InvalidInputError(f"data_seed must be a non-negative integer, got {data_seed!r}.")
        self.name = "bnn"
        self.dim = N_FIRST + N_HIDDEN
        self.data_seed = int(data_seed)
        dtype = jnp.zeros(()).dtype
        rng = np.random.Generator(np.random.PCG64(self.data_seed))
        parameters = rng.standard_normal(self.dim)
        self.true_parameters = jnp.asarray(parameters, dtype)
        self.train_inputs, self.train_labels = (jnp.asarray(a, dtype) for a in _draw_data(rng, parameters, N_TRAIN))
        self.test_inputs, self.test_labels = (jnp.asarray(a, dtype) for a in _draw_data(rng, parameters, N_TEST))

    def density(self, dtype: DTypeLike | None = None) -> LogDensity:
        """Return the log density, with its gradient in closed form."""
        wanted = np.dtype(jnp.zeros(()).dtype if dtype is None else dtype)
        cast = jax.tree.map(lambda a: a.astype(wanted), self)
        return LogDensity(cast.log_density, self.dim, value_and_grad=cast.value_and_gradient, dtype=wanted)

    def log_density(self, y: Position) -> Scalar:
        """Return log prior plus log likelihood at one point."""
        return self.log_prior(y) + self.log_likelihood(y)

    def log_prior(self, y: Position) -> Scalar:
        """Return the log density of N(0, I) at one point."""
        return -0.5 * jnp.sum(y * y) - 0.5 * self.dim * math.log(2 * math.pi)

    def log_likelihood(self, y: Position) -> Scalar:
        """Return the log likelihood of the training data at one point."""

        def add(squares: Scalar, block: tuple[Array, Array]) -> tuple[Scalar, None]:
            residual = _output(y, block[0]) - block[1]
            return squares + jnp.sum(residual * residual), None

        squares, _ = jax.lax.scan(add, jnp.zeros((), y.dtype), self._blocks())
        return _log_normal(squares, N_TRAIN)

    def value_and_gradient(self, y: Position) -> tuple[Scalar, Position]:
        """Return log density and gradient at one point."""
        first, second = _layers(y)

        def add(sums: tuple[Scalar, Array], block: tuple[Array, Array]) -> tuple[tuple[Scalar, Array], None]:
            design, labels = block
            hidden = _product(first, design.T)
            residual = _product(second, jnp.maximum(hidden, 0)) - labels
            active = jnp.where(hidden > 0, residual[None, :], 0)
            return (sums[0] + jnp.sum(residual * residual), sums[1] + _product(active, design)), None

        start = jnp.zeros((), y.dtype), jnp.zeros(first.shape, y.dtype)
        (squares, slopes), _ = jax.lax.scan(add, start, self._blocks())
        # A unit is linear in its incoming weights where it's active, so that one matrix serves both layers' gradients.
        slopes = -slopes / NOISE_STD**2
        to_first = (second[:, None] * slopes).T.reshape(-1)
        to_second = jnp.sum(first * slopes, axis=1) / math.sqrt(N_HIDDEN)
        value = self.log_prior(y) + _log_normal(squares, N_TRAIN)
        return value, jnp.concatenate([to_first, to_second]) - y

    def sample_prior(self, rng_key: PRNGKey, n_samples: int) -> Float[Array, "n dim"]:
        """Draw parameters from the prior."""
        return jax.random.normal(rng_key, (n_samples, self.dim), self.true_parameters.dtype)

    def predict(self, positions: Float[Array, "n dim"], inputs: Float[Array, "points 20"]) -> Float[Array, "n points"]:
        """Return each network's output, without noise, at each input; other shapes are an `InvalidInputError`."""
        _check_columns("positions", positions, self.dim)
        _check_columns("inputs", inputs, N_INPUTS)
        design = _design(inputs)
        return jax.lax.map(lambda y: _output(y, design), positions, batch_size=N_AT_ONCE)

    def test_log_likelihood(self, positions: Float[Array, "n dim"]) -> Float[Array, "n 500"]:
        """Return the log likelihood of each test label under each network."""
        residual = self.predict(positions, self.test_inputs) - self.test_labels[None, :]
        return _log_normal(residual * residual, 1)

    def predictive_band(
        self,
        rng_key: PRNGKey,
        positions: Float[Array, "n dim"],
        inputs: Float[Array, "points 20"],
        quantiles: ArrayLike,
    ) -> tuple[Float[Array, " points"], Float[Array, "quantiles points"]]:
        """Return mean and quantiles of a new label at each input, observation noise included.

        The mean is that of the networks' outputs. The quantiles are those of one noisy label per network, and hence
        random: they're as exact as `n` draws allow. Quantiles outside 0 to 1 are an `InvalidInputError`.
        """
        levels = np.asarray(quantiles)
        if levels.ndim != 1 or not np.all((levels >= 0) & (levels <= 1)):
            raise InvalidInputError(f"quantiles must be a list of numbers between 0 and 1, got {quantiles!r}.")
        outputs = self.predict(positions, inputs)
        labels = outputs + NOISE_STD * jax.random.normal(rng_key, outputs.shape, outputs.dtype)
        return jnp.mean(outputs, axis=0), jnp.quantile(labels, jnp.asarray(levels, labels.dtype), axis=0)

    def _blocks(self) -> tuple[Array, Array]:
        design = _design(self.train_inputs)
        return design.reshape(N_BLOCKS, -1, N_INPUTS + 1), self.train_labels.reshape(N_BLOCKS, -1)


def bayesian_neural_network(data_seed: int = 0) -> BayesianNeuralNetwork:
    """Return the 550-dimensional posterior of a neural network; see `BayesianNeuralNetwork`."""
    return BayesianNeuralNetwork(data_seed)


def _draw_data(rng: np.random.Generator, parameters: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    inputs, noise = rng.standard_normal((n, N_INPUTS)), rng.standard_normal(n)
    design = np.concatenate([inputs / math.sqrt(N_INPUTS), np.ones((n, 1))], axis=1)
    # Sums are in a fixed order, which a BLAS wouldn't promise: the labels are the same to the last bit everywhere.
    rows = parameters[:N_FIRST].reshape(-1, 1, N_HIDDEN)
    hidden = np.maximum(sum(column[:, None] * row for column, row in zip(design.T, rows, strict=True)), 0)
    outputs = sum(unit * weight for unit, weight in zip(hidden.T, parameters[N_FIRST:], strict=True))
    return inputs, outputs / math.sqrt(N_HIDDEN) + NOISE_STD * noise


def _design(inputs: Array) -> Array:
    # The bias follows the weights in the parameters' order: it's one more row, of an input that is always one.
    return jnp.concatenate([inputs / math.sqrt(N_INPUTS), jnp.ones((len(inputs), 1), inputs.dtype)], axis=1)


def _layers(y: Position) -> tuple[Array, Array]:
    # Units come first, so that a batch of networks is one tall matrix, times the inputs.
    return y[:N_FIRST].reshape(N_INPUTS + 1, N_HIDDEN).T, y[N_FIRST:] / math.sqrt(N_HIDDEN)


def _output(y: Position, design: Array) -> Array:
    first, second = _layers(y)
    return _product(second, jnp.maximum(_product(first, design.T), 0))


def _product(left: Array, right: Array) -> Array:
    # Residuals are divided by the small noise: products shortened to ten bits, a GPU's default, would show.
    return jnp.matmul(left, right, precision=jax.lax.Precision.HIGHEST)


def _log_normal(squares: Array, n: int) -> Array:
    """Return the log density of `n` residuals of the labels, given their sum of squares."""
    return -0.5 * squares / NOISE_STD**2 - 0.5 * n * math.log(2 * math.pi * NOISE_STD**2)


def _check_columns(what: str, array: Array, n: int) -> None:
    if array.ndim != 2 or array.shape[1] != n:
        raise InvalidInputError(f"{what} must have shape (n, {n}), got {array.shape}.")
