"""Layers whose every leaf is an array, so that plain `vmap`, `scan` and `jit` carry them.

Inputs may have any leading axes. Arithmetic is in the dtype of the weights (see `precision.cast`); normalisation
statistics are always float32.
"""

from __future__ import annotations

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


def glorot(key: PRNGKeyArray, shape: tuple[int, ...], fan_in: int, fan_out: int) -> Float[Array, "..."]:
    """Uniform weights with variance 2 / (fan_in + fan_out)."""
    limit = math.sqrt(6.0 / (fan_in + fan_out))
    return jax.random.uniform(key, shape, jnp.float32, -limit, limit)


def elu(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """x above zero, exp(x) - 1 below, in float32 inside.

    `jax.nn.elu` takes expm1, whose accuracy next to zero no layer needs: for a wide layer on a GPU that is
    arithmetic which takes longer than the pass over memory.
    """
    wide = x.astype(jnp.float32)
    below = jnp.exp(jnp.where(wide > 0.0, 0.0, wide)) - 1.0
    return jnp.where(wide > 0.0, wide, below).astype(x.dtype)


class Linear(eqx.Module):
    """x W + b."""

    weight: Float[Array, "I O"]
    bias: Float[Array, " O"] | None

    def __init__(self, inputs: int, outputs: int, *, key: PRNGKeyArray, bias: bool = True):
        self.weight = glorot(key, (inputs, outputs), inputs, outputs)
        self.bias = jnp.zeros(outputs) if bias else None

    def __call__(self, x: Float[Array, "*B I"]) -> Float[Array, "*B O"]:
        out = x.astype(self.weight.dtype) @ self.weight
        return out if self.bias is None else out + jnp.broadcast_to(self.bias, out.shape)


class LayerNorm(eqx.Module):
    """Zero mean and unit variance over the last axis, then scale and offset."""

    scale: Float[Array, " D"]
    offset: Float[Array, " D"]

    def __init__(self, size: int):
        self.scale, self.offset = jnp.ones(size), jnp.zeros(size)

    def __call__(self, x: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
        wide = x.astype(jnp.float32)
        mean = wide.mean(-1, keepdims=True)
        centred = wide - jnp.broadcast_to(mean, wide.shape)
        variance = jnp.square(centred).mean(-1, keepdims=True)
        normed = centred * jnp.broadcast_to(jax.lax.rsqrt(variance + 1e-3), wide.shape)
        scale, offset = (
            jnp.broadcast_to(p.astype(jnp.float32), wide.shape) for p in (self.scale, self.offset)
        )
        return (normed * scale + offset).astype(x.dtype)


class MLP(eqx.Module):
    """Hidden layers of one width with ELU (and LayerNorm if asked), then a linear output."""

    hidden: tuple[Linear, ...]
    norms: tuple[LayerNorm, ...]
    out: Linear

    def __init__(
        self, inputs: int, outputs: int, layers: int, units: int, *, key: PRNGKeyArray, norm: bool = False
    ):
        keys = jax.random.split(key, layers + 1)
        sizes = [inputs] + [units] * layers
        self.hidden = tuple(Linear(i, units, key=k) for i, k in zip(sizes[:-1], keys[:-1], strict=True))
        self.norms = tuple(LayerNorm(units) for _ in range(layers)) if norm else ()
        self.out = Linear(sizes[-1], outputs, key=keys[-1])

    def __call__(self, x: Float[Array, "*B I"]) -> Float[Array, "*B O"]:
        for index, layer in enumerate(self.hidden):
            x = layer(x)
            x = elu(self.norms[index](x) if self.norms else x)
        return self.out(x)


class Conv(eqx.Module):
    """4x4 convolution of stride 2 without padding, written as a 2x2 convolution of stride 1.

    Each 2x2 block of pixels becomes one pixel with four times the channels: exactly the same sums, over
    channels enough to feed a matrix unit even for a first layer of one or three.
    """

    kernel: Float[Array, "4 4 C O"]
    bias: Float[Array, " O"]

    def __init__(self, channels: int, outputs: int, *, key: PRNGKeyArray):
        self.kernel = glorot(key, (4, 4, channels, outputs), 16 * channels, 16 * outputs)
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, "*B H W C"]) -> Float[Array, "*B H2 W2 O"]:
        height, width, channels = x.shape[-3:]
        height, width = height - height % 2, width - width % 2  # an odd last row is never reached
        blocks = space_to_depth(x[..., :height, :width, :].astype(self.kernel.dtype))
        kernel = self.kernel.reshape(2, 2, 2, 2, channels, -1).transpose(0, 2, 1, 3, 4, 5)
        out = convolve(blocks, kernel.reshape(2, 2, 4 * channels, -1), full=False)
        return out + jnp.broadcast_to(self.bias, out.shape)


class ConvTranspose(eqx.Module):
    """Transposed convolution of stride 2: y[2m + r] = sum_j x[m - j] w[2j + r], for rows and columns.

    The four parities (r, r') are four ordinary convolutions of stride 1 whose results interleave; they run as
    one convolution with four times the outputs. A kernel of odd size is padded with a zero, and the row and
    column that this adds are cut.
    """

    kernel: Float[Array, "K K C O"]
    bias: Float[Array, " O"]

    def __init__(self, channels: int, outputs: int, size: int, *, key: PRNGKeyArray):
        self.kernel = glorot(key, (size, size, channels, outputs), size**2 * channels, size**2 * outputs)
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, "*B H W C"]) -> Float[Array, "*B H2 W2 O"]:
        size, _, channels, outputs = self.kernel.shape
        x = x.astype(self.kernel.dtype)
        if x.shape[-3:-1] == (1, 1):  # each output pixel has one source: a matrix product
            out = jnp.einsum("...c,hwco->...hwo", x[..., 0, 0, :], self.kernel)
        else:
            taps = (size + 1) // 2
            kernel = jnp.pad(self.kernel, [(0, 2 * taps - size)] * 2 + [(0, 0)] * 2)
            kernel = kernel.reshape(taps, 2, taps, 2, channels, outputs)[::-1, :, ::-1]
            kernel = kernel.transpose(0, 2, 4, 1, 3, 5).reshape(taps, taps, channels, 4 * outputs)
            out = depth_to_space(convolve(x, kernel, full=True))
            height, width = (2 * (side - 1) + size for side in x.shape[-3:-1])
            out = out[..., :height, :width, :]
        return out + jnp.broadcast_to(self.bias, out.shape)


def space_to_depth(x: Float[Array, "*B H W C"]) -> Float[Array, "*B H2 W2 C4"]:
    """Each 2x2 block as one pixel."""
    *batch, height, width, channels = x.shape
    blocks = x.reshape(*batch, height // 2, 2, width // 2, 2, channels).swapaxes(-4, -3)
    return blocks.reshape(*batch, height // 2, width // 2, 4 * channels)


def depth_to_space(x: Float[Array, "*B H W C4"]) -> Float[Array, "*B H2 W2 C"]:
    """The inverse of `space_to_depth`."""
    *batch, height, width, channels = x.shape
    blocks = x.reshape(*batch, height, width, 2, 2, channels // 4).swapaxes(-4, -3)
    return blocks.reshape(*batch, 2 * height, 2 * width, channels // 4)


def convolve(
    x: Float[Array, "*B H W C"], kernel: Float[Array, "K K C O"], full: bool
) -> Float[Array, "*B H2 W2 O"]:
    """Convolution of stride 1, `full` where kernel and image overlap at all, else where the kernel is all inside."""
    images = x.reshape(-1, *x.shape[-3:])
    # XLA's own gradient of the kernel takes up to forty times as long on a CPU as these few matrix products.
    run = convolve_on_cpu if jax.default_backend() == "cpu" else convolve_images
    out = run(images, kernel, full)
    return out.reshape(*x.shape[:-3], *out.shape[1:])


def convolve_images(
    x: Float[Array, "N H W C"], kernel: Float[Array, "K K C O"], full: bool
) -> Float[Array, "N H2 W2 O"]:
    """`convolve` as XLA has it."""
    padding = kernel.shape[0] - 1 if full else 0
    return jax.lax.conv_general_dilated(
        x, kernel, (1, 1), [(padding, padding)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


convolve_on_cpu = jax.custom_vjp(convolve_images, nondiff_argnums=(2,))


def _forward(x: Array, kernel: Array, full: bool) -> tuple[Array, tuple[Array, Array]]:
    return convolve_images(x, kernel, full), (x, kernel)


def _backward(full: bool, kept: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    """The image's gradient as XLA has it; the kernel's as one matrix product for each of its K x K places."""
    x, kernel = kept
    (to_image,) = jax.vjp(lambda x: convolve_images(x, kernel, full), x)[1](slope)
    size, (height, width) = kernel.shape[0], (x if full else slope).shape[1:3]

    def place(row: int, column: int) -> Float[Array, "C O"]:
        """The smaller of the two planes lies inside the larger, at this place."""
        inputs, outputs = x, slope
        if full:
            row, column = size - 1 - row, size - 1 - column
            outputs = slope[:, row : row + height, column : column + width]
        else:
            inputs = x[:, row : row + height, column : column + width]
        return inputs.reshape(-1, inputs.shape[-1]).T @ outputs.reshape(-1, outputs.shape[-1])

    rows = [jnp.stack([place(row, column) for column in range(size)]) for row in range(size)]
    return to_image, jnp.stack(rows)


convolve_on_cpu.defvjp(_forward, _backward)


class NormGRU(eqx.Module):
    """Gated recurrent cell with LayerNorm over its three gates; the update gate starts half closed.

    A cell step is `update(norm(gates([x, state])), state)`. The parts are apart so that a scan can defer the
    gradients of those with parameters (see `recurrent.scan`).
    """

    gates: Linear
    norm: LayerNorm

    def __init__(self, inputs: int, size: int, *, key: PRNGKeyArray):
        self.gates = Linear(inputs + size, 3 * size, key=key, bias=False)
        self.norm = LayerNorm(3 * size)

    @staticmethod
    def update(gates: Float[Array, "*B D3"], state: Float[Array, "*B D"]) -> Float[Array, "*B D"]:
        reset, candidate, update = jnp.split(gates.astype(jnp.float32), 3, -1)
        candidate = jnp.tanh(jax.nn.sigmoid(reset) * candidate)
        update = jax.nn.sigmoid(update - 1.0)
        wide = state.astype(jnp.float32)
        return (wide + update * (candidate - wide)).astype(state.dtype)
