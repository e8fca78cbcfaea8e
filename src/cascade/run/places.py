"""What only some worlds tell: where explorers were on the screen of a game with rooms, and Crafter's skills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from cascade.config import EnvConfig, RunConfig
from cascade.data.store import Store
from cascade.envs import opened
from cascade.metrics import scores
from cascade.run.watching import Note, looking
from cascade.specs import Episode

ROOMS = 6
"""Rooms that are drawn, those with the most visits first."""
RIGHT, BOTTOM = 4, 321
"""Montezuma's Revenge: the memory's x is RIGHT less than the column of the hero's middle on the screen, and its y is
BOTTOM less the row; found by looking for the colour of his shirt in 932 frames, to within two pixels on average."""


def places(
    episodes: Sequence[Episode],
    store: Store,
    config: RunConfig,
    starts: Sequence[int],
    note: Note | None = None,
) -> dict[str, np.ndarray]:
    """The arrays of `tracks` and `skills`, as far as the world tells them; episodes began at `starts`.

    `note` is told what could not be drawn.
    """
    arrays: dict[str, np.ndarray] = {}
    if {"position", "room"} <= store.spec.info.keys():
        arrays |= tracks(episodes, config, starts, note)
    if "achievements" in store.spec.info:
        arrays |= skills(store, config.env)
    return arrays


def tracks(
    episodes: Sequence[Episode], config: RunConfig, starts: Sequence[int], note: Note | None = None
) -> dict[str, np.ndarray]:
    """`positions` int16 [P, levels, T, 3]: column, row and room in the first episode from each start, then -1.

    Of the rooms with the most visits `rooms` [R] and `room_pictures` uint8 [R, height, width, 3].
    """
    firsts = [episode for episode in episodes if episode.key.episode == 0]
    longest = max(len(episode) for episode in firsts) + 1
    found = np.full((config.population, config.measure.levels, longest, 3), -1, np.int16)
    for episode in firsts:
        explorer, level, _ = episode.key
        x, y = episode.info["position"].astype(np.int16).T
        track = np.stack([x + RIGHT, BOTTOM - y, episode.info["room"].astype(np.int16)], 1)
        found[explorer, level, : len(track)] = track
    arrays = {"positions": found}
    if config.measure.pictures:
        visits = Counter(found[..., 2][found[..., 2] >= 0].tolist())
        chosen = sorted(room for room, _ in visits.most_common(ROOMS))
        with looking("pictures of the rooms", note):
            pictures = [room_picture(firsts, room, config.env, starts) for room in chosen]
            arrays |= {"rooms": np.array(chosen, np.int16), "room_pictures": np.stack(pictures)}
    return arrays


def room_picture(episodes: Sequence[Episode], room: int, env: EnvConfig, starts: Sequence[int]) -> np.ndarray:
    """The screen in a room: an episode that came there is played again up to its first moment in it."""
    episode = next(one for one in episodes if (one.info["room"] == room).any())
    moment = int(np.argmax(episode.info["room"] == room))
    with opened(env) as world:
        world.reset(starts[episode.key.lane])
        for action in episode.action[:moment]:
            world.step(action)
        return world.render()


def skills(store: Store, env: EnvConfig) -> dict[str, np.ndarray]:
    """`skills` float32 [K]: per cent of the stored whole episodes with each skill; `skill_names` [K]."""
    success = scores.skill_success(unlocked(store)[whole_episodes(store)]).astype(np.float32)
    names: Sequence[str] = [f"skill {i + 1}" for i in range(len(success))]
    if env.id.startswith("crafter:"):
        from cascade.envs.crafter_env import SKILLS

        names = SKILLS
    return {"skills": success, "skill_names": np.array(names)}


def unlocked(store: Store) -> np.ndarray:
    """bool [episodes, K]: which skills each stored episode unlocked."""
    counts, ends = store.info("achievements"), store.fields().ends.tolist()
    return np.stack([counts.read(end, end + 1)[0] for end in ends]) > 0


def whole_episodes(store: Store) -> np.ndarray:
    """bool [episodes]: those of every deployment that are whole; all of them where none is."""
    found = np.concatenate([whole(deployment.episodes) for deployment in store.deployments])
    return found if found.any() else ~found


def whole(table: np.ndarray) -> np.ndarray:
    """bool [episodes]: all but those that were cut where the budget of their lane ended, whose chances were fewer.

    These are the ones after which their lane has no next episode. In a dataset of Minari that was not exported from
    here all episodes are of one lane, so that only its last can be known to be cut.
    """
    keys = np.stack([table["explorer"], table["lane"], table["episode"]], 1)
    has_next = (np.diff(keys, axis=0) == (0, 0, 1)).all(1)
    return table["terminated"] | np.append(has_next, False)
