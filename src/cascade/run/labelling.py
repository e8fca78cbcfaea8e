"""Rewards that a user brings: a function of stored observations and info, evaluated over the whole store.

def near_goal(obs: dict[str, np.ndarray], info: dict[str, np.ndarray]) -> np.ndarray:
    '''What arriving at each row is worth: every array has one entry per row, and so has the result.'''
    return (info["state"] == 5).astype(np.float32)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cascade.data.manifest import file_name
from cascade.data.store import Deployment, Store
from cascade.deploy.play import Judge
from cascade.errors import CascadeError, cause_of
from cascade.registry import load
from cascade.transfer.labels import Summary, summarise

ROWS = 4096
"""Rows that a reward function is given at once."""


def reward_function(path: str) -> Judge:
    """The function at `module:function`, with its result checked: a mistake in it is one clear line."""
    function = load("--reward", path)

    def judge(obs: Mapping[str, np.ndarray], info: Mapping[str, np.ndarray]) -> np.ndarray:
        rows = len(next(iter(obs.values())))
        try:
            result: Any = np.asarray(function(dict(obs), dict(info)))
        except Exception as error:
            raise CascadeError(
                f"--reward {path}: raised {cause_of(error)}; it is given obs {sorted(obs)} and "
                f"info {sorted(info)}, arrays with one entry per row"
            ) from error
        if result.shape != (rows,) or result.dtype.kind not in "fiub":
            raise CascadeError(
                f"--reward {path}: returned {result.dtype}{result.shape} for {rows} rows, "
                "expected one number for each"
            )
        result = result.astype(np.float32)
        if not np.isfinite(result).all():
            raise CascadeError(f"--reward {path}: returned a number that is not finite; fix the function")
        return result

    return judge


def label(store: Store, task: str, judge: Judge) -> None:
    """Add the labels that `judge` gives, as task `task`. The first row of an episode is worth 0."""
    store.add_labels(task, [_judged(one, judge) for one in store.deployments])


def _judged(deployment: Deployment, judge: Judge) -> np.ndarray:
    spec, rows = deployment.manifest.spec, deployment.manifest.rows
    obs = {name: deployment.array(file_name("obs", name)) for name in spec.observations}
    info = {name: deployment.array(file_name("info", name)) for name in spec.info}
    labels = np.zeros(rows, np.float32)
    for start in range(0, rows, ROWS):
        piece = slice(start, min(start + ROWS, rows))
        given = ({name: np.array(array[piece]) for name, array in part.items()} for part in (obs, info))
        labels[piece] = judge(*given)
    labels[np.asarray(deployment.array(file_name("is_first")))] = 0.0
    return labels


def summary_of(store: Store, task: str) -> Summary:
    """The labels of a task in numbers."""
    fields = store.fields()
    columns = store.labels(task), fields.is_first, fields.is_terminal

    def pieces() -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for start in range(0, fields.rows, 1 << 20):
            stop = min(start + (1 << 20), fields.rows)
            labels, is_first, is_terminal = (column.read(start, stop) for column in columns)
            yield labels, is_first, is_terminal

    return summarise(task, pieces())


def rare_rows(store: Store, summaries: Mapping[str, Summary]) -> np.ndarray:
    """Rows that hold a reward of a task for which rewards are rare.

    Every such task has as many: the rows of one that has fewer are repeated, or it would not be seen beside another.
    """
    rare = [np.flatnonzero(store.labels(task).read()) for task, summary in summaries.items() if summary.rare]
    most = max(map(len, rare), default=0)
    return np.concatenate([np.zeros(0, np.int64), *(np.resize(rows, most) for rows in rare)])
