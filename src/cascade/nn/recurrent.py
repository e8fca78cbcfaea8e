"""A scan whose parameter gradients are computed after it, not inside it.

Differentiating an ordinary scan adds every parameter's gradient up step by step: for a batch of 16 that is a
thin matrix product and a pass over the whole weight matrix at each of T steps. Here the backward scan carries
only the state's gradient and records, for each layer, its inputs and its outputs' gradients; each parameter
gradient is then one matrix product over all T x B rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

Layers = dict[str, Callable[[Array], Array]]


Apply = Callable[[str, Array], Array]  # what a step calls, `apply(name, x)`, in place of `layers[name](x)`
Step = Callable[[Apply, PyTree, PyTree], tuple[PyTree, PyTree]]


def scan(step: Step, layers: Layers, carry: PyTree, xs: PyTree, *, unroll: int = 1) -> PyTree:
    """The ys of `jax.lax.scan` with `step(apply, carry, x) -> (carry, y)`; differentiable in every input.

    Each layer is called once per step, maps [B, I] to [B, O], and is a pytree of its parameters. `step` must
    close over no array: whatever it reads comes in through the layers, the carry or `xs`.
    """

    @jax.custom_vjp
    def run(layers: Layers, carry: PyTree, xs: PyTree) -> PyTree:
        return _taped(step, layers, None, carry, xs, unroll)[0]

    def forward(layers: Layers, carry: PyTree, xs: PyTree) -> tuple[PyTree, Any]:
        taps = _zero_taps(step, layers, carry, xs)
        ys, pullback, inputs = jax.vjp(
            lambda taps, carry, xs: _taped(step, layers, taps, carry, xs, unroll),
            taps,
            carry,
            xs,
            has_aux=True,
        )
        return ys, (layers, inputs, pullback)

    def backward(residuals: Any, d_ys: PyTree) -> tuple[Layers, PyTree, PyTree]:
        layers, inputs, pullback = residuals
        d_outputs, d_carry, d_xs = pullback(d_ys)
        d_layers = {
            name: jax.vjp(lambda layer, x=inputs[name]: layer(x), layer)[1](d_outputs[name])[0]
            for name, layer in layers.items()
        }
        return d_layers, d_carry, d_xs

    run.defvjp(forward, backward)
    return run(layers, carry, xs)


def _taped(
    step: Step, layers: Layers, taps: dict[str, Array] | None, carry: PyTree, xs: PyTree, unroll: int
) -> tuple[PyTree, dict[str, Array]]:
    """The scan's ys, and for each layer the inputs it saw. `taps`, zeros, are added to each layer's outputs:
    the gradient of a tap is the gradient of that output."""

    def body(carry: PyTree, x: PyTree) -> tuple[PyTree, PyTree]:
        x, tap = x
        inputs: dict[str, Array] = {}

        def apply(name: str, value: Array) -> Array:
            inputs[name] = value
            out = layers[name](value)
            return out if tap is None else out + tap[name]

        carry, y = step(apply, carry, x)
        return carry, (y, inputs)

    _, (ys, inputs) = jax.lax.scan(body, carry, (xs, taps), unroll=unroll)
    return ys, inputs


def _zero_taps(step: Step, layers: Layers, carry: PyTree, xs: PyTree) -> dict[str, Array]:
    """Zeros shaped as every layer's outputs over the whole scan."""
    length = jax.tree.leaves(xs)[0].shape[0]
    shapes: dict[str, jax.ShapeDtypeStruct] = {}

    def once(carry: PyTree, x: PyTree) -> PyTree:
        def apply(name: str, value: Array) -> Array:
            out = layers[name](value)
            shapes[name] = jax.ShapeDtypeStruct(out.shape, out.dtype)
            return out

        return step(apply, carry, x)

    jax.eval_shape(once, carry, jax.tree.map(lambda leaf: leaf[0], xs))
    return {name: jnp.zeros((length, *shape.shape), shape.dtype) for name, shape in shapes.items()}
