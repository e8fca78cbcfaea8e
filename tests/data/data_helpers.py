"""Small made-up episodes and stores for the tests of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cascade.data.journal import Journal
from cascade.data.store import Store
from cascade.specs import ActionSpec, ArraySpec, EnvSpec, Episode, EpisodeKey, ObservationSpec

SPEC = EnvSpec(
    name="made-up",
    observations={
        "image": ObservationSpec("image", (4, 3, 3)),
        "joint/angles": ObservationSpec("vector", (2,)),
    },
    action=ActionSpec("discrete", 5),
    tasks=("reward", "other"),
    info={"cell": ArraySpec((2,), "int16")},
)
CONTINUOUS = EnvSpec("rod", {"state": ObservationSpec("vector", (3,))}, ActionSpec("continuous", 2))


def make_episode(key: tuple[int, int, int], steps: int, spec: EnvSpec = SPEC) -> Episode:
    """An episode that depends on its key and length alone; it is cut, not ended, if the length is even."""
    random = np.random.default_rng([*key, steps])
    rows = steps + 1

    def made(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return random.integers(0, 100, (rows, *shape)).astype(dtype)

    action = made(spec.action.shape, spec.action.dtype)
    action[-1] = 0
    return Episode(
        key=EpisodeKey(*key),
        obs={name: made(part.shape, part.dtype) for name, part in spec.observations.items()},
        action=action,
        labels={task: made((), np.dtype(np.float32)) for task in spec.tasks},
        info={name: made(part.shape, np.dtype(part.dtype)) for name, part in spec.info.items()},
        terminated=steps % 2 == 1,
    )


def make_episodes(lengths: Sequence[int], spec: EnvSpec = SPEC) -> list[Episode]:
    """One episode of each length, spread over two explorers with two lanes each."""
    return [make_episode((i % 2, i // 2 % 2, i // 4), steps, spec) for i, steps in enumerate(lengths)]


def commit(root: Path, index: int, episodes: Sequence[Episode], spec: EnvSpec = SPEC) -> None:
    """Store the episodes as deployment `index`."""
    journal = Journal(root, index, spec)
    for episode in episodes:
        journal.append(episode)
    journal.commit()


def make_store(root: Path, *lengths: Sequence[int], spec: EnvSpec = SPEC) -> Store:
    """A store with one deployment for each list of episode lengths."""
    for index, of_deployment in enumerate(lengths):
        commit(root, index, make_episodes(of_deployment, spec), spec)
    return Store.open(root)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by relative name."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
