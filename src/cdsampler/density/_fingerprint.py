"""Which density is this? Told from its program, without an evaluation."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from cdsampler.density._log_density import AbstractLogDensity

ADDRESS = re.compile(r"0x[0-9a-fA-F]+|0xX+")
# Callbacks are known by the name of their primitive, with which the text of an equation begins.
CALLBACK = 40


class Fingerprint(NamedTuple):
    """What tells densities apart.

    Attributes
    ----------
    program : str
        Hash of the traced program and the constants in it.
    is_complete : bool
        False if the program calls back to Python, which the hash doesn't see.
    """

    program: str
    is_complete: bool


def fingerprint(density: AbstractLogDensity) -> Fingerprint:
    """Return what tells a density from others; traces it, which costs no evaluation."""
    total, is_complete = hashlib.sha256(), True
    at = jnp.zeros(density.dim, density.dtype)
    functions = [density.value, density.value_and_gradient] if density.has_gradient else [density.value]
    for function in functions:
        program = jax.make_jaxpr(function)(at)
        for text in _texts(program.jaxpr, program.consts):
            total.update(text)
            is_complete = is_complete and b"callback" not in text[:CALLBACK]
    return Fingerprint(total.hexdigest()[:16], is_complete)


def _texts(program: core.Jaxpr, constants: Sequence[Any]) -> Iterator[bytes]:
    """Return a program in pieces, each equation as its primitive, operands, parameters, and the programs in these."""
    for constant in constants:
        yield from _array(constant)
    numbers: dict[Any, int] = {}

    def name(variable: Any) -> str:
        if isinstance(variable, core.Literal):
            return f"{variable.val!r}:{variable.aval}" if np.ndim(variable.val) == 0 else "array"
        return f"{numbers.setdefault(variable, len(numbers))}:{variable.aval}"

    for variable in (*program.constvars, *program.invars):
        yield name(variable).encode()
    for equation in program.eqns:
        inner: list[Any] = []
        parameters = [(key, _without_programs(value, inner)) for key, value in sorted(equation.params.items())]
        operands = [name(variable) for variable in (*equation.invars, *equation.outvars)]
        yield f"{equation.primitive.name} {operands} {ADDRESS.sub('', str(parameters))}".encode()
        for operand in equation.invars:
            if isinstance(operand, core.Literal) and np.ndim(operand.val) > 0:
                yield from _array(operand.val)
        for part in inner:
            is_closed = isinstance(part, core.ClosedJaxpr)
            yield from _texts(part.jaxpr, part.consts) if is_closed else _texts(part, ())
    yield str([name(variable) for variable in program.outvars]).encode()


def _without_programs(parameter: Any, inner: list[Any]) -> Any:
    """Return a parameter without the programs in it, which are appended: their text takes long."""
    if isinstance(parameter, core.ClosedJaxpr | core.Jaxpr):
        inner.append(parameter)
        return "program"
    if isinstance(parameter, tuple | list):
        return [_without_programs(value, inner) for value in parameter]
    return parameter


def _array(constant: Any) -> Iterator[bytes]:
    is_key = jnp.issubdtype(getattr(constant, "dtype", np.dtype(float)), jax.dtypes.prng_key)
    plain = np.asarray(jax.random.key_data(constant) if is_key else constant)
    yield f"{plain.dtype}{plain.shape}".encode() + plain.tobytes()
