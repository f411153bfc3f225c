import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import LogDensity, guard_non_finite
from cdsampler.errors import DensityError, InvalidInputError


def bowl(x):
    return -0.5 * jnp.sum(x**2)


# --- what is accepted -------------------------------------------------------------------------------------------


def test_scalar_output():
    value, _ = LogDensity(bowl, 3).value(jnp.array([1.0, 2.0, 3.0]))
    assert value.shape == ()
    assert float(value) == -7.0


def test_output_of_shape_one_counts_as_a_scalar():
    density = LogDensity(lambda x: -0.5 * x**2, 1)
    value, _ = density.value(jnp.array([3.0]))
    both, gradient, _ = density.value_and_gradient(jnp.array([3.0]))
    assert (value.shape, both.shape, gradient.shape) == ((), (), (1,))
    assert (float(value), float(both), gradient.tolist()) == (-4.5, -4.5, [-3.0])


def test_custom_gradient_may_come_with_a_value_of_shape_one():
    density = LogDensity(bowl, 1, value_and_grad=lambda x: (-0.5 * x**2, -x))
    value, gradient, _ = density.value_and_gradient(jnp.array([3.0]))
    assert value.shape == ()
    assert (float(value), gradient.tolist()) == (-4.5, [-3.0])


def test_constant_python_float_is_a_scalar():
    value, gradient, _ = LogDensity(lambda x: 0.0, 2).value_and_gradient(jnp.ones(2))
    assert (float(value), gradient.tolist()) == (0.0, [0.0, 0.0])


@pytest.mark.usefixtures("without_type_checks")
def test_numpy_integer_as_dim():
    density = LogDensity(bowl, np.int64(2))
    assert density.dim == 2
    assert type(density.dim) is int


def test_default_names():
    assert LogDensity(bowl, 3).names == ("x0", "x1", "x2")


def test_given_names():
    assert LogDensity(bowl, 2, names=("mass", "charge")).names == ("mass", "charge")


# --- what is refused, and how -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda x: x, r"\(2,\)"),
        (lambda x: x[None, :1], r"\(1, 1\)"),
        (lambda x: jnp.zeros((0,)), r"\(0,\)"),
    ],
)
def test_output_that_is_not_a_scalar(function, named):
    with pytest.raises(DensityError, match=named):
        LogDensity(function, 2)


@pytest.mark.parametrize(
    ("dtype", "named"), [(jnp.int32, "int32"), (jnp.bool_, "bool"), (jnp.complex128, "complex128")]
)
def test_output_that_is_not_a_real_floating_number(dtype, named):
    with pytest.raises(DensityError, match=named):
        LogDensity(lambda x: jnp.sum(x).astype(dtype), 2)


def test_nothing_returned():
    with pytest.raises(DensityError, match="None"):
        LogDensity(lambda x: None, 2)


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda x: (bowl(x), jnp.zeros(3)), r"\(2,\)"),
        (lambda x: (bowl(x), None), r"None"),
        (lambda x: (x, -x), r"value_and_grad.*\(2,\)"),
        (lambda x: (jnp.array(1), -x), r"value_and_grad.*int"),
        (lambda x: bowl(x), r"value_and_grad must return \(log density, gradient\)"),
        (lambda x: (bowl(x), -x, x), r"value_and_grad must return \(log density, gradient\)"),
    ],
)
def test_wrong_custom_gradient(function, named):
    with pytest.raises(DensityError, match=named):
        LogDensity(bowl, 2, value_and_grad=function)


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize("thing", [None, 3, "x**2"])
def test_density_that_is_not_callable(thing):
    with pytest.raises(InvalidInputError, match=f"log_density must be callable, got {thing!r}".replace("*", r"\*")):
        LogDensity(thing, 2)


@pytest.mark.usefixtures("without_type_checks")
def test_custom_gradient_that_is_not_callable():
    with pytest.raises(InvalidInputError, match="value_and_grad must be callable or None, got 3"):
        LogDensity(bowl, 2, value_and_grad=3)


@pytest.mark.usefixtures("without_type_checks")
@pytest.mark.parametrize("dim", [0, -1, True, 2.0, "2", None])
def test_dim_that_is_not_a_positive_integer(dim):
    with pytest.raises(InvalidInputError, match=f"dim must be a positive integer, got {dim!r}"):
        LogDensity(bowl, dim)


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b", "c")])
def test_wrong_number_of_names(names):
    with pytest.raises(InvalidInputError, match=f"{len(names)} entries for dim=2"):
        LogDensity(bowl, 2, names=names)


@pytest.mark.parametrize("dtype", ["int32", "bool", "complex64"])
def test_dtype_that_is_not_floating(dtype):
    with pytest.raises(InvalidInputError, match=dtype):
        LogDensity(bowl, 2, dtype=dtype)


def test_double_precision_must_be_enabled_first():
    with jax.enable_x64(False), pytest.raises(InvalidInputError, match="jax_enable_x64"):
        LogDensity(bowl, 2, dtype="float64")


def test_default_precision_follows_jax():
    assert LogDensity(bowl, 2).dtype == np.float64
    with jax.enable_x64(False):
        assert LogDensity(bowl, 2).dtype == np.float32


class OwnError(Exception):
    pass


@pytest.mark.parametrize("where", ["log_density", "value_and_grad"])
@pytest.mark.parametrize("kind", [OwnError, KeyError, ZeroDivisionError])
def test_exception_of_the_user_keeps_its_type_and_gains_a_note(where, kind):
    def fails(x):
        raise kind("mine")

    functions = {"log_density": bowl, "value_and_grad": lambda x: (bowl(x), -x), where: fails}
    with pytest.raises(kind, match="mine") as caught:
        LogDensity(dim=4, **functions)
    assert any("(4,)" in note for note in caught.value.__notes__)


# --- values and gradients ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("custom", [False, True])
def test_dtype_is_kept_even_if_the_function_computes_in_another(dtype, custom):
    other = {"float32": jnp.float64, "float64": jnp.float32}[dtype]

    def function(x):
        return bowl(x.astype(other))

    own = (lambda x: (function(x), -x.astype(other))) if custom else None
    density = LogDensity(function, 2, value_and_grad=own, dtype=dtype)
    position = jnp.array([1.0, -2.0], dtype)
    value, _ = density.value(position)
    both, gradient, _ = density.value_and_gradient(position)
    assert density.dtype == value.dtype == both.dtype == gradient.dtype == np.dtype(dtype)
    assert (float(value), float(both), gradient.tolist()) == (-2.5, -2.5, [-1.0, 2.0])


def test_gradient_by_automatic_differentiation():
    def function(x):
        return jnp.sin(x[0]) * x[1] - x[1] ** 4

    position = jnp.array([0.3, -0.7])
    value, gradient, _ = LogDensity(function, 2).value_and_gradient(position)
    expected = [np.cos(0.3) * -0.7, np.sin(0.3) - 4 * (-0.7) ** 3]
    np.testing.assert_allclose(float(value), np.sin(0.3) * -0.7 - 0.7**4, rtol=1e-14)
    np.testing.assert_allclose(gradient, expected, rtol=1e-14)


def test_custom_gradient_is_used_for_gradients_and_not_for_values():
    density = LogDensity(bowl, 2, value_and_grad=lambda x: (bowl(x) + 100, 7 * x))
    position = jnp.array([1.0, 2.0])
    value, _ = density.value(position)
    both, gradient, _ = density.value_and_gradient(position)
    assert (float(value), float(both), gradient.tolist()) == (-2.5, 97.5, [7.0, 14.0])


def test_price_of_a_value_and_of_a_gradient():
    density = LogDensity(bowl, 2)
    _, cheap = density.value(jnp.ones(2))
    _, _, dear = density.value_and_gradient(jnp.ones(2))
    assert [int(n) for n in jax.tree.leaves(cheap)] == [1, 0, 0, 0, 0]
    assert [int(n) for n in jax.tree.leaves(dear)] == [0, 1, 0, 0, 0]


def test_price_is_one_a_point_in_a_batch():
    density = LogDensity(bowl, 2)
    _, _, counts = jax.jit(jax.vmap(density.value_and_gradient))(jnp.ones((7, 2)))
    assert int(counts.total().gradient) == 7
    assert int(counts.total().value) == 0


# --- the policy for what is not finite --------------------------------------------------------------------------

FINE, NEG_INF, NAN, POS_INF = [0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]
POLICY = [  # value, gradient, value seen, is the gradient kept, counts
    (-1.0, 2.0, -1.0, True, FINE),
    (-1.0, np.nan, -np.inf, False, NAN),
    (-1.0, np.inf, -np.inf, False, NAN),
    (-1.0, -np.inf, -np.inf, False, NAN),
    (-np.inf, 2.0, -np.inf, False, NEG_INF),
    (-np.inf, np.nan, -np.inf, False, NEG_INF),
    (np.nan, 2.0, -np.inf, False, NAN),
    (np.nan, np.nan, -np.inf, False, NAN),
    (np.inf, 2.0, np.inf, False, POS_INF),
    (np.inf, np.nan, np.inf, False, POS_INF),
]


@pytest.mark.parametrize(("number", "slope", "seen", "is_kept", "counts"), POLICY)
def test_policy_with_gradient(outcome, number, slope, seen, is_kept, counts):
    _, (value, gradient, evaluations) = outcome(number, slope)
    assert float(value) == seen
    assert gradient.tolist() == ([slope] * 2 if is_kept else [0.0, 0.0])
    assert [int(n) for n in jax.tree.leaves(evaluations)] == [0, 1, *counts]


@pytest.mark.parametrize(
    ("number", "seen", "counts"),
    [(-1.0, -1.0, FINE), (-np.inf, -np.inf, NEG_INF), (np.nan, -np.inf, NAN), (np.inf, np.inf, POS_INF)],
)
def test_policy_without_gradient(outcome, number, seen, counts):
    (value, evaluations), _ = outcome(number, np.nan)
    assert float(value) == seen
    assert [int(n) for n in jax.tree.leaves(evaluations)] == [1, 0, *counts]


def test_one_bad_entry_of_the_gradient_is_enough():
    value, gradient, counts = guard_non_finite(jnp.array(1.0), jnp.array([1.0, jnp.nan, 3.0]))
    assert (float(value), gradient.tolist(), int(counts.nan)) == (-np.inf, [0.0, 0.0, 0.0], 1)


def test_guard_charges_no_evaluation():
    _, _, counts = guard_non_finite(jnp.array(jnp.nan), jnp.zeros(2))
    assert (int(counts.value), int(counts.gradient)) == (0, 0)


def test_undefined_gradient_of_automatic_differentiation():
    density = LogDensity(lambda x: -jnp.sqrt(jnp.sum(x**2)), 2)
    value, gradient, counts = density.value_and_gradient(jnp.zeros(2))
    assert (float(value), gradient.tolist(), int(counts.nan)) == (-np.inf, [0.0, 0.0], 1)
    value, counts = density.value(jnp.zeros(2))
    assert (float(value), int(counts.nan)) == (0.0, 0)


def test_bad_points_of_a_batch_leave_the_others_alone():
    density = LogDensity(lambda x: jnp.where(x[0] > 0, -(x[0] ** 2), -jnp.inf), 1)
    value, gradient, counts = jax.vmap(density.value_and_gradient)(jnp.array([[-1.0], [1.0], [2.0]]))
    assert value.tolist() == [-np.inf, -1.0, -4.0]
    assert gradient.tolist() == [[0.0], [-2.0], [-4.0]]
    assert counts.neg_inf.tolist() == [1, 0, 0]
