"""Array types shared by all layers."""

from typing import TypeAlias

from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

PRNGKey: TypeAlias = PRNGKeyArray
Position: TypeAlias = Float[Array, " dim"]
Scalar: TypeAlias = Float[Array, ""]
IntScalar: TypeAlias = Int[Array, ""]
BoolScalar: TypeAlias = Bool[Array, ""]

__all__ = ["Array", "Bool", "BoolScalar", "Float", "Int", "IntScalar", "Key", "PRNGKey", "Position", "Scalar"]
