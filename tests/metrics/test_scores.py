"""The Crafter score and what it is made of."""

import numpy as np
import pytest

from cascade.metrics.scores import crafter_score, skill_success, unique_skills

UNLOCKED = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 1, 0]], dtype=bool)


def test_by_hand():
    np.testing.assert_allclose(skill_success(UNLOCKED), [100, 50, 0])
    assert crafter_score(skill_success(UNLOCKED)) == pytest.approx((101 * 51 * 1) ** (1 / 3) - 1)
    assert unique_skills(UNLOCKED) == 2


def test_one_skill_never_seen_does_not_make_it_zero():
    success = np.array([80.0, 0.0])
    assert crafter_score(success) == pytest.approx(81**0.5 - 1)
    assert crafter_score(success) > 0


@pytest.mark.parametrize("value", [0.0, 1.0, 37.5, 100.0])
def test_equal_skills_score_their_success(value):
    assert crafter_score(np.full(22, value)) == pytest.approx(value)


def test_the_order_of_skills_and_episodes_does_not_matter():
    rng = np.random.default_rng(0)
    unlocked = rng.random((50, 22)) < rng.random(22)
    shuffled = unlocked[rng.permutation(50)][:, rng.permutation(22)]
    assert crafter_score(skill_success(shuffled)) == pytest.approx(crafter_score(skill_success(unlocked)))
    assert crafter_score(skill_success(unlocked)) <= skill_success(unlocked).mean()


def test_shares_are_not_per_cent():
    with pytest.raises(ValueError, match="per cent"):
        crafter_score(np.array([101.0]))


def test_no_episodes_unlock_nothing():
    nothing = np.zeros((0, 4), dtype=bool)
    assert skill_success(nothing).tolist() == [0, 0, 0, 0]
    assert unique_skills(nothing) == 0
