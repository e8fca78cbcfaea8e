"""Coverage: hand-counted levels, what must not matter, and equal numbers of episodes."""

import numpy as np
import pytest

from cascade.metrics.coverage import (
    coverage,
    level_coverage,
    split_episodes,
)

# Two levels of 2 x 3 cells: four cells can be reached in the first, two in the second.
REACHABLE = np.array([[[1, 1, 0], [1, 1, 0]], [[1, 0, 0], [1, 0, 0]]], dtype=bool)
# The first explorer stands on two and one of them, the second on one (the same) and two; one step is in a wall.
VISITS = np.array(
    [[[[5, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]]], [[[2, 0, 9], [0, 0, 0]], [[1, 0, 0], [3, 0, 0]]]],
    dtype=np.uint16,
)


def test_hand_counted():
    np.testing.assert_allclose(level_coverage(VISITS, REACHABLE), [2 / 4, 2 / 2])
    assert coverage(VISITS, REACHABLE) == pytest.approx(0.75)
    assert coverage(VISITS[:1], REACHABLE) == pytest.approx((2 / 4 + 1 / 2) / 2)
    assert coverage(VISITS[1:], REACHABLE) == pytest.approx((1 / 4 + 1) / 2)


def test_levels_weigh_the_same_whatever_their_size():
    """The mean of shares, not the share of all cells (which would be 4 of 6)."""
    assert coverage(VISITS, REACHABLE) != pytest.approx(4 / 6)


def test_nothing_and_everything():
    assert coverage(np.zeros_like(VISITS), REACHABLE) == 0.0
    assert coverage(np.ones_like(VISITS), REACHABLE) == 1.0


def test_order_and_counts_do_not_matter():
    rng = np.random.default_rng(0)
    visits = rng.integers(0, 3, size=(4, 5, 6, 7)).astype(np.uint16)
    reachable = rng.random((5, 6, 7)) < 0.7
    found = coverage(visits, reachable)
    levels = rng.permutation(5)
    assert coverage(visits[rng.permutation(4)][:, levels], reachable[levels]) == pytest.approx(found)
    assert coverage(visits * 7, reachable) == found
    assert coverage(visits.transpose(0, 1, 3, 2), reachable.transpose(0, 2, 1)) == pytest.approx(found)
    alone = [coverage(visits[[i]], reachable) for i in range(4)]
    assert max(alone) <= found <= min(1.0, sum(alone))


def test_a_level_without_cells_is_refused():
    with pytest.raises(ValueError, match="reachable"):
        coverage(VISITS, np.zeros_like(REACHABLE))


@pytest.mark.parametrize(
    ("total", "population", "expected"),
    [(10, 1, (10,)), (10, 4, (3, 3, 2, 2)), (8, 4, (2, 2, 2, 2)), (2, 3, (1, 1, 0))],
)
def test_every_method_gets_the_same_episodes(total, population, expected):
    assert split_episodes(total, population) == expected
    assert sum(split_episodes(total, population)) == total
