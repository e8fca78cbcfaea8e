"""Two ways to compute one thing: the fast convolutions against XLA's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cascade.nn.layers import (
    MLP,
    Conv,
    ConvTranspose,
    LayerNorm,
    NormGRU,
    convolve,
    convolve_images,
    depth_to_space,
    elu,
    space_to_depth,
)

DIMS = ("NHWC", "HWIO", "NHWC")


@pytest.mark.parametrize("size", [16, 31, 64])
@pytest.mark.parametrize("channels", [1, 3, 8])
def test_conv_is_the_strided_convolution(size, channels):
    x = jax.random.normal(jax.random.key(0), (size, size, channels))
    layer = Conv(channels, 5, key=jax.random.key(1))
    plain = jax.lax.conv_general_dilated(x[None], layer.kernel, (2, 2), "VALID", dimension_numbers=DIMS)[0]
    np.testing.assert_allclose(layer(x), plain, atol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 5, 13])
@pytest.mark.parametrize("kernel", [4, 5, 6])
def test_conv_transpose_is_the_gradient_of_a_convolution(size, kernel):
    """The definition: the transpose of the stride-2 convolution with the same kernel."""
    layer = ConvTranspose(3, 4, kernel, key=jax.random.key(0))
    x = jax.random.normal(jax.random.key(1), (size, size, 3))
    side = 2 * (size - 1) + kernel

    def convolution(y):
        swapped = layer.kernel.transpose(0, 1, 3, 2)
        return jax.lax.conv_general_dilated(y[None], swapped, (2, 2), "VALID", dimension_numbers=DIMS)[0]

    (expected,) = jax.linear_transpose(convolution, jnp.zeros((side, side, 4)))(x)
    assert layer(x).shape == (side, side, 4)
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(("side", "kernel"), [(5, 2), (4, 3), (3, 3)])
def test_gradients_of_a_convolution_are_those_of_xla(side, kernel, full):
    """On a CPU the kernel's gradient is a sum of matrix products."""
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (2, 3, side, side, 4))
    weights = jax.random.normal(keys[1], (kernel, kernel, 4, 5))
    out, gradients = jax.vjp(lambda x, weights: convolve(x, weights, full), x, weights)
    images = x.reshape(6, side, side, 4)
    plain, expected = jax.vjp(lambda x, weights: convolve_images(x, weights, full), images, weights)
    slope = jax.random.normal(keys[2], out.shape)
    np.testing.assert_array_equal(out.reshape(plain.shape), plain)
    for found, right in zip(gradients(slope), expected(slope.reshape(plain.shape)), strict=True):
        np.testing.assert_allclose(found.reshape(right.shape), right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "layer", [Conv(3, 5, key=jax.random.key(0)), ConvTranspose(3, 5, 5, key=jax.random.key(0))]
)
def test_leading_axes_are_a_batch(layer):
    x = jax.random.normal(jax.random.key(1), (2, 3, 6, 6, 3))
    one_by_one = jnp.stack([jnp.stack([layer(image) for image in row]) for row in x])
    np.testing.assert_allclose(layer(x), one_by_one, atol=1e-5)


def test_space_and_depth_invert_each_other():
    x = jax.random.normal(jax.random.key(0), (6, 8, 3))
    np.testing.assert_array_equal(depth_to_space(space_to_depth(x)), x)


@pytest.mark.parametrize(("precision", "apart"), [("float32", 2e-7), ("bfloat16", 4e-3)])
def test_elu_and_its_slope_are_those_of_jax(precision, apart):
    x = jnp.array([-200.0, -3.0, -1e-3, -0.0, 0.0, 1e-3, 2.0, 200.0], precision)
    for function, reference in ((elu, jax.nn.elu), *[(jax.vmap(jax.grad(f)) for f in (elu, jax.nn.elu))]):
        np.testing.assert_allclose(
            *(np.asarray(f(x), np.float32) for f in (function, reference)), rtol=apart, atol=apart
        )


def test_layer_norm_ignores_scale_and_shift_of_its_input():
    x = jax.random.normal(jax.random.key(0), (50,)) * 10
    norm = LayerNorm(50)
    np.testing.assert_allclose(norm(x), norm(3.0 * x + 7.0), atol=1e-4)
    np.testing.assert_allclose([norm(x).mean(), norm(x).std()], [0.0, 1.0], atol=1e-3)


def test_gru_keeps_its_state_when_the_update_gate_is_shut():
    state = jax.random.normal(jax.random.key(0), (4,))
    shut = jnp.concatenate([jnp.zeros(8), jnp.full(4, -50.0)])
    np.testing.assert_allclose(NormGRU.update(shut, state), state, atol=1e-6)
    open_wide = jnp.concatenate([jnp.full(4, 50.0), jnp.full(4, 0.3), jnp.full(4, 50.0)])
    np.testing.assert_allclose(NormGRU.update(open_wide, state), jnp.tanh(jnp.full(4, 0.3)), atol=1e-6)


def test_every_leaf_is_an_array_so_that_plain_vmap_stacks_networks():
    stacked = jax.vmap(lambda key: MLP(3, 2, 2, 8, key=key))(jax.random.split(jax.random.key(0), 5))
    assert all(isinstance(leaf, jax.Array) and leaf.shape[0] == 5 for leaf in jax.tree.leaves(stacked))
    out = jax.vmap(lambda mlp: mlp(jnp.ones(3)))(stacked)
    assert out.shape == (5, 2)
    assert len(np.unique(np.asarray(out[:, 0]))) == 5
