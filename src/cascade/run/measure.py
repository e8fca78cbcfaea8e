"""What is measured after every deployment: outside the budget, on held-out starts, and never learned from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cascade.config import EnvConfig, MeasureConfig, RunConfig
from cascade.data.store import Store
from cascade.deploy.rollout import film, rollout, stage
from cascade.envs import Vectoriser, opened
from cascade.envs.vectorise import LaneGroup
from cascade.metrics import coverage, diversity, scores
from cascade.report.predictions import shrink
from cascade.run.folder import Folder
from cascade.run.look import open_loop_picture
from cascade.run.places import places, unlocked, whole_episodes
from cascade.run.results import Record, record
from cascade.run.signals import Stop, heed
from cascade.run.snapshot import write_arrays
from cascade.run.train import acting_device
from cascade.run.watching import Note, looking
from cascade.specs import EnvSpec, Episode
from cascade.types import Batch, Policy
from cascade.world.model import WorldModel
from cascade.world.predict import held_out_loss

HELD_OUT = 1 << 30
"""Reset seed of the first held-out start. Deployments draw theirs at random from 31 bits."""
SAMPLE = 512
MEASURING = "measuring"
FRAMES, FRAME_SIDE, PICTURE_SIDE = 12, 96, 240
_held_out_loss = jax.jit(held_out_loss)


def held_out_starts(config: MeasureConfig) -> list[int]:
    """Reset seeds of the held-out starts: the same for every method, seed and deployment."""
    return [HELD_OUT + config.first + i for i in range(config.levels)]


def measure(
    folder: Folder,
    config: RunConfig,
    seed: int,
    deployment: int,
    policy: Policy,
    world: WorldModel,
    envs: LaneGroup | None = None,
    note: Note | None = None,
    stop: Stop | None = None,
) -> list[Record]:
    """All records of one seed after one deployment; the arrays that figures need are written beside them.

    `note` is told what could not be drawn. When `stop` says so it is `Interrupted`, and to be begun again.
    """
    heed(stop, MEASURING)
    store = folder.store(seed).upto(deployment)
    found = stored_measures(store)
    if config.measure.levels:
        with jax.default_device(acting_device(store.spec, config.deploy)):
            episodes = held_out_episodes(policy, config, seed, envs, stop)
        arrays = whereabouts(episodes, config, store.spec, note)
        if config.measure.pictures:
            arrays |= sights(episodes, config, store.spec, world, note, stop)
        found |= {name: float(value) for name, value in _numbers(episodes, arrays, world, config).items()}
        arrays |= places(episodes, store, config, held_out_starts(config.measure), note)
        write_arrays(folder.measures(seed, deployment), arrays)
    named = [(*_split(name), value) for name, value in found.items()]
    return [record(seed, deployment, metric, value, task) for metric, task, value in named]


def _split(name: str) -> tuple[str, str | None]:
    metric, _, task = name.partition("@")
    return metric, task or None


def stored_measures(store: Store) -> dict[str, Any]:
    """What the data hold so far; `metric@task` where a task is meant. Labels are opened here, and only here."""
    spec, fields = store.spec, store.fields()
    found: dict[str, Any] = {"episodes": fields.episodes, "steps": store.steps}
    for task in spec.tasks:
        rewards = store.labels(task).read()
        met = np.logical_or.reduceat(rewards > 0.0, fields.starts)
        # One that the budget cut counts where it had lost nothing: a piece of a costly episode is not the best.
        counts = whole_episodes(store) | (np.minimum.reduceat(rewards, fields.starts) >= 0.0)
        found |= {f"rewarding_episodes@{task}": int(met.sum())}
        found |= {f"maximum_return@{task}": float(np.add.reduceat(rewards, fields.starts)[counts].max())}
    rows = np.random.default_rng(0).choice(fields.rows, min(SAMPLE, fields.rows), replace=False).tolist()
    sample = {name: np.stack([column.read(i, i + 1)[0] for i in rows]) for name, column in fields.obs.items()}
    found["dataset_diversity"] = diversity.dataset_diversity(_vectors(sample, spec))
    if "achievements" in spec.info:
        done = unlocked(store)
        found["crafter_score"] = scores.crafter_score(scores.skill_success(done[whole_episodes(store)]))
        found["unique_skills"] = scores.unique_skills(done)
    return found


def measuring(config: RunConfig) -> AbstractContextManager[Vectoriser | None]:
    """The environments that every seed is measured in; nothing where nobody is sent anywhere."""
    if not config.measure.levels:
        return nullcontext()
    starts = config.measure.levels * max(_shares(config))
    return stage(config.env, config.deploy, starts, config.population)


def _shares(config: RunConfig) -> tuple[int, ...]:
    """Episodes of each explorer from each start."""
    return coverage.split_episodes(config.measure.episodes or config.explore.population, config.population)


def held_out_episodes(
    policy: Policy, config: RunConfig, seed: int, envs: LaneGroup | None = None, stop: Stop | None = None
) -> list[Episode]:
    """Equally many episodes from each held-out start for every method, split evenly over its explorers.

    The key of an episode is (explorer, number of the start, which of the explorer's episodes there).
    """
    if envs is None:
        with measuring(config) as own:
            return held_out_episodes(policy, config, seed, own, stop)
    levels, shares = config.measure.levels, _shares(config)
    played = rollout(
        policy,
        envs,
        held_out_starts(config.measure) * max(shares),
        population=config.population,
        seed=seed,
        limit=config.measure.steps,
        max_failures=config.deploy.max_failures,
        stop=stop,
    )
    heed(stop, MEASURING)
    kept = []
    for episode in played:
        again, level = divmod(episode.key.lane, levels)
        if again < shares[episode.key.explorer]:
            key = episode.key._replace(lane=level, episode=again)
            kept.append(
                Episode(key, episode.obs, episode.action, episode.labels, episode.info, episode.terminated)
            )
    return kept


def whereabouts(
    episodes: Sequence[Episode], config: RunConfig, spec: EnvSpec, note: Note | None = None
) -> dict[str, np.ndarray]:
    """Arrays of where explorers were, and of who differs from whom."""
    population, levels = config.population, config.measure.levels
    if not has_cells(config.env):
        distance = diversity.mean_distance(_visited(episodes, population, spec))
        return {"distance": distance.astype(np.float32)}
    arrays: dict[str, np.ndarray] = {}
    with looking("maps of the held-out levels, nor coverage", note):
        arrays["reachable"] = level_maps(config.env, config.measure)
    if config.measure.pictures:
        with looking("pictures of the held-out levels", note):
            arrays["pictures"] = level_pictures(config.env, config.measure)
    farthest = np.max([episode.info["agent_pos"].max(0) for episode in episodes], 0)
    shape = arrays["reachable"].shape[1:] if "reachable" in arrays else tuple((farthest + 1).tolist())
    visits, paths = _visits(episodes, population, levels, shape)
    distance = diversity.visit_distance(visits).astype(np.float32)
    return arrays | {"visits": visits, "paths": paths, "distance": distance}


def sights(
    episodes: Sequence[Episode],
    config: RunConfig,
    spec: EnvSpec,
    world: WorldModel,
    note: Note | None = None,
    stop: Stop | None = None,
) -> dict[str, np.ndarray]:
    """Arrays of what was seen: films of the explorers, where the world can be drawn, and an open-loop prediction
    beside the truth."""
    arrays: dict[str, np.ndarray] = {}
    with looking("films of the explorers", note):
        arrays["films"] = _films(episodes, config, config.population, stop)
    with looking("open-loop prediction", note):
        picture = open_loop_picture(world, episodes, spec)
        arrays |= {} if picture is None else {"open_loop": picture}
    return arrays


def _numbers(
    episodes: Sequence[Episode], arrays: dict[str, np.ndarray], world: WorldModel, config: RunConfig
) -> dict[str, float]:
    found = {"deployed_distance": diversity.population_diversity(arrays["distance"])}
    if "reachable" in arrays:
        found["coverage"] = coverage.coverage(arrays["visits"], arrays["reachable"])
    chunk = held_out_chunk(episodes, config)
    if chunk is not None:
        found["held_out_loss"] = float(_held_out_loss(world, chunk, jax.random.key(0))["loss"])
    return found


def has_cells(env: EnvConfig) -> bool:
    """Whether agents stand on cells of a map."""
    return env.id.startswith("minigrid:")


def level_maps(env: EnvConfig, config: MeasureConfig) -> np.ndarray:
    """Where agents can come to stand, bool [levels, width, height]."""
    from cascade.envs.minigrid import reachable_cells

    reachable = []
    with opened(env) as world:
        for start in held_out_starts(config):
            world.reset(start)
            reachable.append(reachable_cells(world))
        return np.stack(reachable)


def level_pictures(env: EnvConfig, config: MeasureConfig) -> np.ndarray:
    """The first levels as they are drawn, uint8 [levels, side, side, 3]."""
    drawn = []
    with opened(env) as world:
        for start in held_out_starts(config)[: config.pictures]:
            world.reset(start)
            drawn.append(shrink(world.render(), PICTURE_SIDE))
        return np.array(drawn, np.uint8)


def _visits(
    episodes: Sequence[Episode], population: int, levels: int, cells: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """How often each explorer stood where, and the way of its first episode in each level."""
    longest = max(len(episode) for episode in episodes) + 1
    visits = np.zeros((population, levels, *cells), np.uint32)
    paths = np.full((population, levels, longest, 2), -1, np.int16)
    for episode in episodes:
        explorer, level, again = episode.key
        places = episode.info["agent_pos"]
        np.add.at(visits[explorer, level], (places[:, 0], places[:, 1]), 1)
        if again == 0:
            paths[explorer, level, : len(places)] = places
    return visits, paths


def _visited(episodes: Sequence[Episode], population: int, spec: EnvSpec) -> np.ndarray:
    """Equally many visited observations of every explorer, as vectors [P, N, D]."""
    own: list[np.ndarray] = []
    for explorer in range(population):
        parts = [_vectors(e.obs, spec) for e in episodes if e.key.explorer == explorer]
        rows = np.concatenate(parts)
        own.append(rows[np.linspace(0, len(rows) - 1, SAMPLE).astype(int)])
    return np.stack(own)


def _vectors(obs: Mapping[str, np.ndarray], spec: EnvSpec) -> np.ndarray:
    """Observations as vectors: pixels from 0 to 1, symbols one-hot, numbers as they are."""
    parts = []
    for name, part in spec.observations.items():
        values = obs[name]
        if part.kind == "image":
            values = values[:, ::4, ::4].astype(np.float32) / 255.0
        elif part.kind == "grid":
            values = np.concatenate(
                [np.eye(size, dtype=np.float32)[values[..., i]] for i, size in enumerate(part.classes)], -1
            )
        parts.append(values.reshape(len(values), -1).astype(np.float32))
    return np.concatenate(parts, 1)


def _films(
    episodes: Sequence[Episode], config: RunConfig, population: int, stop: Stop | None = None
) -> np.ndarray:
    """FRAMES evenly spaced frames of each explorer's first episode from the first start."""
    films, start = [], held_out_starts(config.measure)[0]
    for explorer in range(population):
        heed(stop, MEASURING)
        episode = next(e for e in episodes if e.key[:2] == (explorer, 0))
        frames = film(config.env, start, episode.action[:-1], partial(shrink, side=FRAME_SIDE))
        films.append(frames[np.linspace(0, len(frames) - 1, FRAMES).round().astype(int)])
    return np.stack(films)


def held_out_chunk(episodes: Sequence[Episode], config: RunConfig) -> Batch | None:
    """Held-out rows as batches [K, B, T] as the model is trained on them; None if they are too few.

    They lie back to back as stored rows do, and the share `prioritize_starts` of the windows begins with an episode,
    or goes on with a long one where the window before ended.
    """
    length, batch, share = config.sample.length, config.sample.batch, config.sample.prioritize_starts
    first = np.concatenate([np.arange(len(e) + 1) == 0 for e in episodes])
    terminal = np.concatenate([(np.arange(len(e) + 1) == len(e)) & e.terminated for e in episodes])
    obs = {name: np.concatenate([e.obs[name] for e in episodes]) for name in episodes[0].obs}
    action = np.concatenate([e.action for e in episodes])
    count = min(4, len(action) // (length * batch))
    if not count:
        return None
    last, number = len(action) - length, np.arange(count * batch)
    tiles = [np.minimum(np.arange(0, len(e) + 1, length), max(len(e) + 1 - length, 0)) for e in episodes]
    begins = np.concatenate([b + tile for b, tile in zip(np.flatnonzero(first), tiles, strict=True)])
    begins = np.minimum(begins, last)
    at_start = np.floor((number + 1) * share) > np.floor(number * share)
    anywhere = np.linspace(0, last, len(number)).astype(int)
    starts = np.where(at_start, begins[np.linspace(0, len(begins) - 1, len(number)).astype(int)], anywhere)

    def windows(values: np.ndarray) -> jax.Array:
        cut = np.stack([values[start : start + length] for start in starts])
        return jnp.asarray(cut.reshape(count, batch, *cut.shape[1:]))

    is_first = windows(first).at[:, :, 0].set(True)
    return Batch(
        {name: windows(part) for name, part in obs.items()}, windows(action), is_first, windows(terminal)
    )
