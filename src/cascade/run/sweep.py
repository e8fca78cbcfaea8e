"""Sweeps: the same settings with several methods, a run for each, all seeds of a method side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from cascade.config import RunConfig
from cascade.errors import CascadeError, SettingError
from cascade.run.api import Run, run
from cascade.run.loop import Watch
from cascade.run.signals import Interrupted


def cell(out: Path, method: str) -> Path:
    """Where a method's run is."""
    return out / method


def sweep(
    config: RunConfig,
    methods: Sequence[str],
    seeds: tuple[int, ...],
    out: Path,
    *,
    preset: str = "custom",
    watch: Callable[[str], Watch] | None = None,
    after: Callable[[Run], None] | None = None,
) -> tuple[list[Run], dict[str, str]]:
    """A run for each method, one after another; those that are done are left as they are.

    A method that fails does not stop the others: the second result says why, by method. `after` is called with each
    run that is done.
    """
    check_methods(methods)
    done: list[Run] = []
    failed: dict[str, str] = {}
    for method in methods:
        try:
            finished = run(
                replace(config, method=method),  # type: ignore[arg-type]
                cell(out, method),
                seeds=seeds,
                watch=watch(method) if watch is not None else None,
                preset=preset,
            )
            if after is not None:
                after(finished)
            done.append(finished)
        except Interrupted:
            raise
        except CascadeError as error:
            failed[method] = str(error)
    return done, failed


def check_methods(methods: Sequence[str]) -> None:
    known = ("cascade", "pp2e", "p2e", "random")
    for method in methods:
        if method not in known:
            raise SettingError("--methods", method, f"one or more of {' '.join(known)}")
    if not methods or len(set(methods)) != len(methods):
        raise SettingError("--methods", " ".join(methods), "one or more methods, each once")
