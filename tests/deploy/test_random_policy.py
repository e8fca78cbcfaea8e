"""Policies that know nothing."""

import jax
import numpy as np
import pytest

from cascade.deploy import RandomPolicy, VariedPolicy
from cascade.specs import ActionSpec


def played(policy, lanes: int, steps: int, firsts=(0,)) -> np.ndarray:
    """Actions [steps, lanes]; every lane begins an episode at each of `firsts`."""
    carry, actions = policy.initial(lanes), []
    for step in range(steps):
        keys = jax.vmap(lambda i, t=step: jax.random.fold_in(jax.random.key(t), i))(np.arange(lanes))
        carry, action = policy.act(carry, {}, np.full(lanes, step in firsts), keys)
        actions.append(action)
    return np.stack(actions)


@pytest.mark.parametrize("policy", [RandomPolicy, VariedPolicy])
def test_over_many_episodes_no_action_is_favoured(policy):
    actions = played(policy(ActionSpec("discrete", 3)), lanes=3_000, steps=4)
    shares = np.bincount(actions.ravel(), minlength=3) / actions.size
    np.testing.assert_allclose(shares, 1 / 3, atol=0.02)


def test_varied_odds_are_uniform_over_all_odds():
    """The share of an action is then Beta(1, 2) for three actions: above x in (1 - x)^2 of the episodes."""
    actions = played(VariedPolicy(ActionSpec("discrete", 3)), lanes=1_000, steps=60)
    for action in range(3):
        share = (actions == action).mean(0)
        for x in (0.2, 0.5, 0.8):
            assert (share > x).mean() == pytest.approx((1 - x) ** 2, abs=0.05)


def test_uniform_actions_have_the_same_odds_in_every_episode():
    actions = played(RandomPolicy(ActionSpec("discrete", 3)), lanes=200, steps=60)
    assert ((actions == 2).mean(0) < 0.75).all()


def test_an_episode_keeps_its_odds_and_the_next_draws_others():
    actions = played(VariedPolicy(ActionSpec("discrete", 2)), lanes=500, steps=80, firsts=(0, 40)) == 1
    parts = [actions[i : i + 20].mean(0) for i in range(0, 80, 20)]
    assert np.corrcoef(parts[0], parts[1])[0, 1] > 0.7
    assert abs(np.corrcoef(parts[1], parts[2])[0, 1]) < 0.2


def test_varied_continuous_actions_keep_to_an_interval_of_the_episode():
    actions = played(VariedPolicy(ActionSpec("continuous", 2)), lanes=400, steps=50)
    assert actions.dtype == np.float32
    assert np.abs(actions).max() <= 1.0
    widths = np.ptp(actions, axis=0)
    assert widths.min() < 0.1
    assert widths.max() > 1.7
    assert np.ptp(actions, axis=(0, 1)).min() > 1.9, "over all episodes the whole range"
    assert widths.mean() == pytest.approx(2 / 3, abs=0.06), "between two uniform ends"
