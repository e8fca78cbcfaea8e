"""Whether what a run has stored fits the settings it is to go on with: asked before any of them is written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from cascade.config import RunConfig
from cascade.data.files import Unusable
from cascade.data.shards import Shard
from cascade.deploy import Plan, refuse_other_plan
from cascade.errors import CascadeError
from cascade.run import state
from cascade.run.checkpoint import Checkpoints
from cascade.run.folder import Folder
from cascade.specs import EnvSpec


def plan_of(config: RunConfig, seed: int, deployment: int) -> Plan:
    """Who collects how much in a deployment. The first is the same for every method."""
    population = 1 if deployment == 0 else config.population
    return Plan.of(config.deploy, seed=seed, deployment=deployment, population=population)


def refuse_misfits(
    folder: Folder, config: RunConfig, spec: EnvSpec, groups: Sequence[tuple[int, ...]]
) -> None:
    """An error if the stored data, a deployment under way or the last checkpoint cannot go on with `config`.

    Nothing is changed. The arrays of a checkpoint are read for it once more than a run without changes reads them.
    """
    for seeds in groups:
        for seed in seeds:
            _check_data(folder, config, spec, seed)
        if folder.checkpoints(seeds).exists():
            checkpoints = Checkpoints(folder.checkpoints(seeds), read_only=True)
            try:
                if checkpoints.latest is not None:
                    checkpoints.check(state.blueprint(spec, config, state.seed_keys(seeds)))
            finally:
                checkpoints.close()


def _check_data(folder: Folder, config: RunConfig, spec: EnvSpec, seed: int) -> None:
    store = folder.store(seed)
    if store.deployments and store.spec != spec:
        raise CascadeError(
            f"{store.path}: holds data of {store.spec.name} that differ from what {spec.name} gives or takes; go on "
            "with the environment's settings as they were, or choose another --out"
        )
    for journal in store.path.glob("deploy-*.journal"):
        if not journal.with_suffix("").exists():
            _check_journal(folder, config, spec, seed, journal)


def _check_journal(folder: Folder, config: RunConfig, spec: EnvSpec, seed: int, journal: Path) -> None:
    """A deployment under way is finished as it was begun."""
    deployment = int(journal.stem.removeprefix("deploy-"))
    begun = folder.read().config.initial
    if deployment == 0 and begun != config.initial:
        raise CascadeError(
            f"{journal}: was begun with initial {begun!r}, now {config.initial!r}; finish it as it was begun, or "
            "remove that folder"
        )
    refuse_other_plan(journal, plan_of(config, seed, deployment))
    for shard in journal.glob("shard-*"):
        with suppress(Unusable):  # torn ones are dropped when the deployment goes on
            Shard.open(shard, spec)
