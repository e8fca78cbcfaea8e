"""Floating-point operations and bytes of a JAX function, counted from its own program.

Matrix products and convolutions only (two operations per multiply-add), with loops taken as often as they run:
what the matrix units must do at the least, whatever the compiler makes of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.extend import core


class Product(NamedTuple):
    """A matrix product or convolution, and how often it runs."""

    times: int
    flops: int
    bytes: int
    """of its operands and its result, each read or written once"""


def count_flops(function: Callable[..., Any], *args: Any) -> int:
    """Operations of one call of `function`."""
    return _flops(products(function, *args))


def products(function: Callable[..., Any], *args: Any) -> list[Product]:
    """What one call of `function` multiplies; arguments may be shapes alone."""
    return _of_jaxpr(jax.make_jaxpr(function)(*args).jaxpr)


def _flops(found: list[Product]) -> int:
    return sum(product.times * product.flops for product in found)


def _of_jaxpr(jaxpr: core.Jaxpr) -> list[Product]:
    return [product for equation in jaxpr.eqns for product in _of_equation(equation)]


def _of_equation(equation: core.JaxprEqn) -> list[Product]:
    name, params = equation.primitive.name, equation.params
    if name == "dot_general":
        return [Product(1, _dot(equation), _bytes(equation))]
    if name == "conv_general_dilated":
        return [Product(1, _convolution(equation), _bytes(equation))]
    inner = [_of_jaxpr(jaxpr) for value in params.values() for jaxpr in _jaxprs(value)]
    if name == "cond":
        return max(inner, key=_flops)
    length = params.get("length", 1)
    return [one._replace(times=length * one.times) for found in inner for one in found]


def _jaxprs(value: Any) -> list[core.Jaxpr]:
    """The programs inside a parameter of an equation."""
    if isinstance(value, core.ClosedJaxpr):
        return [value.jaxpr]
    if isinstance(value, core.Jaxpr):
        return [value]
    if isinstance(value, tuple | list):
        return [jaxpr for item in value for jaxpr in _jaxprs(item)]
    return []


def _shape(variable: Any) -> tuple[int, ...]:
    return variable.aval.shape


def _bytes(equation: core.JaxprEqn) -> int:
    arrays: list[Any] = [variable.aval for variable in (*equation.invars, *equation.outvars)]
    return sum(array.size * array.dtype.itemsize for array in arrays)


def _dot(equation: core.JaxprEqn) -> int:
    (contract, _), _ = equation.params["dimension_numbers"]
    left = _shape(equation.invars[0])
    depth = math.prod(left[axis] for axis in contract)
    return 2 * depth * math.prod(_shape(equation.outvars[0]))


def _convolution(equation: core.JaxprEqn) -> int:
    kernel = _shape(equation.invars[1])
    out_axis = equation.params["dimension_numbers"].rhs_spec[0]
    per_output = math.prod(kernel) // kernel[out_axis]
    return 2 * per_output * math.prod(_shape(equation.outvars[0]))
