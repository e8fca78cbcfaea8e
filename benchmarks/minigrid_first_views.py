"""What can a z say of FourRooms in one word? World models of first views alone, with independent and joint priors.

A first view has nothing before it: all that a model can do is to know what views there are. One view in ten shows the
goal. How many nats does a view cost, how often does a view that is drawn from the prior show a goal, and does the
posterior recognise the goal that is there? One sequence is one row, so that this takes minutes on a CPU.

    python benchmarks/minigrid_first_views.py --out results/first_views.json
"""

import json
import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from minigrid_foresight import GOAL, chance_of_goal

from cascade.config import OptimizerConfig, WorldConfig
from cascade.envs import opened, spec_of
from cascade.nn.learner import Learner, repeat
from cascade.presets import preset
from cascade.run.machine import describe
from cascade.types import Batch
from cascade.world import model
from cascade.world.model import WorldModel

CHUNK = 50
CASES = (
    (16, 16, "independent"),
    (8, 64, "independent"),
    (4, 128, "independent"),
    (16, 16, "joint"),
    (8, 64, "joint"),
    (4, 128, "joint"),
    (16, 32, "joint"),
    (32, 32, "joint"),
)
"""categoricals, classes and prior"""


@dataclass(frozen=True)
class Args:
    """World models of first views."""

    out: Path
    """JSON to write"""
    steps: int = 6_000
    """gradient steps of each"""
    batch: int = 256
    """views in a batch"""
    views: int = 30_000
    """different first views"""
    held_out: int = 5_000
    """how many of those are not trained on"""


def first_views(count: int) -> dict[str, np.ndarray]:
    """The observations after so many resets."""
    with opened(preset("minigrid-fourrooms").env) as env:
        found = [env.reset(seed).obs for seed in range(count)]
    return {name: np.stack([obs[name] for obs in found])[:, None] for name in found[0]}


def as_batch(obs: dict[str, jax.Array]) -> Batch:
    """Sequences of one row."""
    shape = next(iter(obs.values())).shape[:2]
    return Batch(obs, jnp.zeros(shape, jnp.int32), jnp.ones(shape, bool), jnp.zeros(shape, bool))


@partial(jax.jit, static_argnames="size", donate_argnums=0)
def train(
    learner: Learner[WorldModel], views: Batch, key: jax.Array, size: int
) -> tuple[Learner[WorldModel], dict[str, jax.Array]]:
    """CHUNK gradient steps on batches of `size` views."""

    def body(
        learner: Learner[WorldModel], key: jax.Array
    ) -> tuple[Learner[WorldModel], dict[str, jax.Array]]:
        choose, draw = jax.random.split(key)
        index = jax.random.randint(choose, (size,), 0, len(views.is_first))
        learner, _, metrics = model.step(learner, jax.tree.map(lambda x: x[index], views), draw)
        return learner, metrics

    return repeat(body, learner, jax.random.split(key, CHUNK))


@jax.jit
def examine(world: WorldModel, views: Batch, key: jax.Array) -> dict[str, jax.Array]:
    """Nats a view, and the chance of a goal in views from the prior and from the posterior."""
    first, second = jax.random.split(key)
    _, (states, metrics) = model.loss(world, views, first)
    shown = (views.obs["grid"][..., 0] == GOAL).any((-1, -2))
    drawn = world.rssm.draw(states.deter, world.rssm.noise(second, *shown.shape))
    recognised = chance_of_goal(world, states.feature)
    return {
        "loss": metrics["loss"],
        "kl": metrics["kl"],
        "view": metrics["loss/grid"],
        "goals": shown.mean(),
        "goals_drawn": chance_of_goal(world, jnp.concatenate([states.deter, drawn], -1)).mean(),
        "goals_recognised": recognised.mean(where=shown),
        "goals_made_up": recognised.mean(where=~shown),
    }


def settings(stoch: int, classes: int, prior: Any) -> WorldConfig:
    """The preset's, small and in float32; h, which is the same for every first view, needs hardly anything."""
    config = preset("minigrid-fourrooms").world
    small = replace(config, deter=64, hidden=256, mlp_units=256, unroll=1, precision="float32")
    small = replace(small, optimizer=OptimizerConfig(lr=1e-3, clip=5.0))
    return replace(small, stoch=stoch, classes=classes, prior=prior)


def main(args: Args) -> None:
    env = preset("minigrid-fourrooms").env
    obs = {name: jnp.asarray(value) for name, value in first_views(args.views).items()}
    seen, new = (
        as_batch({name: value[part] for name, value in obs.items()})
        for part in (slice(None, -args.held_out), slice(-args.held_out, None))
    )
    document: dict[str, Any] = {
        "command": f"python benchmarks/minigrid_first_views.py --out {args.out}",
        "machine": describe(),
        "settings": {name: value for name, value in asdict(args).items() if name != "out"},
        "models": [],
    }
    for stoch, classes, prior in CASES:
        config, began = settings(stoch, classes, prior), time.perf_counter()
        key = jax.random.key(0)
        learner = Learner.create(WorldModel(spec_of(env), config, key=key), config.optimizer)
        curve = []
        for step in range(0, args.steps, CHUNK):
            learner, _ = train(learner, seen, jax.random.fold_in(key, step), args.batch)
            if (step + CHUNK) % 500 == 0:
                found = {
                    name: float(f"{float(x):.4g}") for name, x in examine(learner.model, new, key).items()
                }
                curve.append({"step": step + CHUNK} | found)
        print(stoch, classes, prior, f"{time.perf_counter() - began:.0f} s", curve[-1], flush=True)
        document["models"].append({"stoch": stoch, "classes": classes, "prior": prior, "held_out": curve})
        args.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(tyro.cli(Args))
