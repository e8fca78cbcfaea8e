"""Do CASCADE's explorers really go to different places in MiniGrid, and PP2E's less so?

For each seed: one random deployment, a world model and ensemble trained on it, then two populations
trained in that model from the same initial weights on the same draws, one with λ = 0 (PP2E), one with the cascade.
Both are sent into the same levels, and explorers are compared level by level: the total variation between the cells
they visited, and the distance between where they ended.

    python benchmarks/minigrid_diversity.py --seeds 0-5 --out results/minigrid_diversity.json
"""

import json
import tempfile
import time
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from cascade.config import RunConfig
from cascade.data.journal import Journal
from cascade.data.sampler import make_sampler
from cascade.data.store import Store
from cascade.deploy import Plan, RandomPolicy, collect, vectorise
from cascade.envs import InProcess, spec_of
from cascade.explore import population
from cascade.explore.policy import PopulationPolicy
from cascade.metrics.aggregate import mean_interval
from cascade.presets import preset
from cascade.run.machine import describe
from cascade.run.phases import create_models, explorer_phase, model_phase
from cascade.seeds import Seeds

CHUNK = 8


@dataclass(frozen=True)
class Args:
    """Diversity of deployed trajectories, CASCADE against PP2E."""

    out: Path
    """JSON to write"""
    seeds: Seeds = tuple(range(6))
    """seeds"""
    env: str = "minigrid:Empty-8x8-v0"
    """environment"""
    weight: float = 0.5
    """the cascade's λ"""
    diversity: str = "distance"
    """measure of diversity"""
    levels: int = 24
    """levels that every explorer is sent into"""
    model_steps: int = 400
    """gradient steps of the world model"""
    explorer_steps: int = 320
    """gradient steps of the explorers"""


def random_data(config: RunConfig, folder: Path, seed: int) -> Store:
    """The first deployment."""
    spec = spec_of(config.env)
    plan = Plan.of(config.deploy, seed=seed, deployment=0)
    with vectorise(config.env, config.deploy, plan) as envs:
        collect(RandomPolicy(spec.action), envs, Journal(folder, 0, spec), plan, config.deploy)
    return Store.open(folder)


def train(config: RunConfig, store: Store, seed: int, args: Args):
    """The world model, and a population for each weight in turn."""
    spec, key = spec_of(config.env), jax.random.key(seed)
    sampler = make_sampler(store.fields(), config.sample, jax.random.fold_in(key, 0))
    models = jax.jit(partial(create_models, spec, config))(key=jax.random.fold_in(key, 1))
    run = jax.jit(model_phase, donate_argnums=0)
    for step in range(0, args.model_steps, CHUNK):
        chunk = sampler.chunk(step, CHUNK)
        models, metrics = run(models, chunk, jnp.int32(step), jax.random.fold_in(key, 2))
    improve = jax.jit(partial(explorer_phase, config=config.explore), donate_argnums=0)
    populations = {}
    for method, weight in (("pp2e", 0.0), ("cascade", args.weight)):
        create = jax.jit(partial(population.create, config.world, spec.action, config.explore))
        explorers = create(key=jax.random.fold_in(key, 3))
        for step in range(0, args.explorer_steps, CHUNK):
            chunk = sampler.chunk(step, CHUNK)
            explorers, seen = improve(
                explorers, models, chunk, jnp.float32(weight), jnp.int32(step), jax.random.fold_in(key, 4)
            )
        populations[method] = explorers
        print(f"  {method}: entropy {np.asarray(seen['entropy']).round(2)}", flush=True)
    print(f"  world model loss {float(metrics['loss']):.2f}", flush=True)
    return models, populations


def visits(config: RunConfig, models, explorers, levels: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells visited [P, levels, 19, 19] and last positions [P, levels, 2]."""
    size = explorers.agents.updates.shape[0]
    lanes = np.arange(size * levels)
    policy = PopulationPolicy(models.world.model, explorers.agents.actor.model)
    cells = np.zeros((len(lanes), 19, 19))
    with InProcess(config.env, len(lanes)) as envs:
        level = 10_000 + 1000 * seed + lanes % levels
        envs.send(lanes, np.zeros(len(lanes), np.int32), level)
        tick, memory, t = envs.wait(lanes), policy.initial(len(lanes)), 0
        alive, last = np.ones(len(lanes), bool), tick.info["agent_pos"].copy()
        while alive.any():
            positions = tick.info["agent_pos"]
            where = np.flatnonzero(alive)
            cells[where, positions[where, 0], positions[where, 1]] += 1
            last[where] = positions[where]
            keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), t), len(lanes))
            memory, actions = policy.act(memory, tick.obs, np.full(len(lanes), t == 0), keys)
            alive &= ~(tick.terminated | tick.truncated)
            again = np.where(alive, -1, level)  # a finished lane idles in a fresh episode that is not counted
            envs.send(lanes, actions, again)
            tick, t = envs.wait(lanes), t + 1
    return cells.reshape(size, levels, 19, 19), last.reshape(size, levels, 2)


def diversity(cells: np.ndarray, last: np.ndarray) -> dict[str, float]:
    """Over all pairs of explorers and all levels: total variation of visits, and distance between last cells."""
    share = cells / cells.sum((2, 3), keepdims=True)
    pairs = list(combinations(range(len(share)), 2))
    variation = [0.5 * np.abs(share[i] - share[j]).sum((1, 2)).mean() for i, j in pairs]
    distance = [np.abs(last[i].astype(int) - last[j]).sum(-1).mean() for i, j in pairs]
    covered = (cells.sum(0) > 0).sum((1, 2)).mean()
    return {
        "visit_variation": float(np.mean(variation)),
        "final_distance": float(np.mean(distance)),
        "cells_covered": float(covered),
    }


def main(args: Args) -> None:
    config = preset("demo")
    explore = replace(config.explore, weight=args.weight, diversity=args.diversity)
    env = replace(config.env, id=args.env, time_limit=100)
    config = replace(config, env=env, explore=explore, deploy=replace(config.deploy, steps=8_000))
    result: dict = {
        "machine": describe(),
        "settings": vars(args) | {"seeds": list(args.seeds), "preset": "demo"},
    }
    result["settings"]["out"] = args.out.name
    result["seeds"] = {}
    for seed in args.seeds:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            models, populations = train(config, random_data(config, Path(folder), seed), seed, args)
        result["seeds"][seed] = {
            method: diversity(*visits(config, models, explorers, args.levels, seed))
            for method, explorers in populations.items()
        }
        print(f"seed {seed}: {result['seeds'][seed]}  {time.perf_counter() - start:.0f} s", flush=True)
    for measure in ("visit_variation", "final_distance", "cells_covered"):
        gains = np.array([s["cascade"][measure] - s["pp2e"][measure] for s in result["seeds"].values()])
        mean, *interval = mean_interval(gains[:, None])
        result[measure] = {"mean_gain": mean, "interval": interval}
        print(measure, result[measure], flush=True)
    args.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Args))
