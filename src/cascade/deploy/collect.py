"""Collect a deployment on this machine: exactly its budget, whatever crashes or is killed on the way.

    plan = Plan.of(config, seed=0, deployment=2, population=10)
    with vectorise(env, config, plan) as envs:
        summary = collect(policy, envs, Journal(root, 2, envs.spec), plan, config)

All lanes of a group are acted for in one call. While one group is acted for, the others are stepped.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from cascade.config import DeployConfig, EnvConfig
from cascade.data.journal import Journal
from cascade.deploy.ledger import Ledger
from cascade.deploy.plan import Plan
from cascade.deploy.summary import Progress, Summary
from cascade.deploy.turns import Turns
from cascade.envs import Vectoriser
from cascade.envs.vectorise import LaneGroup
from cascade.types import Policy

PROGRESS_SECONDS = 0.2


def vectorise(env: EnvConfig, config: DeployConfig, plan: Plan) -> Vectoriser:
    """The environments that a plan needs."""
    return Vectoriser(env, plan.lanes, min(config.workers, plan.lanes), config.step_timeout)


def collect(
    policy: Policy,
    envs: LaneGroup,
    journal: Journal,
    plan: Plan,
    config: DeployConfig,
    *,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Summary:
    """Collect what the journal lacks of the plan, and commit it.

    When `stop` says so, the journal is written out and nothing is committed: the same call resumes. The same
    happens to whatever was finished when an error ends the collection.
    """
    if envs.lanes != plan.lanes or journal.deployment != plan.deployment:
        raise ValueError(
            f"the plan is for {plan.lanes} lanes and deployment {plan.deployment}, the environments have "
            f"{envs.lanes} lanes and the journal is that of deployment {journal.deployment}"
        )
    ledger = Ledger(journal, plan, config)
    turns = Turns(policy, envs, plan, np.arange(plan.lanes), journal.finished())
    try:
        done = _run(turns, ledger, progress, stop)
    except BaseException:
        ledger.keep(turns.harvest())
        journal.flush()
        raise
    ledger.take(turns.harvest())
    if done:
        return ledger.finish()
    turns.rest()
    return ledger.interrupt()


def _run(
    turns: Turns,
    ledger: Ledger,
    progress: Callable[[Progress], None] | None,
    stop: Callable[[], bool] | None,
) -> bool:
    """Take turns until the budget is spent; false if told to stop before."""
    reported = time.monotonic()
    while turns.active:
        if stop is not None and stop():
            return False
        turns.turn()
        if turns.news:
            ledger.take(turns.harvest())
        if progress is not None and (not turns.active or time.monotonic() - reported > PROGRESS_SECONDS):
            reported = time.monotonic()
            progress(ledger.progress(turns.under_way))
    return True
