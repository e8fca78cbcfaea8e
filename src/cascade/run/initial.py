"""What the first deployment is: random actions, or a dataset: the stored data of another run, or Minari's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from cascade.data.journal import Journal
from cascade.data.manifest import file_name
from cascade.data.numbering import Numbering
from cascade.data.store import Deployment, Store
from cascade.deploy import RandomPolicy, VariedPolicy
from cascade.errors import CascadeError, SettingError
from cascade.specs import ActionSpec, ArraySpec, EnvSpec, Episode
from cascade.types import Policy

MINARI = "minari:"
POLICIES: dict[str, Callable[[ActionSpec], Policy]] = {"random": RandomPolicy, "varied": VariedPolicy}
"""Who may collect it, by the name that the setting `initial` has for it; any other value names data."""


def copy(source: str, root: Path, spec: EnvSpec, seed: int) -> str:
    """Store every episode of `source` as deployment 0 of a new run; a line that a person should read, or nothing."""
    if source.startswith(MINARI):
        return _copy_minari(source, root, spec)
    store = fitting(source, spec, seed)
    journal = Journal(root, 0, spec)
    missing = [name for name, part in spec.info.items() if store.spec.info.get(name) != part]
    for episode in episodes(store, spec):
        journal.append(episode)
    journal.commit({"initial": Path(source).name, "digest": store.digest, "info_set_to_zero": missing})
    return f"{source} has no info {', '.join(missing)}: zeros are stored for it" if missing else ""


def check(source: str, spec: EnvSpec, seeds: Iterable[int]) -> None:
    """An error if `source` has no data for one of the seeds, or none that fit this world; nothing is written."""
    if source.startswith(MINARI):
        from cascade.data.minari import Dataset

        next(Dataset.open(source.removeprefix(MINARI), spec).episodes(), None)
    elif source not in POLICIES:
        for seed in seeds:
            fitting(source, spec, seed)


def _copy_minari(source: str, root: Path, spec: EnvSpec) -> str:
    from cascade.data.minari import Dataset

    dataset = Dataset.open(source.removeprefix(MINARI), spec)
    journal = Journal(root, 0, spec)
    for episode in dataset.episodes():
        journal.append(episode)
    journal.commit({"initial": f"{MINARI}{dataset.name}", "info_set_to_zero": dataset.missing})
    if not dataset.missing:
        return ""
    return f"minari {dataset.name} has no info {', '.join(dataset.missing)}: zeros are stored for it"


def fitting(source: str, spec: EnvSpec, seed: int) -> Store:
    """The store at a path, if its data are such as this world gives and takes."""
    store = find(source, seed)
    if (store.spec.observations, store.spec.action) != (spec.observations, spec.action):
        raise SettingError(
            "initial",
            source,
            f"data with the observations and actions of {spec.name}, not {store.spec.name}'s",
        )
    if missing := [task for task in spec.tasks if task not in store.tasks]:
        raise SettingError("initial", source, f"data with labels for the task {missing[0]}")
    return store


def find(source: str, seed: int) -> Store:
    """The store at a path: a run's (its data of this seed, else of its only one) or a data folder itself."""
    path = Path(source)
    seeds = [folder.name.removeprefix("seed-") for folder in sorted(path.glob("data/seed-*"))]
    if len(seeds) > 1 and str(seed) not in seeds:
        raise SettingError(
            "initial",
            source,
            f"a run with data of seed {seed}, or of one seed alone; it has {', '.join(seeds)}",
        )
    own = f"seed-{seed if str(seed) in seeds else ''.join(seeds)}"
    for candidate in (path / "data" / own, path / "data", path):
        store = Store.open(candidate)
        if store.deployments:
            if store.problems:
                raise CascadeError(
                    f"{store.trouble}; restore the named files from a copy, or name other data"
                )
            return store
    raise SettingError(
        "initial", source, "random, varied, the folder of a run or of its stored data, or minari:ID"
    )


def episodes(store: Store, spec: EnvSpec) -> Iterator[Episode]:
    """Every stored episode, numbered on over deployments."""
    numbering = Numbering()
    for deployment in store.deployments:
        arrays = _arrays(deployment, spec)
        for explorer, lane, number, start, steps, terminated in np.asarray(deployment.episodes).tolist():
            rows = slice(start, start + steps + 1)
            parts = {kind: {name: x[rows] for name, x in group.items()} for kind, group in arrays.items()}
            key = numbering.key(deployment.index, explorer, lane, number)
            yield Episode(
                key, parts["obs"], parts["row"]["action"], parts["label"], parts["info"], bool(terminated)
            )


def _arrays(deployment: Deployment, spec: EnvSpec) -> dict[str, dict[str, np.ndarray]]:
    return {
        "obs": {name: deployment.array(file_name("obs", name)) for name in spec.observations},
        "info": {name: _info(deployment, name, part) for name, part in spec.info.items()},
        "label": {task: deployment.labels(task) for task in spec.tasks},
        "row": {"action": deployment.array(file_name("action"))},
    }


def _info(deployment: Deployment, name: str, part: ArraySpec) -> np.ndarray:
    """What is stored, or zeros, which take no memory."""
    if deployment.manifest.spec.info.get(name) == part:
        return deployment.array(file_name("info", name))
    return np.broadcast_to(np.zeros((), part.dtype), (deployment.manifest.rows, *part.shape))
