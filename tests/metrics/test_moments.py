import numpy as np
import pytest

from cdsampler.errors import InvalidInputError
from cdsampler.metrics import quadratic_constants, quadratic_observable, relative_mae

# Values of the published implementation at 0, at (1, ..., 1) and at (0, 1/dim, 2/dim, ...).
PUBLISHED_VALUES = {
    2: [3.4243018989106098, 16.46379275611221, 6.60119580147548],
    16: [-13.328938353047194, 111.05825667058105, -26.85504330166839],
}
PUBLISHED_ERRORS = {2: 0.306093226362511, 16: 0.7820968189811494}  # last two points against all three


def points(dim):
    return np.stack([np.zeros(dim), np.ones(dim), np.arange(dim) / dim])


@pytest.mark.parametrize("dim", [2, 16])
def test_observable_is_the_published_one(dim):
    np.testing.assert_allclose(quadratic_observable(points(dim)), PUBLISHED_VALUES[dim], rtol=1e-12)


@pytest.mark.parametrize("dim", [2, 16])
def test_relative_mae_agrees_with_the_published_one(dim):
    values = quadratic_observable(points(dim))
    assert relative_mae(values[1:], values.mean()) == pytest.approx(PUBLISHED_ERRORS[dim], rel=1e-12)


def test_published_constants():
    shift, matrix, linear = quadratic_constants(2)
    np.testing.assert_allclose(shift, [3.0819921, -0.5868578], rtol=1e-7)
    np.testing.assert_allclose(matrix, [[0.61484563, 1.2681574], [0.9801868, 1.7928895]], rtol=1e-7)
    np.testing.assert_allclose(linear, [0.45562798, 0.6323063], rtol=1e-7)


@pytest.mark.parametrize("dim", [1, 2, 3, 16, 50])
def test_constants_have_their_shapes_and_cannot_change(dim):
    constants = quadratic_constants(dim)
    assert [array.shape for array in constants] == [(dim,), (dim, dim), (dim,)]
    assert all(array.dtype == np.float64 for array in constants)
    with pytest.raises(ValueError, match="read-only"):
        constants.shift[0] = 0


def test_other_dimensions_have_the_librarys_own_constants():
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(quadratic_constants(3).shift, 2 * rng.standard_normal(3))
    x = np.array([[0.5, -1.0, 2.0]])
    shifted = x[0] + quadratic_constants(3).shift
    expected = shifted @ quadratic_constants(3).matrix @ shifted + quadratic_constants(3).linear @ shifted
    assert quadratic_observable(x) == pytest.approx([expected])


def test_expectation_of_a_gaussian_has_its_closed_form(rng):
    shift, matrix, linear = quadratic_constants(2)
    expected = shift @ matrix @ shift + np.trace(matrix) + linear @ shift
    values = quadratic_observable(rng.standard_normal((400_000, 2)))
    assert relative_mae(values, expected) < 0.02


def test_relative_mae_is_relative_to_the_size_of_the_reference():
    assert relative_mae([1.0, 2.0, 3.0], 4.0) == pytest.approx(0.5)
    assert relative_mae([1.0, 2.0, 3.0], -4.0) == pytest.approx(1.5)
    assert relative_mae([5.0, -1.0], 2.0) == 0


def test_bad_input_is_refused():
    for reference in (0.0, np.nan, np.inf):
        with pytest.raises(InvalidInputError, match="reference_value"):
            relative_mae([1.0], reference)
    with pytest.raises(InvalidInputError, match="1 of 2 rows"):
        relative_mae([1.0, np.nan], 1.0)
    with pytest.raises(InvalidInputError, match="shape"):
        relative_mae(np.ones((2, 2)), 1.0)
    with pytest.raises(InvalidInputError, match="1 of 1 rows"):
        quadratic_observable([[np.inf, 0.0]])
    with pytest.raises(InvalidInputError, match="dim is 0"):
        quadratic_constants(0)
