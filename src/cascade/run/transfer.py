"""Zero-shot transfer of one seed: labels, reward heads, behaviour policies, and their score in the environment.

The world model is frozen throughout. Tasks train side by side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from cascade.config import EnvConfig, RunConfig, TransferConfig
from cascade.data.files import Unusable, one_writer, read_json, write_json
from cascade.data.store import Store, deployment_folder
from cascade.deploy import RandomPolicy
from cascade.deploy.game import NONE
from cascade.deploy.play import Judge, Played, play
from cascade.envs import Vectoriser
from cascade.envs.vectorise import LaneGroup
from cascade.errors import SettingError, disk_errors
from cascade.explore.policy import PopulationPolicy
from cascade.run.labelling import label, reward_function, summary_of
from cascade.run.lesson import Curves, Lesson, Progress, Report, skipped_updates
from cascade.run.results import Record, plain, record
from cascade.run.signals import Stop
from cascade.run.train import acting_device
from cascade.specs import EnvSpec
from cascade.transfer.labels import Summary
from cascade.transfer.lookahead import Lookahead
from cascade.transfer.saved import Behaviour
from cascade.types import Policy
from cascade.world.model import WorldModel

Envs = Callable[[EnvConfig, int], LaneGroup]
"""Makes so many lanes of environments."""

EVALUATION = 0x5EED
"""Entropy of the evaluation's seeds: the same episodes for every run, method and deployment, and none that a
deployment draws, whose streams are keyed."""


UNTRAINED = "the world model was not trained (model-steps is 0), so random actions are scored"


@dataclass
class Result:
    """What came of one task."""

    labels: Summary
    learned: bool = False
    reason: str | None = None
    """why nothing was learned, or why it was not evaluated"""
    skipped: int = 0
    """updates that were not finite, of its head, its actor and its critic"""
    reward_head: dict[str, float] = field(default_factory=dict)
    curves: dict[str, list[Any]] = field(default_factory=dict)
    returns: list[float] | None = None
    steps: list[int] | None = None

    @property
    def success(self) -> float | None:
        """Share of episodes that earned more than nothing."""
        return None if self.returns is None else float(np.mean(np.array(self.returns) > 0.0))

    @property
    def mean_return(self) -> float | None:
        return None if self.returns is None else float(np.mean(self.returns))

    def to_json(self) -> dict[str, Any]:
        """As one seed's entry of `result.json`."""
        document: dict[str, Any] = {"learned": self.learned, "labels": self.labels.to_json()}
        if self.reason is not None:
            document["reason"] = self.reason
        if self.learned:
            document |= {"skipped": self.skipped, "reward_head": self.reward_head, "curves": self.curves}
        if self.returns is not None:
            document |= {
                "success": self.success,
                "return": self.mean_return,
                "episodes": len(self.returns),
                "returns": self.returns,
                "steps": self.steps,
            }
        return {name: plain(value) for name, value in document.items()}


@dataclass
class Outcome:
    """What came of a transfer: a result for each task, and a behaviour for each that could be learned."""

    seed: int
    deployment: int
    results: dict[str, Result]
    settings: TransferConfig
    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    interrupted: bool = False

    def records(self) -> list[Record]:
        """As entries of a run's `results.json`: success and return of every task that was evaluated."""
        return [
            record(self.seed, self.deployment, metric, value, task)
            for task, result in self.results.items()
            for metric, value in (("success", result.success), ("return", result.mean_return))
            if value is not None
        ]

    def write(self, folder: Path) -> list[Path]:
        """`<task>/deploy-000/result.json` beside those of other seeds, and the behaviour in `seed-0/` beside it."""
        written = []
        for task, result in self.results.items():
            place = deployment_folder(folder / quote(task, safe=""), self.deployment)
            path = place / "result.json"
            with disk_errors(place):
                place.mkdir(parents=True, exist_ok=True)
                with one_writer(path):
                    if task in self.behaviours:
                        self.behaviours[task].save(place / f"seed-{self.seed}")
                    try:
                        document = read_json(path)
                    except Unusable:
                        document = {"task": task, "deployment": self.deployment, "seeds": {}}
                    document["seeds"][str(self.seed)] = result.to_json() | {"settings": asdict(self.settings)}
                    write_json(path, document)
            written.append(path)
        return written


def transfer(
    world: WorldModel,
    store: Store,
    tasks: Sequence[str],
    config: RunConfig,
    spec: EnvSpec,
    seed: int,
    deployment: int | None = None,
    progress: Report | None = None,
    stop: Stop | None = None,
    envs: Envs | None = None,
) -> Outcome:
    """Policies for `tasks` from the data up to `deployment`, and their score. Never a gradient into the world model.

    A task is the name of labels in the store, or `module:function` of stored observations and info, whose labels
    are then added to the store under that name.
    """
    if config.transfer.lookahead and spec.action.kind != "discrete":
        raise SettingError(
            "transfer.lookahead", config.transfer.lookahead, f"0: {spec.name}'s actions are continuous"
        )
    store = store if deployment is None else store.upto(deployment)
    judges = {task: reward_function(task) for task in tasks if ":" in task and task not in spec.tasks}
    for task, judge in judges.items():
        label(store, task, judge)
    results = {task: Result(summary_of(store, task)) for task in dict.fromkeys(tasks)}
    outcome = Outcome(seed, store.deployments[-1].index, results, config.transfer)
    for result in results.values():
        result.reason = result.labels.refusal or (None if config.model_steps else UNTRAINED)
    quiet, never = (lambda _: None), (lambda: False)
    report, stopped = progress or quiet, stop or never
    _act_at_random(outcome, config, spec, judges, report, stopped, envs)
    names = [task for task, result in results.items() if result.reason is None]
    if not names or outcome.interrupted:
        return outcome
    lesson = Lesson(world, store, {task: results[task].labels for task in names}, config, spec, seed)
    try:
        _learn_and_play(lesson, outcome, judges, report, stopped, envs)
    finally:
        lesson.sampler.close()
    return outcome


def _act_at_random(
    outcome: Outcome,
    config: RunConfig,
    spec: EnvSpec,
    judges: Mapping[str, Judge],
    progress: Report,
    stop: Stop,
    envs: Envs | None,
) -> None:
    """Score the tasks that nothing can be learned for by what is left: random actions. Left out of a comparison,
    a seed that never met a reward would flatter its method."""
    tasks = [task for task, result in outcome.results.items() if result.reason is not None]
    if not tasks:
        return
    progress(Progress("evaluate", 0, config.transfer.episodes, {}))
    key = jax.random.key(outcome.seed)
    with _timed(outcome, "evaluate"):
        played = evaluate(RandomPolicy(spec.action), config, len(tasks), key, judges, stop, envs)
    outcome.interrupted = stop()
    for index, task in enumerate(tasks):
        score(outcome.results[task], task, index, len(tasks), played)


def _learn_and_play(
    lesson: Lesson,
    outcome: Outcome,
    judges: Mapping[str, Judge],
    progress: Report,
    stop: Stop,
    envs: Envs | None,
) -> None:
    """The three phases, each with its seconds; `stop` leaves the outcome marked as interrupted."""
    with _timed(outcome, "reward"):
        heads, reward_curves = lesson.train_heads(progress, stop)
    outcome.interrupted = stop()
    if outcome.interrupted:
        return
    errors = lesson.measure(heads)
    with _timed(outcome, "behaviour"):
        behaviours, curves = lesson.train_behaviours(heads, progress, stop)
    outcome.interrupted = stop()
    if outcome.interrupted:
        return
    greedy, actors = lesson.config.transfer.greedy, behaviours.agents.actor.model
    ahead = (
        Lookahead.of(behaviours, heads, lesson.config.transfer) if lesson.config.transfer.lookahead else None
    )
    skipped = skipped_updates(heads) | skipped_updates(behaviours)
    for index, task in enumerate(lesson.tasks):
        result = outcome.results[task]
        result.learned = True
        result.skipped = sum(counts[index] for counts in skipped.values())
        result.reward_head = {name: values[index] for name, values in errors.items()}
        result.curves = _curves(reward_curves, curves, index)
        actor, look = jax.tree.map(lambda x, i=index: x[i], (actors, ahead))
        outcome.behaviours[task] = Behaviour(lesson.world, actor, lesson.spec, task, greedy, look)
    progress(Progress("evaluate", 0, lesson.config.transfer.episodes, {}))
    device = jax.devices()[0] if ahead else acting_device(lesson.spec, lesson.config.deploy)
    policy = PopulationPolicy(lesson.world, actors, greedy, device, ahead)
    with _timed(outcome, "evaluate"), jax.default_device(device):
        played = evaluate(policy, lesson.config, len(lesson.tasks), lesson.key(5), judges, stop, envs)
    outcome.interrupted = stop()
    for index, task in enumerate(lesson.tasks):
        score(outcome.results[task], task, index, len(lesson.tasks), played)


@contextmanager
def _timed(outcome: Outcome, phase: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    outcome.seconds[phase] = outcome.seconds.get(phase, 0.0) + time.perf_counter() - began


def _curves(reward: Curves, behaviour: Curves, index: int) -> dict[str, list[Any]]:
    """One task's curves on one axis: the steps of its reward head, then those of its policy; None is a gap."""
    names = {"reward_loss": (reward, "loss"), "reward_error": (reward, "error_rewarding")}
    names |= {name: (behaviour, name) for name in ("return", "entropy", "value", "imagined_reward")}
    last = reward["step"][-1]
    gaps = {id(behaviour): len(reward["step"]), id(reward): 0}

    def spread(curves: Curves, name: str) -> list[float | None]:
        before = gaps[id(curves)]
        values = [float(value[index]) for value in curves[name]]
        total = len(reward["step"]) + len(behaviour["step"])
        return [None] * before + values + [None] * (total - before - len(values))

    steps = [*reward["step"], *(last + step for step in behaviour["step"])]
    return {"step": steps} | {name: spread(*found) for name, found in names.items()}


def score(result: Result, task: str, index: int, tasks: int, played: Played) -> None:
    """Write down what task `index` of so many earned in its own lanes."""
    if task not in played.returns:
        result.reason = result.reason or f"not evaluated: the environment reports no reward named {task}"
        return
    mine = slice(index * len(played.steps) // tasks, (index + 1) * len(played.steps) // tasks)
    finished = played.finished[mine]
    result.returns = [float(x) for x in played.returns[task][mine][finished]]
    result.steps = [int(x) for x in played.steps[mine][finished]]


def evaluation_seeds(episodes: int) -> np.ndarray:
    """Seeds of the evaluation's episodes: more of them only adds to those there were."""
    return np.random.SeedSequence(EVALUATION).generate_state(episodes).astype(np.int64) >> 1


def evaluate(
    policy: Policy,
    config: RunConfig,
    tasks: int,
    key: PRNGKeyArray,
    judges: Mapping[str, Judge] | None = None,
    stop: Stop | None = None,
    envs: Envs | None = None,
) -> Played:
    """Every task's actor in the same held-out episodes, many lanes at once; lanes are task-major."""
    episodes, deploy = config.transfer.episodes, config.deploy
    each = min(episodes, max(1, deploy.lanes // tasks))
    rounds = -(-episodes // each)
    seeds = np.full(each * rounds, NONE, np.int64)
    seeds[:episodes] = evaluation_seeds(episodes)
    by_lane = np.tile(seeds.reshape(rounds, each).T, (tasks, 1))

    def in_processes(env: EnvConfig, lanes: int) -> LaneGroup:
        return Vectoriser(env, lanes, min(deploy.workers, lanes), deploy.step_timeout)

    with (envs or in_processes)(config.env, len(by_lane)) as group:
        return play(
            policy,
            group,
            by_lane,
            key,
            judges=judges,
            limit=config.transfer.episode_steps,
            max_failures=deploy.max_failures,
            stop=stop,
        )
