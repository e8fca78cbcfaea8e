"""Does a world model expect a goal where it has not been? Of a MiniGrid run, in episodes it learned and in new ones.

For every step before the goal has been in sight: how many cells does the next view show for the first time, how often
does it show the goal, how often does a view that is drawn from the prior, and how often one drawn from the posterior,
which has seen it? A policy that is trained in imagination can only learn to search if the first two agree. And how
many of z's categoricals does a goal change, how likely is the rarest of those changes, how likely are all of them?

    cascade run minigrid-fourrooms --method random --deployments 1 --deploy.steps 1000000 --out runs/foresight
    python benchmarks/minigrid_foresight.py --run runs/foresight --out runs/foresight.json

New episodes are of varied random actions from starts that no result is reported on.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from minigrid.core.constants import OBJECT_TO_IDX

import cascade
from cascade.data.store import Store
from cascade.deploy.random_policy import VariedPolicy
from cascade.deploy.rollout import rollout, stage
from cascade.envs.minigrid import UNSEEN
from cascade.nn.precision import cast
from cascade.run.api import Run
from cascade.run.machine import describe
from cascade.run.measure import HELD_OUT
from cascade.types import Batch
from cascade.world.model import WorldModel

GOAL, FLOOR = OBJECT_TO_IDX["goal"], (OBJECT_TO_IDX["empty"], 0, 0)
FIRST = 2_000  # number of the first start: results are reported on those from 0, settings chosen on those from 1,000
BINS = (0, 1, 4, 8, 16, 50)
"""numbers of new cells that are counted together"""
DRAWS = 12
SIDE = 64  # larger than any level with the cells that a view shows beyond its edge
AHEAD = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])


@dataclass(frozen=True)
class Args:
    """What a model expects of places it has not seen."""

    run: Path
    """a MiniGrid run whose worlds have a goal"""
    out: Path
    """JSON to write"""
    seed: int | None = None
    """one of its seeds; the first without this"""
    episodes: int = 600
    """of each kind"""


class Steps(NamedTuple):
    """Episodes as one batch, padded; and what their views show."""

    batch: Batch
    news: np.ndarray
    """int [N, T]: cells that the view shows for the first time"""
    open: np.ndarray
    """bool [N, T]: the goal had not been in sight before, and this is not the first view"""
    sighted: np.ndarray
    """bool [N, T]: now it is, for the first time"""


Rows = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray]
"""observations, actions, positions and directions of one episode"""


def stored(store: Store, count: int) -> list[Rows]:
    """Episodes that the model learned from."""
    fields, position, direction = store.fields(), store.info("agent_pos"), store.info("agent_dir")
    chosen = np.random.default_rng(0).choice(fields.episodes, min(count, fields.episodes), replace=False)
    spans = [(int(fields.starts[i]), int(fields.ends[i]) + 1) for i in chosen]
    return [
        (
            {name: column.read(*span) for name, column in fields.obs.items()},
            fields.action.read(*span),
            position.read(*span),
            direction.read(*span),
        )
        for span in spans
    ]


def fresh(run: Run, count: int) -> list[Rows]:
    """Episodes of other levels."""
    starts = [HELD_OUT + FIRST + i for i in range(count)]
    with stage(run.settings.env, run.settings.deploy, count) as envs:
        played = rollout(VariedPolicy(run.spec.action), envs, starts)
    return [(dict(e.obs), e.action, e.info["agent_pos"], e.info["agent_dir"]) for e in played]


def news(grid: np.ndarray, position: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """How many cells each view of an episode shows for the first time; the agent's own cell is known to it."""
    size = grid.shape[1]
    across, depth = np.meshgrid(np.arange(size) - size // 2, size - 1 - np.arange(size), indexing="ij")
    known, found = np.zeros((SIDE, SIDE), bool), []
    for view, here, way in zip(grid, position.astype(int) + size, direction.tolist(), strict=True):
        (dx, dy), seen = AHEAD[way], view[..., 0] != UNSEEN
        x, y = here[0] + dx * depth - dy * across, here[1] + dy * depth + dx * across
        found.append(int((seen & ~known[x, y]).sum()))
        known[x[seen], y[seen]] = True
        known[here[0], here[1]] = True
    return np.array(found)


def lay_out(episodes: Sequence[Rows]) -> Steps:
    """All episodes side by side."""
    count, length = len(episodes), max(len(action) for _, action, _, _ in episodes)

    def padded(parts: list[np.ndarray]) -> np.ndarray:
        out = np.zeros((count, length, *parts[0].shape[1:]), parts[0].dtype)
        for row, part in zip(out, parts, strict=True):
            row[: len(part)] = part
        return out

    obs = {name: padded([seen[name] for seen, *_ in episodes]) for name in episodes[0][0]}
    there = (obs["grid"][..., 0] == GOAL).any((2, 3))
    before = np.cumsum(there, 1) - there > 0
    inside = padded([np.arange(len(action)) > 0 for _, action, _, _ in episodes])
    first = np.zeros((count, length), bool)
    first[:, 0] = True
    batch = Batch(
        obs={name: jnp.asarray(value) for name, value in obs.items()},
        action=jnp.asarray(padded([action for _, action, _, _ in episodes])),
        is_first=jnp.asarray(first),
        is_terminal=jnp.zeros((count, length), bool),
    )
    shown = padded([news(seen["grid"], where, way) for seen, _, where, way in episodes])
    return Steps(batch, shown, inside & ~before, inside & there & ~before)


def chance_of_goal(world: WorldModel, feature: jax.Array) -> jax.Array:
    """How likely the view that is decoded from [N, T, F] shows a goal anywhere."""
    decoder = world.decoder.parts["grid"]
    objects = decoder.channels(decoder(feature))[0]
    chance = jax.nn.softmax(objects, -1)[..., GOAL]
    return 1.0 - jnp.prod(1.0 - chance, (-1, -2))


@jax.jit
def expectations(world: WorldModel, batch: Batch) -> tuple[jax.Array, jax.Array, jax.Array]:
    """[N, T]: the chance of a goal in a view from the prior, in one from the posterior, and their KL."""
    shape, key = batch.is_first.shape, jax.random.key(0)
    states, posterior = world.observe(batch, world.rssm.noise(key, *shape))
    prior = world.rssm.prior(states)

    def draw(index: jax.Array) -> jax.Array:
        noise = world.rssm.noise(jax.random.fold_in(key, index), *shape)
        stoch = world.rssm.draw(states.deter, noise)
        return chance_of_goal(world, jnp.concatenate([states.deter, stoch], -1))

    expected = jax.lax.map(draw, jnp.arange(1, DRAWS + 1)).mean(0)
    return expected, chance_of_goal(world, states.feature), world.rssm.kl(posterior, prior)


@jax.jit
def classes(world: WorldModel, batch: Batch) -> tuple[jax.Array, jax.Array]:
    """[N, T, S]: the most likely class of each categorical, and [N, T, S, C] the prior's log-probabilities."""
    states, posterior = world.observe(batch, world.rssm.noise(jax.random.key(0), *batch.is_first.shape))
    shape = (*batch.is_first.shape, world.config.stoch, world.config.classes)
    prior = jax.nn.log_softmax(world.rssm.prior(states).reshape(shape), -1)
    return posterior.reshape(shape).argmax(-1), prior


def code_of_a_goal(world: WorldModel, steps: Steps) -> dict[str, float]:
    """What changes in z if the goal that comes into view were floor, and how likely the prior holds the change."""
    grid = np.array(steps.batch.obs["grid"])
    grid[steps.sighted[..., None, None] & (grid[..., 0] == GOAL)] = FLOOR
    without = Batch(
        steps.batch.obs | {"grid": jnp.asarray(grid)},
        steps.batch.action,
        steps.batch.is_first,
        steps.batch.is_terminal,
    )
    (shown, prior), (blank, _) = classes(world, steps.batch), classes(world, without)
    shown, blank, prior = (np.asarray(x)[steps.sighted] for x in (shown, blank, prior))
    changed, held = shown != blank, np.take_along_axis(prior, shown[..., None], -1)[..., 0]
    some = changed.any(1)
    if not some.any():
        return {"sightings": len(shown), "categoricals_changed": 0.0}
    likely = np.where(changed, held, 0.0)[some]
    return {
        "sightings": len(shown),
        "categoricals_changed": float(f"{changed.sum(1).mean():.3g}"),
        "prior_of_the_rarest": float(f"{np.exp(likely.min(1)).mean():.3g}"),
        "prior_of_all": float(f"{np.exp(likely.sum(1)).mean():.3g}"),
    }


def foresight(world: WorldModel, episodes: Sequence[Rows]) -> dict[str, Any]:
    """What comes, what is expected, and what is recognised, by the number of new cells."""
    steps = lay_out(episodes)
    expected, recognised, kl = (np.asarray(x) for x in expectations(world, steps.batch))
    rows = []
    for low, high in pairwise(BINS):
        chosen = steps.open & (steps.news >= low) & (steps.news < high)
        if not chosen.any():
            continue
        means = {"came": steps.sighted, "expected": expected, "recognised": recognised, "kl": kl}
        numbers = {name: float(f"{value[chosen].mean():.3g}") for name, value in means.items()}
        rows.append({"new_cells": [low, high - 1], "steps": int(chosen.sum())} | numbers)
    return {"episodes": len(episodes), "views": rows, "code": code_of_a_goal(world, steps)}


def main(args: Args) -> None:
    run = cascade.open(args.run)
    world = cast(run.world(args.seed), run.settings.world.precision)
    found = {
        "learned": foresight(world, stored(run.store(args.seed), args.episodes)),
        "new": foresight(world, fresh(run, args.episodes)),
    }
    command = f"python benchmarks/minigrid_foresight.py --run {args.run} --out {args.out}"
    settings = {
        "environment": run.settings.env.id,
        "stoch": world.config.stoch,
        "classes": world.config.classes,
        "prior": world.config.prior,
        "seed": run.seeds[0] if args.seed is None else args.seed,
    }
    document = {"command": command, "machine": describe(), "settings": settings} | found
    args.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    for kind, own in found.items():
        print(kind, own["code"])
        for row in own["views"]:
            print("  ", row)


if __name__ == "__main__":
    main(tyro.cli(Args))
