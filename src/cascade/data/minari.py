"""Minari: stored data as one of its datasets, and any of its datasets as stored data. Nothing is lost on the way.

    DIR/ID/data/main_data.hdf5     observations T + 1 rows, actions, rewards, terminations and truncations T
    DIR/ID/data/metadata.json      spaces, counts, and under `cascade` the spec that reads it back

`infos` has T + 1 rows and the same structure in every episode: `deployment`, `explorer`, `lane` and `episode`;
`label`, what arriving at each row was worth, by task; `info`, what the environment reported, by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cascade.data.files import remove
from cascade.data.manifest import file_name, spec_to_json
from cascade.data.minari_spaces import (
    Convert,
    Unfit,
    action_converter,
    action_space,
    key_of,
    leaf_values,
    observation_converters,
    observation_space,
)
from cascade.data.numbering import Numbering
from cascade.data.store import Deployment, Store
from cascade.errors import CascadeError, MissingExtra, SettingError, disk_errors
from cascade.specs import EnvSpec, Episode, EpisodeKey

IDS = ("deployment", "explorer", "lane", "episode")
METADATA = "metadata.json"


def export(store: Store, folder: Path, dataset_id: str, task: str | None = None) -> Path:
    """Write the store as the dataset `folder/dataset_id`; labels of `task`, by default the first, are its rewards.

    It appears whole or not at all. Its folder can be loaded by its path, or by its id where Minari keeps datasets.
    """
    storage_class, _, version = _minari()
    task = _main_task(store, task)
    _check_id(dataset_id)
    final = folder.absolute() / dataset_id  # Minari joins a relative path onto itself
    if final.exists():
        raise SettingError("--out", str(folder), f"a folder in which there is no {dataset_id} yet")
    temporary = final.with_name(final.name + ".tmp")
    spec = store.spec
    with disk_errors(final):
        remove(temporary)
        temporary.mkdir(parents=True)
        try:
            storage = storage_class.new(
                temporary / "data",
                observation_space=observation_space(spec),
                action_space=action_space(spec.action),
                jpeg_encoding=False,  # the default loses detail
            )
            storage.update_metadata(
                {
                    "dataset_id": dataset_id,
                    "minari_version": version,
                    "algorithm_name": "cascade",
                    "description": f"Episodes of {spec.name}; rewards are those of the task {task}.",
                    "cascade": {"spec": spec_to_json(spec), "task": task, "tasks": store.tasks},
                }
            )
            storage.update_episodes(_buffers(store, task))
            temporary.rename(final)
        except BaseException:
            remove(temporary)
            raise
    return final


def _minari() -> tuple[Any, Any, str]:
    """Its storage, its episodes and its version."""
    try:
        import minari
        from minari.data_collector import EpisodeBuffer
        from minari.dataset._storages import hdf5_storage  # noqa: F401 - fails at once without h5py
        from minari.dataset.minari_storage import MinariStorage
    except ImportError:
        raise MissingExtra("Minari datasets", "minari") from None
    return MinariStorage, EpisodeBuffer, minari.__version__


def _main_task(store: Store, task: str | None) -> str:
    tasks = store.tasks
    if task is None and tasks:
        return tasks[0]
    if task not in tasks:
        raise SettingError("--task", task, f"one of {', '.join(tasks) or 'none: there are no labels'}")
    return task


def _check_id(dataset_id: str) -> None:
    from minari.dataset.minari_dataset import DATASET_ID_RE

    found = DATASET_ID_RE.fullmatch(dataset_id)
    if found is None or found["version"] is None:
        raise SettingError("--id", dataset_id, "an id as Minari has them, such as four-rooms-v0")


def _buffers(store: Store, task: str) -> Iterator[Any]:
    """Every stored episode as Minari's."""
    _, buffer_class, _ = _minari()
    tasks = store.tasks
    for deployment in store.deployments:
        arrays = _arrays(deployment, tasks)
        for explorer, lane, number, start, steps, terminated in np.asarray(deployment.episodes).tolist():
            rows = slice(start, start + steps + 1)
            obs = {key_of(name): np.array(array[rows]) for name, array in arrays.obs.items()}
            labels = {key_of(name): np.array(array[rows]) for name, array in arrays.labels.items()}
            ids = zip(IDS, (deployment.index, explorer, lane, number), strict=True)
            infos: dict[str, Any] = {name: np.full(steps + 1, value, np.int32) for name, value in ids}
            infos |= {"label": labels}
            if arrays.info:
                infos["info"] = {key_of(name): np.array(array[rows]) for name, array in arrays.info.items()}
            ended = np.arange(1, steps + 1) == steps
            yield buffer_class(
                observations=obs if len(obs) > 1 else next(iter(obs.values())),
                actions=np.array(arrays.action[start : start + steps]),
                rewards=labels[key_of(task)][1:],
                terminations=ended & terminated,
                truncations=ended & (not terminated),
                infos=infos,
            )


@dataclass(frozen=True)
class _Arrays:
    """A deployment's memory maps."""

    obs: Mapping[str, np.ndarray]
    action: np.ndarray
    labels: Mapping[str, np.ndarray]
    info: Mapping[str, np.ndarray]


def _arrays(deployment: Deployment, tasks: list[str]) -> _Arrays:
    spec = deployment.manifest.spec
    return _Arrays(
        {name: deployment.array(file_name("obs", name)) for name in spec.observations},
        deployment.array(file_name("action")),
        {task: deployment.labels(task) for task in tasks},
        {name: deployment.array(file_name("info", name)) for name in spec.info},
    )


@dataclass(frozen=True)
class Dataset:
    """A Minari dataset, and how its rows become those of a spec."""

    data: Any
    spec: EnvSpec
    observations: Mapping[str, tuple[str, Convert]]
    action: Convert
    task: str | None
    """the task that its rewards are of"""
    name: str
    exported: bool
    """whether it was written here, and so says whose its episodes are"""
    missing: list[str] = field(default_factory=list)
    """info of the spec that it does not have; zeros take its place"""

    @classmethod
    def open(cls, source: str, spec: EnvSpec) -> Dataset:
        """The dataset at a path, or with this id in Minari's own folder, for a world with this spec."""
        folder = find(source)
        from minari import MinariDataset

        try:
            about = json.loads((folder / METADATA).read_text(encoding="utf-8"))
            if not {"observation_space", "action_space"} <= about.keys():
                # Minari would make the environment it names, and so run code that came with the file.
                raise ValueError("its metadata do not say what its observations and actions are")
            data = MinariDataset(folder)
        except (OSError, ValueError, KeyError, TypeError, AssertionError, NotImplementedError) as error:
            raise CascadeError(f"{folder}: not a Minari dataset that can be read ({error})") from None
        try:
            observations = observation_converters(data.observation_space, spec)
            action = action_converter(data.action_space, spec.action)
        except Unfit as error:
            raise SettingError("initial", f"minari:{source}", f"data that fit {spec.name}; {error}") from None
        only = spec.tasks[0] if len(spec.tasks) == 1 else None
        task = about.get("cascade", {}).get("task", only)
        dataset = cls(data, spec, observations, action, task, str(data.id), "cascade" in about)
        dataset.missing.extend(dataset._missing())
        return dataset

    def episodes(self) -> Iterator[Episode]:
        """Every episode, with its explorer and lane where it has them, numbered on over deployments."""
        numbering = Numbering()
        for index, one in enumerate(one for one in self.data.iterate_episodes() if len(one.rewards)):
            try:
                ids = [self._id(one, name) for name in IDS] if self.exported else [0, 0, 0, index]
                yield self._episode(one, numbering.key(*ids))
            except Unfit as error:
                raise CascadeError(f"minari {self.name}, episode {one.id}: {error}") from None

    def _episode(self, one: Any, key: EpisodeKey) -> Episode:
        steps = len(one.rewards)
        values = leaf_values(one.observations)
        obs = {}
        for name, (leaf, convert) in self.observations.items():
            rows = np.asarray(values[leaf])
            if len(rows) != steps + 1:
                raise Unfit(f"{len(rows)} observations for {steps} steps, expected one more than steps")
            obs[name] = np.ascontiguousarray(convert(rows))
        taken = self.action(np.asarray(one.actions))
        if np.any(one.terminations[:-1]):
            raise Unfit("it ends before its last step")
        return Episode(
            key,
            obs,
            np.concatenate([taken, np.zeros_like(taken[:1])]),
            {task: self._labels(one, task) for task in self.spec.tasks},
            {name: self._info(one, name) for name in self.spec.info},
            bool(one.terminations[-1]),
        )

    def _labels(self, one: Any, task: str) -> np.ndarray:
        """One number per row: those it was exported with, or of the steps, with nothing before the first."""
        steps = len(one.rewards)
        given = _inside(one.infos, "label", key_of(task))
        if given is None and task == self.task:
            given = one.rewards
        if given is None:
            given = _inside(one.infos, task)
        if given is None or np.shape(given) not in ((steps,), (steps + 1,)):
            raise Unfit(f"it has no label for each step for the task {task!r}: add them as infos[{task!r}]")
        return np.concatenate([np.zeros(steps + 1 - len(given)), given]).astype(np.float32)

    def _info(self, one: Any, name: str) -> np.ndarray:
        part = self.spec.info[name]
        found = self._given_info(one, name)
        if found is None:
            return np.zeros((len(one.rewards) + 1, *part.shape), part.dtype)
        return found.astype(part.dtype)

    def _given_info(self, one: Any, name: str) -> np.ndarray | None:
        shape = (len(one.rewards) + 1, *self.spec.info[name].shape)
        for found in (_inside(one.infos, "info", key_of(name)), _inside(one.infos, name)):
            if found is not None and np.shape(found) == shape:
                return np.asarray(found)
        return None

    def _id(self, one: Any, name: str) -> int:
        found = _inside(one.infos, name)
        if np.shape(found) != (len(one.rewards) + 1,):
            raise Unfit(f"infos[{name!r}] is not as it was exported")
        return int(found[0])

    def _missing(self) -> list[str]:
        first = next(iter(self.data.iterate_episodes()), None)
        if first is None:
            raise CascadeError(f"minari {self.name}: has no episodes")
        return [name for name in self.spec.info if self._given_info(first, name) is None]


def find(source: str) -> Path:
    """The folder with a dataset's files, of a path or of an id."""
    _minari()
    from minari.storage.datasets_root_dir import get_dataset_path

    for path in (Path(source), get_dataset_path(source)):
        for folder in (path / "data", path):
            if (folder / METADATA).is_file():
                return folder
    raise SettingError(
        "initial", f"minari:{source}", "the folder of a Minari dataset, or the id of one on this machine"
    )


def _inside(infos: Any, *names: str) -> Any:
    """What is under these names, if anything is."""
    for name in names:
        if not isinstance(infos, Mapping) or name not in infos:
            return None
        infos = infos[name]
    return infos
