"""Collect a deployment on a Ray cluster: the very bytes that one machine would collect.

    summary = collect_fleet(policy, Journal(root, 2, spec), plan, env, config)

The lanes of the plan are handed out in units: whole groups, or equal pieces of them where there are more runners
than groups. A runner works on one unit until its budget is spent, and sends finished episodes back as it goes. It
may be lost at any moment: its unit then goes to whichever runner is free, with the episodes that have arrived, and
what was under way is collected again as it was. Runners that come later take units that still wait.
"""

from __future__ import annotations

import importlib
import logging
import os
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from cascade.config import DeployConfig, EnvConfig
from cascade.data.journal import Journal
from cascade.deploy.ledger import Ledger
from cascade.deploy.plan import Plan
from cascade.deploy.runner import Runner, environ, versions
from cascade.deploy.summary import Progress, Summary
from cascade.deploy.turns import Report
from cascade.errors import CascadeError, MissingExtra, SettingError, cause_of
from cascade.types import Policy

SLICE = 1.0
"""Seconds that a runner works before it reports."""
POLL = 0.2
"""Seconds between two looks at `stop`, and between two reports of progress."""
STOP_SECONDS = 10.0
"""How long reports are waited for after a stop."""
START_SECONDS = 300.0
"""How long nothing may happen at all, for want of runners."""
LOSSES = 10
"""Losses for each runner, without one finished episode between them, after which the collection ends."""

LOCAL = "local"
"""Ray's word for a new cluster on this machine."""


def collect_fleet(
    policy: Policy,
    journal: Journal,
    plan: Plan,
    env: EnvConfig,
    config: DeployConfig,
    *,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Summary:
    """Collect what the journal lacks of the plan, and commit it; `stop` and errors act as in `collect`.

    The policy is copied to the cluster once. It must be something that Ray can copy, as those of this package are.
    """
    ray = connect(config.address)
    ledger = Ledger(journal, plan, config)
    with Fleet(ray, policy, env, ledger, config) as fleet:
        try:
            done = fleet.run(progress, stop)
        except BaseException:
            journal.flush()
            raise
    return ledger.finish() if done else ledger.interrupt()


def load() -> Any:
    """The `ray` module."""
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise MissingExtra("deploy.engine ray", "ray") from None


def starts_cluster(address: str) -> bool:
    """Whether `connect` starts a cluster of its own, to which no machine is added later."""
    return not load().is_initialized() and _chosen(address) == LOCAL


def _chosen(address: str) -> str:
    return address or os.environ.get("RAY_ADDRESS") or LOCAL


def connect(address: str) -> Any:
    """The `ray` module, connected: to what it is connected to already, to `address`, or to a cluster of its own."""
    ray = load()
    if ray.is_initialized():
        return ray
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
    chosen = _chosen(address)
    local = {"include_dashboard": False} if chosen == LOCAL else {}
    with _handlers_kept(), warnings.catch_warnings():
        # Ray's processes are forks that become other programs at once: JAX's warning is not about these.
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        try:
            ray.init(chosen, log_to_driver=False, logging_level=logging.ERROR, **local)
        except (ConnectionError, ValueError) as error:
            expected = f"a Ray cluster that answers ({cause_of(error)})"
            raise SettingError("deploy.address", chosen, expected) from None
    return ray


def divide(plan: Plan, runners: int) -> list[np.ndarray]:
    """The plan's lanes in units: its groups, each in as many pieces as it takes to give every runner one."""
    groups = plan.group_lanes()
    pieces = -(-runners // len(groups))
    return [piece for group in groups for piece in np.array_split(group, min(pieces, len(group)))]


@dataclass
class Task:
    """A unit in the hands of a runner."""

    runner: Any
    lanes: np.ndarray
    under_way: int = 0


class Fleet:
    """The runners of one deployment, and who has which lanes."""

    def __init__(self, ray: Any, policy: Policy, env: EnvConfig, ledger: Ledger, config: DeployConfig):
        self._ray, self._ledger, plan = ray, ledger, ledger.plan
        cores = int(ray.cluster_resources().get("CPU", 0))
        wanted = min(config.runners or max(1, cores), plan.lanes)
        left = plan.budgets().ravel()
        for key, steps in ledger.journal.finished().items():
            left[plan.lane_of(key)] -= steps
        units = (lanes[left[lanes] > 0] for lanes in divide(plan, wanted))
        self._waiting = deque(lanes for lanes in units if len(lanes))
        self._size = min(wanted, len(self._waiting))
        self._actor = ray.remote(Runner).options(
            num_cpus=1,
            num_gpus=0,
            max_restarts=0,  # who is lost is replaced here, from what the journal has
            max_task_retries=0,
            runtime_env={"env_vars": environ()},
        )
        self._job = (ray.put(policy), env, plan, config)
        self._starting: dict[Any, Any] = {}
        self._busy: dict[Any, Task] = {}
        self._idle: list[Any] = []
        self._losses, self._heard = 0, time.monotonic()

    def __enter__(self) -> Fleet:
        for _ in range(self._size):
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        tasks = [task.runner for task in self._busy.values()]
        for runner in (*tasks, *self._starting.values(), *self._idle):
            self._ray.kill(runner)

    def run(self, progress: Callable[[Progress], None] | None, stop: Callable[[], bool] | None) -> bool:
        """Hand units out and take reports until the budget is spent; false if told to stop before."""
        reported = 0.0
        while self._waiting or self._busy:
            if stop is not None and stop():
                self._drain()
                return False
            while self._waiting and self._idle:
                self._assign(self._idle.pop(), self._waiting.popleft())
            for answer in self._answers([*self._busy, *self._starting], POLL):
                self._hear(answer)
            self._give_up_without_runners()
            done = not (self._waiting or self._busy)
            if progress is not None and (done or time.monotonic() - reported > POLL):
                reported = time.monotonic()
                progress(self._ledger.progress(sum(task.under_way for task in self._busy.values())))
        return True

    def _answers(self, pending: list[Any], seconds: float) -> list[Any]:
        """Those that are there, once there is one."""
        if not self._ray.wait(pending, num_returns=1, timeout=seconds)[0]:
            return []
        ready: list[Any] = self._ray.wait(pending, num_returns=len(pending), timeout=0)[0]
        return ready

    def _start(self) -> None:
        runner = self._actor.remote(*self._job)
        self._starting[runner.ready.remote()] = runner

    def _assign(self, runner: Any, lanes: np.ndarray) -> None:
        """Calls to one runner are carried out in their order, so nothing waits for `begin`."""
        wanted, plan = set(lanes.tolist()), self._ledger.plan
        finished = {
            key: steps
            for key, steps in self._ledger.journal.finished().items()
            if plan.lane_of(key) in wanted
        }
        began = runner.begin.remote(lanes, finished)
        self._busy[runner.advance.remote(SLICE, began)] = Task(runner, lanes)

    def _hear(self, answer: Any) -> None:
        if answer in self._starting:
            runner = self._starting.pop(answer)
            found = self._get(answer)
            if found is None:
                self._start()
            else:
                _check_versions(found)
                self._idle.append(runner)
            return
        task = self._busy.pop(answer)
        report = self._get(answer)
        if report is None:
            self._waiting.appendleft(task.lanes)
            self._start()
        else:
            self._go_on(task, report)

    def _go_on(self, task: Task, report: Report) -> None:
        if report.active:  # first of all, so that it does not wait for our disk
            self._busy[task.runner.advance.remote(SLICE)] = task
            task.under_way = report.under_way
        else:
            self._idle.append(task.runner)
        if report.episodes:
            self._losses = 0
        self._ledger.take(report)

    def _get(self, answer: Any) -> Any:
        """What a runner answered; None if the runner was lost. An error in its work is raised here."""
        self._heard = time.monotonic()
        errors = self._ray.exceptions
        try:
            return self._ray.get(answer)
        except errors.RayTaskError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, CascadeError):
                raise CascadeError(str(cause)) from None
            raise
        except errors.RayError as error:
            self._losses += 1
            if self._losses > LOSSES * self._size:
                raise CascadeError(
                    f"{self._ledger.journal.spec.name}: {self._losses} runners were lost in a row without a finished "
                    f"episode between them; the last: {' '.join(str(error).split())[:400]}; finished episodes are "
                    "kept: fix the cluster and run the same command again"
                ) from None
            return None

    def _drain(self) -> None:
        """Wait for the reports of this moment, so that as little as possible is collected again."""
        until = time.monotonic() + STOP_SECONDS
        while self._busy and (left := until - time.monotonic()) > 0:
            for answer in self._answers([*self._busy], left):
                task, report = self._busy.pop(answer), self._get(answer)
                self._idle.append(task.runner)
                if report is not None:
                    self._ledger.take(report)

    def _give_up_without_runners(self) -> None:
        if self._busy or time.monotonic() - self._heard < START_SECONDS:
            return
        free = self._ray.available_resources().get("CPU", 0)
        raise CascadeError(
            f"deploy.runners: no runner could start within {START_SECONDS:g} s; the Ray cluster has {free:g} of "
            f"{self._ray.cluster_resources().get('CPU', 0):g} cores free; free some or add machines, and run the "
            "same command again"
        )


def _check_versions(found: dict[str, str]) -> None:
    """Other versions would collect other episodes."""
    for name, ours in versions().items():
        if found[name] != ours:
            raise CascadeError(
                f"runner on {found['host']}: has {name} {found[name]}, this machine has {ours}; install the same "
                "versions on all machines of the cluster"
            )


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Ray takes signals over when it connects; ours, which save the run, go back in place."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
