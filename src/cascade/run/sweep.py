"""Sweeps: the same settings with several methods; a run for each method and group of seeds, here or on Ray."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cascade.config import RunConfig
from cascade.deploy.fleet import connect, starts_cluster
from cascade.errors import CascadeError, SettingError
from cascade.run.api import Run, open_run, run
from cascade.run.folder import Folder
from cascade.run.signals import Interrupted, Stop
from cascade.run.watching import Note, Watch
from cascade.seeds import format_seeds

METHODS = ("cascade", "pp2e", "p2e", "random")
RETRIES = 3
"""How often a cell is begun again when its process or machine is lost; it goes on from its last checkpoint."""


@dataclass(frozen=True)
class Cell:
    """One run of a sweep."""

    method: str
    seeds: tuple[int, ...]
    path: Path

    @property
    def name(self) -> str:
        return f"{self.method}, seeds {format_seeds(self.seeds)}"


def cells(methods: Sequence[str], seeds: tuple[int, ...], out: Path, group: int = 0) -> list[Cell]:
    """A cell for each method and each `group` seeds; all seeds of a method are one group for 0."""
    for method in methods:
        if method not in METHODS:
            raise SettingError("--methods", method, f"one or more of {' '.join(METHODS)}")
    if not methods or len(set(methods)) != len(methods):
        raise SettingError("--methods", " ".join(methods), "one or more methods, each once")
    if group < 0:
        raise SettingError("--group", group, "0 (all seeds together) or more")
    size = group or len(seeds)
    parts = [seeds[i : i + size] for i in range(0, len(seeds), size)]
    return [
        Cell(method, part, out / method / f"seeds-{format_seeds(part)}" if len(parts) > 1 else out / method)
        for method in methods
        for part in parts
    ]


def run_cell(config: RunConfig, cell: Cell, preset: str, watch: Watch | None = None) -> Run:
    """Run a cell, or go on with it."""
    settings = replace(config, method=cell.method)  # type: ignore[arg-type]
    return run(settings, cell.path, seeds=cell.seeds, watch=watch, preset=preset)


def transfer_cell(
    done: Run,
    stop: Stop | None = None,
    report: Callable[[str], Any] | None = None,
    note: Note = warnings.warn,
) -> list[Any]:
    """Transfer what has not been transferred after a run's last deployment, seed by seed."""
    k = done.resolve(None)
    scored = [item for item in done.results if (item["metric"], item["deployment"]) == ("success", k)]
    there = {(item["seed"], item["task"]) for item in scored}
    outcomes = []
    for seed in done.seeds:
        if tasks := [task for task in done.spec.tasks if (seed, task) not in there]:
            title = f"{done.settings.method}: transfer, seed {seed}"
            reporter = report(title) if report else None
            outcomes.append(done.transfer(tasks, seed, k, report=reporter, stop=stop, note=note))
        if stop is not None and stop():
            raise Interrupted("stopped during transfer")
    return outcomes


def on_this_machine(
    todo: Sequence[Cell], work: Callable[[Cell], Run]
) -> tuple[dict[Cell, Run], dict[Cell, str]]:
    """One cell after another. One that fails does not stop the others: the second result says why."""
    done: dict[Cell, Run] = {}
    failed: dict[Cell, str] = {}
    for cell in todo:
        try:
            done[cell] = work(cell)
        except Interrupted:
            raise
        except CascadeError as error:
            failed[cell] = str(error)
    return done, failed


def on_ray(
    todo: Sequence[Cell],
    config: RunConfig,
    preset: str,
    *,
    address: str = "",
    gpus: float = 0.0,
    transfer: bool = False,
    look: Callable[[Mapping[Cell, str]], None] | None = None,
    stop: Stop | None = None,
    note: Note = warnings.warn,
) -> tuple[dict[Cell, Run], dict[Cell, str]]:
    """Every cell as a task of a Ray cluster, each with a CPU and a share of a GPU. Folders are on a shared disk.

    `look` is called about once a second with what each cell is at; `note` is told what a person should know.
    """
    ours = starts_cluster(address)
    ray = connect(address)
    _check_gpus(ray, gpus, ours, note)
    hidden = {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""} if not gpus else {}
    options = {"num_cpus": 1, "num_gpus": gpus, "max_retries": RETRIES, "runtime_env": {"env_vars": hidden}}
    task = ray.remote(**options)(_work)
    absolute = {cell: replace(cell, path=cell.path.resolve()) for cell in todo}
    pending = {task.remote(config, absolute[cell], preset, transfer): cell for cell in todo}
    done: dict[Cell, Run] = {}
    failed: dict[Cell, str] = {}
    while pending:
        ready, _ = ray.wait(list(pending), timeout=1.0)
        for reference in ready:
            cell = pending.pop(reference)
            try:
                why = ray.get(reference)
            except ray.exceptions.RayError as error:
                why = _cause(error)
            if why is None:
                done[cell] = open_run(cell.path, note)
            else:
                failed[cell] = why
        if look is not None:
            look(dict(_standing(todo, done, failed)))
        if stop is not None and stop():
            for reference in pending:
                ray.cancel(reference, force=True)
            raise Interrupted("stopped; what the cells had saved is kept")
    return done, failed


def _check_gpus(ray: Any, gpus: float, ours: bool, note: Note) -> None:
    """Ray lets a task that no machine has the GPUs for wait: for ever, unless it is a cluster that may still grow."""
    most = max((node["Resources"].get("GPU", 0) for node in ray.nodes() if node["Alive"]), default=0)
    if gpus > most and ours:
        raise SettingError("--gpus", gpus, f"at most {most:g}, what this machine has")
    if gpus > most:
        note(
            f"--gpus: got {gpus:g}, and the cluster's largest machine has {most:g}; the runs wait until a larger one "
            "joins"
        )


def _cause(error: Exception) -> str:
    """What a task raised, where Ray knows it, or what Ray says of its end: one line, without colours."""
    raised = getattr(error, "cause", None)
    words = re.sub(r"\x1b\[[\d;]*m", "", str(error if raised is None else raised)).strip()
    name = [] if raised is None else [type(raised).__name__]
    return ": ".join(name + words.splitlines()[:1])


def _work(config: RunConfig, cell: Cell, preset: str, transfer: bool) -> str | None:
    """A cell in a process of the cluster; why it failed, or None."""
    try:
        finished = run_cell(config, cell, preset)
        if transfer:
            transfer_cell(finished)
    except CascadeError as error:
        return str(error)
    return None


def _standing(
    todo: Sequence[Cell], done: Mapping[Cell, Run], failed: Mapping[Cell, str]
) -> Iterator[tuple[Cell, str]]:
    """What each cell is at, read from its folder."""
    for cell in todo:
        if cell in done:
            yield cell, "done"
        elif cell in failed:
            yield cell, f"failed: {failed[cell]}"
        else:
            yield cell, last_logged(Folder(cell.path).metrics)


def last_logged(metrics: Path) -> str:
    """The last thing that a run logged, in a few words."""
    try:
        with metrics.open("rb") as file:
            file.seek(max(0, metrics.stat().st_size - 65_536))
            line = json.loads(file.read().splitlines()[-1])
        return f"deployment {line['deployment'] + 1}, {line['phase']} step {line['step']:,}"
    except (OSError, ValueError, IndexError):
        return "waiting"
