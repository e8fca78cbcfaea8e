"""Aggregates over seeds and tasks, with intervals: rliable's conventions, and the same numbers every time.

Scores are [runs, tasks]: one row for each seed. Resampling is stratified: seeds are redrawn within each task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from rliable import library
from scipy import stats

REPS = 2000
"""Resamples behind every interval."""
LEVEL = 0.95
"""Share of resamples inside an interval."""


class Interval(NamedTuple):
    """A value and its percentile-bootstrap interval; all three are one number where nothing can be redrawn."""

    value: float
    low: float
    high: float


class RankTest(NamedTuple):
    """A two-sided Mann-Whitney U test."""

    statistic: float
    p: float


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Give the global NumPy generator a seed, and put it back: rliable draws from it, whatever it is told."""
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


def iqm(scores: Float[np.ndarray, "runs tasks"]) -> float:
    """Interquartile mean: the mean of the middle half of all scores, whatever their task.

    rliable's definition (a mean trimmed by a quarter on either side), written out because resampling needs it fast.
    """
    ordered = np.sort(scores, axis=None)
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def iqm_interval(scores: Float[np.ndarray, "runs tasks"], seed: int = 0, reps: int = REPS) -> Interval:
    """The interquartile mean with a stratified bootstrap interval."""
    return _interval(scores, iqm, seed, reps)


def mean_interval(scores: Float[np.ndarray, "runs tasks"], seed: int = 0, reps: int = REPS) -> Interval:
    """The mean over seeds and tasks with a stratified bootstrap interval."""
    return _interval(scores, lambda drawn: float(drawn.mean()), seed, reps)


def probability_of_improvement(
    x: Float[np.ndarray, "runs_x tasks"],
    y: Float[np.ndarray, "runs_y tasks"],
    seed: int = 0,
    reps: int = REPS,
) -> Interval:
    """How probable it is that a run of x beats a run of y on the same task, mean over tasks; ties count half."""
    if min(len(x), len(y)) < 2:
        return Interval(*(_beats(x, y),) * 3)
    with seeded(seed):
        point, ends = library.get_interval_estimates(
            {"pair": [x, y]}, _beats, reps=reps, confidence_interval_size=LEVEL
        )
    return _read(point["pair"], ends["pair"])


def mann_whitney(x: Float[np.ndarray, " runs_x"], y: Float[np.ndarray, " runs_y"]) -> RankTest:
    """Whether one of two methods tends to have larger scores than the other; p is two-sided."""
    found = stats.mannwhitneyu(x, y, alternative="two-sided")
    return RankTest(float(found.statistic), float(found.pvalue))


def paired_difference(
    x: Float[np.ndarray, " runs"], y: Float[np.ndarray, " runs"], seed: int = 0, reps: int = REPS
) -> Interval:
    """Mean of x - y over seeds that both ran, with a bootstrap interval; pairs are redrawn as pairs."""
    difference = x - y
    mean = float(difference.mean())
    if len(difference) < 2:
        return Interval(mean, mean, mean)
    drawn = np.random.default_rng(seed).integers(0, len(difference), size=(reps, len(difference)))
    low, high = _percentiles(difference[drawn].mean(axis=1))
    return Interval(mean, low, high)


def _beats(x: np.ndarray, y: np.ndarray) -> float:
    """Mann-Whitney's U over the number of pairs, mean over tasks."""
    wins = (x[:, None] > y[None]).mean() + 0.5 * (x[:, None] == y[None]).mean()
    return float(wins)


def _interval(scores: np.ndarray, statistic: Callable[[np.ndarray], float], seed: int, reps: int) -> Interval:
    if len(scores) < 2:
        return Interval(*(statistic(scores),) * 3)
    with seeded(seed):
        point, ends = library.get_interval_estimates(
            {"only": scores}, statistic, reps=reps, confidence_interval_size=LEVEL
        )
    return _read(point["only"], ends["only"])


def _read(point: object, ends: np.ndarray) -> Interval:
    low, high = np.asarray(ends, dtype=np.float64).reshape(-1)
    return Interval(float(np.asarray(point).item()), float(low), float(high))


def _percentiles(draws: np.ndarray) -> tuple[float, float]:
    tail = 50.0 * (1.0 - LEVEL)
    low, high = np.percentile(draws, [tail, 100.0 - tail])
    return float(low), float(high)
