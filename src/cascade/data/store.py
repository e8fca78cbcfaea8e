"""A run's `data/` folder: committed deployments, opened read-only and checked.

Opening changes nothing on disk. A deployment that is incomplete or altered is left where it is, excluded,
and named in `problems`; `quarantine()` moves such folders aside, so that their numbers can be used again.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cascade.data.fields import Column, Fields, Spans
from cascade.data.files import Unusable, check_bytes, open_array, sync
from cascade.data.labels import DTYPE, labelled_tasks, open_labels, put_labels
from cascade.data.manifest import EPISODES, MANIFEST, Manifest, file_name
from cascade.errors import CascadeError, disk_errors
from cascade.specs import EnvSpec

_FOLDER = re.compile(r"deploy-(\d{3,})")


def deployment_folder(root: Path, index: int) -> Path:
    """Where deployment `index` is, or will be."""
    return root / f"deploy-{index:03d}"


@dataclass(frozen=True)
class Problem:
    """A folder, or one label file of it, that cannot be used, and why."""

    path: Path
    reason: str
    whole: bool
    """whether the deployment is excluded; false when only labels are affected"""

    def __str__(self) -> str:
        return f"{self.path.name}: {self.reason}"


@dataclass(frozen=True)
class Deployment:
    """One committed deployment."""

    path: Path
    manifest: Manifest

    @classmethod
    def open(cls, path: Path, verify: bool = True) -> Deployment:
        """Read the manifest and check every file it names; `verify` compares checksums too."""
        deployment = cls(path, Manifest.read(path))
        entries = deployment.manifest.files
        for name in entries:
            deployment.array(name)
        deployment._check_table()
        if verify:
            with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
                list(pool.map(lambda name: check_bytes(path / name, entries[name]), entries))
        return deployment

    @property
    def index(self) -> int:
        return self.manifest.deployment

    @property
    def digest(self) -> str:
        """Names every byte of its fields; labels play no part in it."""
        return hashlib.blake2b((self.path / MANIFEST).read_bytes(), digest_size=16).hexdigest()

    @property
    def episodes(self) -> np.ndarray:
        """The episode table."""
        return self.array(EPISODES)

    def array(self, name: str) -> np.ndarray:
        """One file of the manifest, memory-mapped."""
        return open_array(self.path / name, self.manifest.files[name])

    @property
    def tasks(self) -> list[str]:
        """The tasks that have labels: those recorded, then those added."""
        recorded = list(self.manifest.spec.tasks)
        return recorded + [task for task in labelled_tasks(self.path) if task not in recorded]

    def labels(self, task: str, verify: bool = True) -> np.ndarray:
        """What arriving at each row was worth for `task`."""
        return open_labels(self.path, task, self.manifest.rows, verify)

    def _check_table(self) -> None:
        """Episodes lie back to back and fill the rows."""
        table = self.episodes
        ends = np.cumsum(table["steps"].astype(np.int64) + 1)
        starts = np.concatenate([[0], ends[:-1]])
        if table["steps"].min() < 1 or ends[-1] != self.manifest.rows or np.any(table["start"] != starts):
            raise Unusable(f"{EPISODES}: its episodes do not fill the {self.manifest.rows} rows")


@dataclass(frozen=True)
class Store:
    """All committed deployments of a run that can be used, in order."""

    path: Path
    deployments: tuple[Deployment, ...]
    problems: tuple[Problem, ...]

    @classmethod
    def open(cls, path: Path | str, verify: bool = True) -> Store:
        """What is stored at `path`; an empty store where nothing is yet. Sizes are checked in any case."""
        root = Path(path)
        deployments: list[Deployment] = []
        problems: list[Problem] = []
        folders = [folder for folder in root.glob("deploy-*") if _FOLDER.fullmatch(folder.name)]
        for folder in sorted(folders, key=lambda folder: int(folder.name[len("deploy-") :])):
            try:
                deployment = Deployment.open(folder, verify)
                if deployment_folder(root, deployment.index) != folder:
                    raise Unusable(f"its manifest is that of deployment {deployment.index}")
                if deployments and deployment.manifest.spec != deployments[0].manifest.spec:
                    raise Unusable(f"another environment than {deployments[0].path.name}'s")
            except Unusable as error:
                problems.append(Problem(folder, str(error), whole=True))
            else:
                deployments.append(deployment)
                problems.extend(_label_problems(deployment, verify))
        return cls(root, tuple(deployments), tuple(problems))

    @property
    def message(self) -> str:
        """One line that names every problem, for those who go on with the rest, or nothing."""
        remedy = "the rest is used, restore the named files from a copy or collect again"
        return f"{self.trouble}; {remedy}" if self.problems else ""

    @property
    def trouble(self) -> str:
        """The problems alone, for those who add what comes of them."""
        excluded = sum(problem.whole for problem in self.problems)
        total = len(self.deployments) + excluded
        named = "; ".join(str(problem) for problem in self.problems)
        return (
            f"{self.path}: {excluded} of {total} deployments excluded, {len(self.problems)} problems "
            f"({named})"
        )

    @property
    def spec(self) -> EnvSpec:
        return self._some()[0].manifest.spec

    @property
    def steps(self) -> int:
        return sum(deployment.manifest.steps for deployment in self.deployments)

    @property
    def rows(self) -> int:
        return sum(deployment.manifest.rows for deployment in self.deployments)

    @property
    def tasks(self) -> list[str]:
        """The tasks that every deployment has labels for."""
        tasks = [deployment.tasks for deployment in self.deployments]
        return [task for task in tasks[0] if all(task in other for other in tasks)] if tasks else []

    @property
    def contents(self) -> list[str]:
        """The name and the digest of each deployment, by which a checkpoint knows the data it was trained on."""
        return [f"{deployment.path.name} {deployment.digest}" for deployment in self.deployments]

    @property
    def digest(self) -> str:
        """Names exactly these deployments and every byte of their fields; labels play no part in it."""
        whole = hashlib.blake2b(digest_size=16)
        for deployment in self.deployments:
            whole.update((deployment.path / MANIFEST).read_bytes())
        return whole.hexdigest()

    def upto(self, deployment: int) -> Store:
        """The store as it was after that deployment."""
        kept = tuple(one for one in self.deployments if one.index <= deployment)
        if not kept or kept[-1].index != deployment:
            there = [one.index for one in self.deployments]
            raise CascadeError(f"deployment: got {deployment}, but {self.path} has {there}")
        return replace(self, deployments=kept)

    def fields(self) -> Fields:
        """What learning may read, over all deployments. Labels are not part of it."""
        tables = [np.asarray(deployment.episodes) for deployment in self._some()]
        offset = np.cumsum([0] + [deployment.manifest.rows for deployment in self.deployments])
        starts = np.concatenate(
            [table["start"] + base for table, base in zip(tables, offset[:-1], strict=True)]
        )
        steps = np.concatenate([table["steps"] for table in tables])
        return Fields(
            obs={name: self._column(file_name("obs", name)) for name in self.spec.observations},
            action=self._column(file_name("action")),
            is_first=self._column(file_name("is_first")),
            is_terminal=self._column(file_name("is_terminal")),
            starts=starts.astype(np.int64),
            ends=(starts + steps).astype(np.int64),
        )

    def info(self, name: str) -> Column:
        """One array that the environment reported beside its observations."""
        if name not in self.spec.info:
            raise CascadeError(f"info {name!r} is not stored at {self.path}; there is {list(self.spec.info)}")
        return self._column(file_name("info", name))

    def labels(self, task: str) -> Column:
        """What arriving at each row was worth for `task`: opened for transfer and measures only."""
        parts = []
        for deployment in self._some():
            try:
                parts.append(deployment.labels(task))
            except Unusable as error:
                raise CascadeError(
                    f"{deployment.path}: no usable labels for task {task!r} ({error}); "
                    f"there is {deployment.tasks}, others are added with Store.add_labels"
                ) from None
        return Column(tuple(parts), self._spans())

    def add_labels(self, task: str, arrays: Iterable[np.ndarray]) -> None:
        """Add a task: one array per deployment, in order, one number per row. Fields are never touched.

        Adding a task again replaces it; the rewards recorded while collecting cannot be replaced.
        """
        if not task or task in self.spec.tasks:
            raise CascadeError(f"task {task!r}: choose a name that is not recorded ({list(self.spec.tasks)})")
        for deployment, array in zip(self._some(), arrays, strict=True):
            labels = np.asarray(array)
            numeric = labels.dtype.kind in "fiub"
            if not numeric or labels.shape != (deployment.manifest.rows,):
                raise CascadeError(
                    f"labels of task {task!r} for {deployment.path.name}: got {labels.dtype}{labels.shape}, "
                    f"expected one number for each of its {deployment.manifest.rows} rows"
                )
            with disk_errors(deployment.path):
                put_labels(deployment.path, task, labels.astype(DTYPE))

    def quarantine(self) -> list[Path]:
        """Move excluded deployments to `quarantine/`, whole, so that they can be collected again."""
        moved = []
        for problem in self.problems:
            if problem.whole:
                with disk_errors(self.path):
                    moved.append(_move_aside(self.path, problem))
        return moved

    def _some(self) -> tuple[Deployment, ...]:
        if not self.deployments:
            raise CascadeError(
                f"{self.trouble}; restore the named files from a copy, or collect again"
                if self.problems
                else f"{self.path}: nothing is stored here; collect a deployment first"
            )
        return self.deployments

    def _spans(self) -> Spans:
        return Spans.whole([deployment.manifest.rows for deployment in self.deployments])

    def _column(self, name: str) -> Column:
        return Column(tuple(deployment.array(name) for deployment in self._some()), self._spans())


def _label_problems(deployment: Deployment, verify: bool) -> Iterator[Problem]:
    """Labels that cannot be used; the fields beside them can."""
    for task in deployment.tasks:
        try:
            deployment.labels(task, verify)
        except Unusable as error:
            yield Problem(deployment.path, f"labels of task {task!r}: {error}", whole=False)


def _move_aside(root: Path, problem: Problem) -> Path:
    """Rename a deployment's folder to a free name that says what is wrong with it."""
    reason = re.sub(r"[^A-Za-z0-9.]+", "-", problem.reason)[:40].strip("-.")
    folder = root / "quarantine"
    folder.mkdir(exist_ok=True)
    target, tries = folder / f"{problem.path.name}-{reason}", 1
    while target.exists():
        tries += 1
        target = folder / f"{problem.path.name}-{reason}-{tries}"
    problem.path.rename(target)
    sync(folder)
    sync(root)
    return target
