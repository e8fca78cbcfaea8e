"""Several categoricals as one: the chain rule drawn and read, and what it knows that independent ones cannot."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cascade.nn import chain
from cascade.nn.distributions import categorical_kl
from cascade.nn.layers import Linear
from cascade.nn.precision import cast

G, C, H = 3, 4, 6


def layers(seed=0, parts=G, classes=C):
    """Large weights, so that parts depend on each other."""
    first, second, third = jax.random.split(jax.random.key(seed), 3)
    says = Linear(parts * classes, H, key=first, bias=False)
    reads = Linear(H, parts * classes, key=second)
    reads = eqx.tree_at(lambda layer: layer.bias, reads, jax.random.normal(third, (parts * classes,)))
    return jax.tree.map(lambda x: 4.0 * x, says), jax.tree.map(lambda x: 2.0 * x, reads)


def everything(parts=G, classes=C):
    """All values of z, one-hot: [C^G, G, C]."""
    index = np.array(list(itertools.product(range(classes), repeat=parts)))
    return jax.nn.one_hot(index, classes)


def log_probs(says, reads, hidden, z):
    """log p(z) of every row."""
    logits = chain.conditionals(says, reads, jnp.broadcast_to(hidden[None], (len(z), H)), z)
    return (jax.nn.log_softmax(logits) * z).sum((-1, -2))


def test_the_conditionals_make_one_distribution():
    hidden = jax.random.normal(jax.random.key(3), (H,))
    np.testing.assert_allclose(jnp.exp(log_probs(*layers(), hidden, everything())).sum(), 1.0, rtol=1e-5)


def test_a_part_depends_on_those_before_it_alone():
    hidden, z = jax.random.normal(jax.random.key(3), (H,)), everything()[7]
    base = chain.conditionals(*layers(), hidden, z)
    for part in range(G):
        changed = chain.conditionals(*layers(), hidden, z.at[part].set(jnp.roll(z[part], 1)))
        np.testing.assert_array_equal(changed[: part + 1], base[: part + 1])
        if part + 1 < G:
            assert np.abs(changed[part + 1 :] - base[part + 1 :]).max() > 0.1


def test_what_is_drawn_follows_what_is_read():
    says, reads = layers()
    hidden = jax.random.normal(jax.random.key(3), (H,))
    count = 40_000
    uniform = jax.random.uniform(jax.random.key(4), (count, G))
    drawn = chain.draw(says, reads, jnp.broadcast_to(hidden, (count, H)), uniform)
    np.testing.assert_array_equal(drawn.sum(-1), 1.0)
    share = jnp.einsum("ngc,zgc->nz", drawn, everything()) == G
    np.testing.assert_allclose(
        share.mean(0), jnp.exp(log_probs(says, reads, hidden, everything())), atol=0.012
    )


def test_more_parts_than_a_loop_body_holds_are_drawn_as_they_are_read():
    parts, classes, count = 2 * chain.UNROLL + 3, 3, 64
    says, reads = layers(1, parts, classes)
    hidden = jax.random.normal(jax.random.key(5), (count, H))
    uniform = jax.random.uniform(jax.random.key(6), (count, parts))
    drawn = chain.draw(says, reads, hidden, uniform)
    upto = jnp.cumsum(jax.nn.softmax(chain.conditionals(says, reads, hidden, drawn)), -1)
    index = (uniform[..., None] >= upto).sum(
        -1
    )  # the first class whose cumulative probability exceeds the draw
    np.testing.assert_array_equal(drawn.argmax(-1), index)


def test_the_sum_over_parts_is_the_kl_of_the_whole():
    """KL(q || p) = E_q[Σ KL(q_i || p_i(. | z before i))] where the parts of q are independent."""
    says, reads = layers()
    hidden = jax.random.normal(jax.random.key(3), (H,))
    q, z = jax.random.normal(jax.random.key(7), (G, C)), everything()
    log_q = (jax.nn.log_softmax(q)[None] * z).sum((-1, -2))
    p = chain.conditionals(says, reads, jnp.broadcast_to(hidden[None], (len(z), H)), z)
    parts = categorical_kl(jnp.broadcast_to(q[None], p.shape), p).sum(-1)
    whole = (jnp.exp(log_q) * (log_q - log_probs(says, reads, hidden, z))).sum()
    np.testing.assert_allclose((jnp.exp(log_q) * parts).sum(), whole, rtol=1e-4)


def test_it_learns_that_rare_things_come_together():
    """Three parts that change together in one case of ten: independent ones would do so in one of a thousand."""
    rare = jax.random.bernoulli(jax.random.key(8), 0.1, (4_000,))
    z = jnp.broadcast_to(jax.nn.one_hot(rare.astype(jnp.int32), 2)[:, None], (4_000, G, 2))
    hidden = jnp.zeros((len(z), H))

    @jax.jit
    def descend(parameters):
        def surprise(parameters):
            logits = jax.nn.log_softmax(chain.conditionals(*parameters, hidden, z))
            return -(logits * z).sum((-1, -2)).mean()

        grads = jax.grad(surprise)(parameters)
        return jax.tree.map(lambda x, g: x - 0.3 * g, parameters, grads)

    parameters = layers(2, G, 2)
    for _ in range(400):
        parameters = descend(parameters)
    drawn = chain.draw(*parameters, hidden, jax.random.uniform(jax.random.key(9), (len(z), G)))[..., 1]
    all_of_them, any_of_them = drawn.all(-1).mean(), drawn.any(-1).mean()
    np.testing.assert_allclose(all_of_them, rare.mean(), atol=0.02)
    assert any_of_them - all_of_them < 0.01


def test_in_bfloat16_the_draws_are_nearly_those_of_float32():
    says, reads = layers()
    hidden = jax.random.normal(jax.random.key(3), (4_000, H))
    uniform = jax.random.uniform(jax.random.key(4), (4_000, G))
    wide = chain.draw(says, reads, hidden, uniform)
    narrow = chain.draw(*cast((says, reads), "bfloat16"), hidden.astype(jnp.bfloat16), uniform)
    assert narrow.dtype == jnp.float32
    assert (wide.argmax(-1) == narrow.argmax(-1)).mean() > 0.97


def test_draws_pass_the_gradient_of_their_probabilities():
    says, reads = layers()
    hidden = jax.random.normal(jax.random.key(3), (5, H))
    uniform = jax.random.uniform(jax.random.key(4), (5, G))
    weights = jax.random.normal(jax.random.key(2), (5, C))
    # Nothing comes before the first part, so its gradient is that of plain probabilities.
    through = jax.grad(lambda x: (chain.draw(says, reads, x, uniform)[:, 0] * weights).sum())(hidden)
    z = jnp.zeros((5, G, C))
    direct = jax.grad(
        lambda x: (jax.nn.softmax(chain.conditionals(says, reads, x, z)[:, 0]) * weights).sum()
    )(hidden)
    np.testing.assert_allclose(through, direct, atol=1e-5)
    # What a later part owes to an earlier one: nothing but these weights lies between the two.
    between = jax.grad(lambda x: (chain.draw(x, reads, hidden, uniform)[:, -1] * weights).sum())(says)
    assert np.abs(between.weight[: (G - 1) * C]).max() > 1e-3
    np.testing.assert_array_equal(between.weight[(G - 1) * C :], 0.0)
