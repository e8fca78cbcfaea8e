"""Aggregates over seeds and tasks, with intervals, by rliable's conventions.

Scores are [runs, tasks]: one row for each seed. Resampling is stratified: seeds are redrawn within each task. It is
written out here, over all resamples at once, because rliable's loop takes some forty times longer and draws from the
global generator whatever it is told; from the same seed both give the same intervals, and tests hold them together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
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


def iqm(scores: Float[np.ndarray, "runs tasks"]) -> float:
    """Interquartile mean: the mean of the middle half of all scores, whatever their task."""
    return float(_iqm(scores[None])[0])


def iqm_interval(scores: Float[np.ndarray, "runs tasks"], seed: int = 0, reps: int = REPS) -> Interval:
    """The interquartile mean with a stratified bootstrap interval."""
    return _interval(scores, _iqm, seed, reps)


def mean_interval(scores: Float[np.ndarray, "runs tasks"], seed: int = 0, reps: int = REPS) -> Interval:
    """The mean over seeds and tasks with a stratified bootstrap interval."""
    return _interval(scores, lambda drawn: drawn.mean(axis=(1, 2)), seed, reps)


def probability_of_improvement(
    x: Float[np.ndarray, "runs_x tasks"],
    y: Float[np.ndarray, "runs_y tasks"],
    seed: int = 0,
    reps: int = REPS,
) -> Interval:
    """How probable it is that a run of x beats a run of y on the same task, mean over tasks; ties count half."""
    value = float(_beats(x[None], y[None])[0])
    if min(len(x), len(y)) < 2:
        return Interval(value, value, value)
    stream = _stream(seed)
    return _around(value, _beats(_redraw(x, stream, reps), _redraw(y, stream, reps)))


def mann_whitney(x: Float[np.ndarray, " runs_x"], y: Float[np.ndarray, " runs_y"]) -> RankTest:
    """Whether one of two methods tends to have larger scores than the other; p is two-sided."""
    found = stats.mannwhitneyu(x, y, alternative="two-sided")
    return RankTest(float(found.statistic), float(found.pvalue))


def paired_difference(
    x: Float[np.ndarray, " runs"], y: Float[np.ndarray, " runs"], seed: int = 0, reps: int = REPS
) -> Interval:
    """Mean of x - y over seeds that both ran, with a bootstrap interval; pairs are redrawn as pairs."""
    return mean_interval((x - y)[:, None], seed, reps)


def _iqm(drawn: np.ndarray) -> np.ndarray:
    """Of each resample [runs, tasks], the mean that a quarter on either side is cut from."""
    ordered = np.sort(drawn.reshape(len(drawn), -1), axis=1)
    cut = ordered.shape[1] // 4
    return np.asarray(ordered[:, cut : ordered.shape[1] - cut].mean(axis=1))


def _beats(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of each resample, Mann-Whitney's U over the number of pairs, mean over tasks."""
    x, y = x[:, :, None], y[:, None]
    return np.asarray((x > y).mean(axis=(1, 2, 3)) + 0.5 * (x == y).mean(axis=(1, 2, 3)))


def _interval(
    scores: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], seed: int, reps: int
) -> Interval:
    value = float(statistic(scores[None])[0])
    if len(scores) < 2:
        return Interval(value, value, value)
    return _around(value, statistic(_redraw(scores, _stream(seed), reps)))


def _stream(seed: int) -> np.random.RandomState:
    return np.random.RandomState(seed)  # the generator rliable draws from


def _redraw(scores: np.ndarray, stream: np.random.RandomState, reps: int) -> np.ndarray:
    """Resamples [reps, runs, tasks]: for every task, as many runs as there are, with replacement."""
    chosen = stream.choice(len(scores), (reps, *scores.shape))
    return np.asarray(np.take_along_axis(scores[None], chosen, axis=1))


def _around(value: float, draws: np.ndarray) -> Interval:
    tail = 50.0 * (1.0 - LEVEL)
    low, high = np.percentile(draws, [tail, 100.0 - tail])
    return Interval(value, float(low), float(high))
