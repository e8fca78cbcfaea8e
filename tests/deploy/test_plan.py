"""A plan shares its budget exactly, and what it draws depends on nothing else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade.config import DeployConfig
from cascade.deploy.plan import Plan, Stream, attempt_after, split
from cascade.errors import SettingError
from cascade.specs import EpisodeKey

PLAN = Plan(seed=3, deployment=1, steps=100, population=2, each=4)


@given(st.integers(1, 10**6), st.integers(1, 300), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_budgets_are_exact_and_even(steps: int, lanes: int, population: int) -> None:
    plan = Plan.of(DeployConfig(steps=steps, lanes=lanes), seed=0, deployment=0, population=population)
    budgets = plan.budgets()
    assert budgets.shape == (population, max(1, lanes // population))
    assert budgets.sum() == steps
    assert np.ptp(budgets.sum(1)) <= 1
    assert all(np.ptp(row) <= 1 for row in budgets)


@given(st.integers(1, 64), st.integers(1, 12))
@settings(max_examples=60, deadline=None)
def test_groups_share_out_the_lanes_of_every_explorer(lanes: int, population: int) -> None:
    plan = Plan.of(DeployConfig(lanes=lanes), seed=0, deployment=0, population=population)
    groups = plan.group_lanes()
    assert len(groups) == (1 if plan.each % 2 else 2)
    assert sorted(np.concatenate(groups).tolist()) == list(range(plan.lanes))
    for group in groups:
        explorers = (group // plan.each).reshape(population, -1)
        assert (explorers == np.arange(population)[:, None]).all()
        assert (np.diff(group) > 0).all()


def test_every_worker_has_lanes_in_both_groups() -> None:
    plan = Plan.of(DeployConfig(lanes=20), seed=0, deployment=0, population=10)
    assert [np.bincount(group % 2).tolist() for group in plan.group_lanes()] == [[5, 5], [5, 5]]


def test_remainders_go_to_the_first() -> None:
    assert split(11, 4).tolist() == [3, 3, 3, 2]
    assert split(2, 4).tolist() == [1, 1, 0, 0]


def test_a_draw_is_known_and_of_its_own() -> None:
    """The numbers themselves: a release that changes them cannot resume or reproduce earlier runs."""
    draw = PLAN.draw(EpisodeKey(1, 2, 3))
    assert (draw.seed, draw.key.tolist()) == (1622987667, [244739950, 2344753598])
    same = Plan(3, 1, 77, population=5, each=1).draw(EpisodeKey(1, 2, 3))
    assert same.seed == draw.seed, "neither the budget nor the number of lanes matters"
    others = [
        Plan(4, 1, 100).draw(EpisodeKey(1, 2, 3)),
        Plan(3, 0, 100).draw(EpisodeKey(1, 2, 3)),
        *(PLAN.draw(EpisodeKey(*key)) for key in [(0, 2, 3), (1, 0, 3), (1, 2, 0), (2, 1, 3)]),
        PLAN.draw(EpisodeKey(1, 2, 3), attempt=1),
    ]
    draws = [draw, *others]
    assert len({draw.seed for draw in draws}) == len({tuple(draw.key) for draw in draws}) == len(draws)
    assert all(0 <= draw.seed < 2**31 and draw.key.dtype == np.uint32 for draw in draws)


def test_the_first_retry_repeats_and_later_ones_do_not() -> None:
    assert [attempt_after(failures) for failures in range(5)] == [0, 0, 1, 2, 3]


def test_a_stream_goes_on_with_what_is_missing() -> None:
    stream = Stream(PLAN, lane=6, budget=30, done={0: 5, 1: 4, 3: 6})
    assert (stream.key, stream.remaining) == (EpisodeKey(1, 2, 2), 15)
    first = stream.draw()
    stream.failures = 1
    assert stream.draw().seed == first.seed
    stream.failures = 2
    assert stream.draw().seed != first.seed
    stream.finish(4)
    assert (stream.key, stream.remaining, stream.failures) == (EpisodeKey(1, 2, 4), 11, 0)


def test_plans_that_cannot_be_carried_out_are_refused() -> None:
    with pytest.raises(SettingError, match="seed: got -1"):
        Plan(-1, 0, 10)
    with pytest.raises(SettingError, match="a divisor of each explorer's 3 lanes"):
        Plan(0, 0, 10, each=3, groups=2)
