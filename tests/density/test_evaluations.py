import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cdsampler.density import Component, Evaluations, Point

FIELDS = ("value", "gradient", "neg_inf", "nan", "pos_inf")


def evaluations(*numbers):
    return Evaluations(*(jnp.asarray(n, jnp.int32) for n in numbers))


def numbers(counts):
    return [np.asarray(getattr(counts, field)).tolist() for field in FIELDS]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_zero_has_the_shape_and_counts_nothing(shape):
    zero = Evaluations.zero(shape)
    for field in FIELDS:
        assert getattr(zero, field).shape == shape
        assert getattr(zero, field).dtype == jnp.int32
        assert not np.any(getattr(zero, field))


def test_addition_keeps_every_count_apart():
    total = evaluations(1, 2, 3, 4, 5) + evaluations(10, 20, 30, 40, 50)
    assert numbers(total) == [11, 22, 33, 44, 55]


def test_zero_is_neutral():
    counts = evaluations(1, 2, 3, 4, 5)
    assert numbers(counts + Evaluations.zero()) == numbers(counts)


def test_sum_adds_the_leading_axis_alone():
    counts = evaluations(*(np.array([[1, 2], [10, 20], [100, 200]]) * k for k in range(1, 6)))
    assert numbers(jax.jit(Evaluations.sum)(counts)) == [[111 * k, 222 * k] for k in range(1, 6)]


def test_total_adds_every_axis():
    counts = evaluations(*(np.arange(6).reshape(2, 3) * k for k in range(1, 6)))
    assert numbers(counts.total()) == [15, 30, 45, 60, 75]


def test_total_does_not_overflow_where_32_bits_do():
    largest = np.iinfo(np.int32).max
    total = evaluations(*([np.full(4, largest)] * 5)).total()
    for field in FIELDS:
        assert getattr(total, field).dtype == np.int64
        assert getattr(total, field) == 4 * largest


def test_count_is_values_and_gradients():
    assert int(evaluations(3, 4, 1, 1, 1).count) == 7


def test_count_of_a_total():
    assert evaluations(*([np.array([3, 4])] * 5)).total().count == 14


def test_log_ratio_is_target_minus_reference():
    zeros = jnp.zeros(2)
    point = Point(zeros, Component(jnp.array(-1.5), zeros), Component(jnp.array(2.0), zeros))
    assert float(point.log_ratio) == 3.5
