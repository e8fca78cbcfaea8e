"""The scan with deferred gradients is the ordinary scan."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cascade.nn import recurrent
from cascade.nn.layers import LayerNorm, Linear


def step(apply, carry, x):
    carry = jnp.tanh(apply("norm", apply("recur", carry)) + x)
    return carry, apply("out", carry)


def plain_scan(step, layers, carry, xs, unroll=1):
    return jax.lax.scan(lambda c, x: step(lambda name, v: layers[name](v), c, x), carry, xs, unroll=unroll)[1]


@pytest.fixture
def problem():
    keys = jax.random.split(jax.random.key(0), 4)
    layers = {
        "recur": Linear(6, 6, key=keys[0]),
        "norm": LayerNorm(6),
        "out": Linear(6, 3, key=keys[1], bias=False),
    }
    return layers, jax.random.normal(keys[2], (4, 6)), jax.random.normal(keys[3], (9, 4, 6))


@pytest.mark.parametrize("unroll", [1, 3])
def test_values_and_all_gradients_equal_the_plain_scan(problem, unroll):
    def objective(scan, layers, carry, xs):
        ys = scan(step, layers, carry, xs, unroll=unroll)
        return jnp.sin(ys).sum()

    values, grads = zip(
        *(
            jax.value_and_grad(lambda *args, s=scan: objective(s, *args), argnums=(0, 1, 2))(*problem)
            for scan in (recurrent.scan, plain_scan)
        ),
        strict=True,
    )
    np.testing.assert_allclose(*values, rtol=1e-6)
    assert jax.tree.structure(grads[0]) == jax.tree.structure(grads[1])
    for deferred, plain in zip(*map(jax.tree.leaves, grads), strict=True):
        np.testing.assert_allclose(deferred, plain, rtol=1e-4, atol=1e-5)


def test_it_batches_over_seeds(problem):
    layers, carry, xs = problem
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), layers)
    grad = jax.grad(lambda layers: recurrent.scan(step, layers, carry, xs).sum())
    both = jax.vmap(grad)(stacked)
    for seed in range(2):
        one = grad(jax.tree.map(lambda leaf, s=seed: leaf[s], stacked))
        for left, right in zip(jax.tree.leaves(both), jax.tree.leaves(one), strict=True):
            np.testing.assert_allclose(left[seed], right, rtol=1e-4, atol=1e-5)
