"""Aggregates: known answers, rliable's and SciPy's own conventions, and the same numbers every time."""

import numpy as np
import pytest
from rliable import library, metrics
from scipy import stats

from cascade.metrics.aggregate import (
    Interval,
    iqm,
    iqm_interval,
    mann_whitney,
    mean_interval,
    paired_difference,
    probability_of_improvement,
)


def scores(runs: int, tasks: int, seed: int = 0, shift: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(shift, 1.0, size=(runs, tasks))


def test_iqm_by_hand():
    assert iqm(np.arange(1.0, 9.0)[:, None]) == 4.5  # of 1 to 8, the mean of 3 to 6
    assert iqm(np.array([[0.0, 1.0], [2.0, 1000.0]])) == 1.5


@pytest.mark.parametrize(("runs", "tasks"), [(1, 1), (2, 1), (3, 3), (5, 1), (10, 4), (7, 2)])
def test_iqm_is_rliables_and_a_trimmed_mean(runs, tasks):
    found = scores(runs, tasks)
    assert iqm(found) == pytest.approx(metrics.aggregate_iqm(found), abs=1e-12)
    assert iqm(found) == pytest.approx(stats.trim_mean(found, 0.25, axis=None), abs=1e-12)


def test_intervals_hold_their_value_and_repeat():
    found = scores(10, 3)
    for interval in (iqm_interval(found), mean_interval(found)):
        assert interval.low < interval.value < interval.high
    assert iqm_interval(found) == iqm_interval(found)
    assert iqm_interval(found, seed=1) != iqm_interval(found)
    assert mean_interval(found).value == pytest.approx(found.mean())


def test_a_mean_interval_is_about_the_normal_one():
    found = scores(200, 1)
    half = 1.96 * found.std(ddof=1) / np.sqrt(200)
    interval = mean_interval(found)
    assert interval.high - interval.low == pytest.approx(2 * half, rel=0.1)


def test_resampling_stays_within_tasks():
    """Seeds that agree leave nothing uncertain, however far apart their tasks are."""
    found = np.tile([0.0, 5.0, 100.0], (6, 1))
    assert mean_interval(found) == Interval(35.0, 35.0, 35.0)


def test_one_seed_has_no_interval():
    assert iqm_interval(np.array([[2.0]])) == Interval(2.0, 2.0, 2.0)
    assert paired_difference(np.array([3.0]), np.array([1.0])) == Interval(2.0, 2.0, 2.0)
    assert probability_of_improvement(np.array([[3.0]]), np.array([[1.0]])) == Interval(1.0, 1.0, 1.0)


def rliables(statistic, *arrays: np.ndarray) -> tuple[float, float]:
    """The interval of rliable itself, whose draws come from the global generator."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    data = arrays[0] if len(arrays) == 1 else list(arrays)
    _, ends = library.get_interval_estimates({"it": data}, statistic, reps=2000)
    np.random.set_state(before)  # noqa: NPY002
    return tuple(np.asarray(ends["it"]).reshape(-1).tolist())


@pytest.mark.parametrize(("runs", "tasks"), [(10, 1), (5, 3), (8, 2)])
def test_intervals_are_rliables_from_the_same_seed(runs, tasks):
    found = scores(runs, tasks)
    assert iqm_interval(found)[1:] == pytest.approx(rliables(metrics.aggregate_iqm, found), abs=1e-12)
    assert mean_interval(found)[1:] == pytest.approx(rliables(metrics.aggregate_mean, found), abs=1e-12)


def test_the_interval_of_improvement_is_rliables_up_to_resampling():
    x, y = scores(9, 2), scores(7, 2, seed=1, shift=-0.5)
    theirs = rliables(metrics.probability_of_improvement, x, y)
    assert probability_of_improvement(x, y)[1:] == pytest.approx(theirs, abs=0.03)


def test_the_global_generator_is_left_alone():
    np.random.seed(7)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(7)  # noqa: NPY002
    iqm_interval(scores(4, 2))
    probability_of_improvement(scores(4, 2), scores(4, 2, seed=1))
    assert np.random.random() == expected  # noqa: NPY002


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [([1.0, 3.0], [2.0, 2.0], 0.5), ([2.0, 3.0], [1.0, 2.0], 3.5 / 4), ([4.0, 5.0], [1.0, 2.0], 1.0)],
)
def test_probability_of_improvement_by_hand(x, y, expected):
    assert probability_of_improvement(np.array([x]).T, np.array([y]).T).value == expected


def test_probability_of_improvement_is_rliables():
    x, y = scores(9, 4), scores(6, 4, seed=1, shift=0.4).round(1)
    x = x.round(1)  # with ties
    found = probability_of_improvement(x, y)
    assert found.value == pytest.approx(metrics.probability_of_improvement(x, y))
    assert found.low < found.value < found.high
    assert probability_of_improvement(y, x).value == pytest.approx(1 - found.value)


def test_the_order_of_seeds_and_tasks_does_not_matter():
    rng = np.random.default_rng(3)
    x, y = scores(8, 3), scores(8, 3, seed=1)
    rows, tasks = rng.permutation(8), rng.permutation(3)
    assert iqm(x[rows][:, tasks]) == pytest.approx(iqm(x))
    found = probability_of_improvement(x[rows][:, tasks], y[:, tasks]).value
    assert found == pytest.approx(probability_of_improvement(x, y).value)
    assert mann_whitney(x[rows, 0], y[:, 0]) == mann_whitney(x[:, 0], y[:, 0])


def test_mann_whitney_by_hand():
    """Three above three: U is 9, and 2 of the 20 ways to rank them are so extreme."""
    found = mann_whitney(np.array([3.0, 4, 5]), np.array([0.0, 1, 2]))
    assert (found.statistic, found.p) == (9.0, pytest.approx(0.1))
    assert mann_whitney(np.ones(4), np.ones(4)).p == 1.0


def test_pairs_remove_what_seeds_share():
    """A constant lead is certain, however much the seeds differ; shuffled pairs lose that."""
    base = 10 * scores(12, 1)[:, 0]
    found = paired_difference(base + 0.5, base)
    assert found.value == pytest.approx(0.5)
    assert found.high - found.low < 1e-12
    shuffled = paired_difference(np.roll(base, 1) + 0.5, base)
    assert shuffled.value == pytest.approx(0.5)
    assert shuffled.high - shuffled.low > 1.0


def test_a_paired_interval_is_scipys():
    x, y = scores(15, 1)[:, 0], scores(15, 1, seed=1)[:, 0]
    found = paired_difference(x, y)
    theirs = stats.bootstrap((x - y,), np.mean, method="percentile", rng=np.random.default_rng(1))
    assert found.low == pytest.approx(theirs.confidence_interval.low, abs=0.06)
    assert found.high == pytest.approx(theirs.confidence_interval.high, abs=0.06)
