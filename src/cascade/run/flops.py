"""Floating-point operations of a JAX function, counted from its own program.

Matrix products and convolutions only (two operations per multiply-add), with loops taken as often as they run:
what the matrix units must do at the least, whatever the compiler makes of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
from jax.extend import core


def count_flops(function: Callable[..., Any], *args: Any) -> int:
    """Operations of one call of `function`."""
    return _of_jaxpr(jax.make_jaxpr(function)(*args).jaxpr)


def _of_jaxpr(jaxpr: core.Jaxpr) -> int:
    return sum(_of_equation(equation) for equation in jaxpr.eqns)


def _of_equation(equation: core.JaxprEqn) -> int:
    name, params = equation.primitive.name, equation.params
    if name == "dot_general":
        return _dot(equation)
    if name == "conv_general_dilated":
        return _convolution(equation)
    inner = [jaxpr for value in params.values() for jaxpr in _jaxprs(value)]
    if name == "cond":
        return max(_of_jaxpr(jaxpr) for jaxpr in inner)
    return params.get("length", 1) * sum(_of_jaxpr(jaxpr) for jaxpr in inner)


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
