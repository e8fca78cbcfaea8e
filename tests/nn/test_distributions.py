"""Known values of the distributions."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from cascade.nn import distributions as d


def test_straight_through_is_exactly_one_hot_and_passes_the_gradient_of_the_probabilities():
    logits = 5 * jax.random.normal(jax.random.key(0), (100, 7))
    noise = jax.random.uniform(jax.random.key(1), (100,))
    sample = d.one_hot_sample(logits, noise)
    assert set(np.unique(sample)) == {0.0, 1.0}
    np.testing.assert_array_equal(sample.sum(-1), 1.0)
    weights = jax.random.normal(jax.random.key(2), logits.shape)
    through = jax.grad(lambda x: (d.one_hot_sample(x, noise) * weights).sum())(logits)
    direct = jax.grad(lambda x: (jax.nn.softmax(x) * weights).sum())(logits)
    np.testing.assert_allclose(through, direct, atol=1e-6)


def test_samples_follow_the_probabilities():
    logits = jnp.log(jnp.array([0.1, 0.2, 0.7]))
    many = jnp.broadcast_to(logits, (20_000, 3))
    sample = d.one_hot_sample(many, jax.random.uniform(jax.random.key(0), (20_000,)))
    np.testing.assert_allclose(sample.mean(0), [0.1, 0.2, 0.7], atol=0.015)


def test_the_extreme_draws_still_pick_a_class():
    logits = 30 * jax.random.normal(jax.random.key(0), (500, 32))
    for edge in (0.0, 1.0 - 2.0**-24):
        np.testing.assert_array_equal(d.one_hot_sample(logits, jnp.full(500, edge)).sum(-1), 1.0)


def test_categorical_entropy_and_kl_agree_with_scipy():
    p, q = np.array([0.1, 0.2, 0.7]), np.array([0.3, 0.3, 0.4])
    np.testing.assert_allclose(d.categorical_entropy(jnp.log(jnp.asarray(p))), stats.entropy(p), rtol=1e-5)
    kl = d.categorical_kl(jnp.log(jnp.asarray(p)), jnp.log(jnp.asarray(q)))
    np.testing.assert_allclose(kl, stats.entropy(p, q), rtol=1e-5)


def test_gaussian_kl_is_zero_only_for_equal_parameters():
    left = jax.random.normal(jax.random.key(0), (5, 6))
    np.testing.assert_allclose(d.gaussian_kl(left, left), 0.0, atol=1e-6)
    assert (d.gaussian_kl(left, left + 0.5) > 0).all()


def test_gaussian_kl_is_that_of_its_definition():
    """The integral of p (log p - log q), by sums over a fine grid."""
    left, right = jnp.array([0.3, -0.4]), jnp.array([-0.5, 0.9])
    (m1, s1), (m2, s2) = (d.gaussian_parameters(raw) for raw in (left, right))
    p, q = stats.norm(m1[0], s1[0]), stats.norm(m2[0], s2[0])
    x = np.linspace(-15, 15, 60_001)
    expected = np.trapezoid(p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), x)
    np.testing.assert_allclose(d.gaussian_kl(left, right)[0], expected, rtol=1e-4)


def test_squashed_normal_integrates_to_one():
    raw = jnp.array([0.3, -0.4])
    actions = jnp.linspace(-0.9999, 0.9999, 20_001)
    log_prob, _ = d.tanh_normal_log_prob(jnp.broadcast_to(raw, (len(actions), 2)), actions[:, None])
    np.testing.assert_allclose(jnp.trapezoid(jnp.exp(log_prob), actions), 1.0, atol=2e-3)


def test_bernoulli_log_prob():
    logit = jnp.array([-3.0, 0.0, 2.0])
    p = jax.nn.sigmoid(logit)
    np.testing.assert_allclose(d.bernoulli_log_prob(logit, jnp.ones(3)), jnp.log(p), rtol=1e-5)
    np.testing.assert_allclose(d.bernoulli_log_prob(logit, jnp.zeros(3)), jnp.log(1 - p), rtol=1e-5)
