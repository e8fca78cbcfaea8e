"""Films of a run: its explorers from one start, its model's imagination beside the truth, its policies at work."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote

import numpy as np

from cascade.config import RunConfig
from cascade.deploy.rollout import film, rollout, stage
from cascade.errors import CascadeError, disk_errors
from cascade.report import films, predictions
from cascade.run.api import Run
from cascade.run.generate import behaviour_folder
from cascade.run.look import first_rows, look
from cascade.run.measure import held_out_episodes, held_out_starts
from cascade.run.transfer import evaluation_seeds
from cascade.specs import Episode
from cascade.transfer.saved import Behaviour

Format = Literal["gif", "mp4"]
FPS = 12
EPISODES = 4
"""of the evaluation's that a transferred policy is filmed in"""
CONTEXT, LENGTH, COUNT = 5, 50, 3
"""Rows that the model sees, rows in all at most, and episodes."""


def best_format() -> Format:
    """.mp4 where ffmpeg is, else .gif."""
    return "gif" if predictions.find_ffmpeg() is None else "mp4"


def film_explorers(
    run: Run, folder: Path, kind: Format, seed: int, deployment: int | None, steps: int
) -> list[Path]:
    """Every explorer from the first held-out start, side by side."""
    k, config = run.resolve(deployment), run.settings
    start = held_out_starts(replace(config.measure, levels=1))
    policy = run.explorers(seed, k)
    population = config.population
    with stage(config.env, config.deploy, len(start), population) as envs:
        played = rollout(policy, envs, start, population=population, seed=seed, limit=steps)
    names = [f"explorer {episode.key.explorer + 1}" for episode in played]
    if config.method == "random":
        names = ["random actions"]
    path = folder / f"explorers-deploy-{k:03d}-seed-{seed}.{kind}"
    return [_write(path, config, played, start * len(played), names)]


def film_transfer(
    run: Run, folder: Path, kind: Format, seed: int, deployment: int | None, steps: int, tasks: Sequence[str]
) -> list[Path]:
    """Every transferred policy in the evaluation's first episodes, with what each of them earned."""
    written, config = [], run.settings
    for task in tasks or transferred_tasks(run):
        place = behaviour_folder(run, task, seed, deployment)
        starts = evaluation_seeds(EPISODES).tolist()
        policy = Behaviour.load(place).policy()
        with stage(config.env, config.deploy, len(starts)) as envs:
            played = rollout(policy, envs, starts, seed=seed, limit=steps)
        names = [_earned(episode, task) for episode in played]
        path = folder / f"transfer-{quote(task, safe='')}-{place.parent.name}-{place.name}.{kind}"
        written.append(_write(path, config, played, starts, names))
    return written


def film_imagination(run: Run, folder: Path, kind: Format, seed: int, deployment: int | None) -> list[Path]:
    """What the model imagines of held-out episodes, beside them: a film, and the same as a picture."""
    k, config = run.resolve(deployment), run.settings
    if not config.measure.levels:
        raise CascadeError(
            f"{run.path}: has no held-out starts, because measure.levels is 0; there is nothing to see"
        )
    learned = run.snapshot(seed, k)
    episodes = held_out_episodes(run.explorers(seed, k), config, seed)
    longest = sorted(episodes, key=len, reverse=True)[:COUNT]
    length = min(LENGTH, len(longest[-1]) + 1)
    if length <= CONTEXT:
        raise CascadeError(f"{run.path}: its held-out episodes have {length} rows, too few to imagine any")
    batch = first_rows(longest, run.spec, length)
    name = f"imagination-deploy-{k:03d}-seed-{seed}"
    with disk_errors(folder):
        return look(
            learned.world, batch, run.spec, folder, context=CONTEXT, count=COUNT, name=name, ending=kind
        )


def transferred_tasks(run: Run) -> list[str]:
    """The tasks that there are policies for."""
    found = sorted({unquote(path.parents[2].name) for path in run.path.glob("transfer/*/*/*/behaviour.json")})
    if not found:
        command = shlex.join(["cascade", "transfer", str(run.path)])
        raise CascadeError(f"{run.path}: no policy is saved here; make one first: {command}")
    return found


def _earned(episode: Episode, task: str) -> str:
    if task not in episode.labels:
        return f"{len(episode)} steps"
    return f"return {float(np.sum(episode.labels[task])):.3g}, {len(episode)} steps"


def _write(
    path: Path, config: RunConfig, played: Sequence[Episode], starts: Sequence[int], names: Sequence[str]
) -> Path:
    """The episodes played again from their starts, in one grid."""
    frames = [
        film(config.env, start, episode.action[:-1], films.sized)
        for start, episode in zip(starts, played, strict=True)
    ]
    with disk_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        return predictions.write_video(path, films.grid(frames, names), FPS)


def make_films(
    run: Run,
    what: Literal["explorers", "imagination", "transfer"],
    *,
    folder: Path | None = None,
    kind: Format | None = None,
    seed: int | None = None,
    deployment: int | None = None,
    steps: int | None = None,
    tasks: Sequence[str] = (),
) -> list[Path]:
    """Write the films that are asked for; where they are."""
    seed = run.seeds[0] if seed is None else seed
    run.store(seed)  # a seed that the run does not have is refused here
    folder, kind = folder or run.path / "films", kind or best_format()
    limit = steps or run.settings.measure.steps
    if what == "explorers":
        return film_explorers(run, folder, kind, seed, deployment, limit)
    if what == "transfer":
        return film_transfer(run, folder, kind, seed, deployment, limit, tasks)
    return film_imagination(run, folder, kind, seed, deployment)
