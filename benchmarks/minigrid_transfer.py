"""Does a policy trained only on stored random data and in imagination solve MiniGrid's Empty-8x8 at once?

For each seed: one random deployment, a world model trained on it without any reward, then zero-shot transfer: a
reward head on the recorded labels, a behaviour policy in imagination, and its success in held-out episodes.

    python benchmarks/minigrid_transfer.py --seeds 0-2 --out results/minigrid_transfer.json
"""

import json
import tempfile
import time
from dataclasses import dataclass, replace
from functools import partial
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
from cascade.envs import spec_of
from cascade.presets import preset
from cascade.run.machine import describe
from cascade.run.phases import create_models, model_phase
from cascade.run.transfer import evaluate, transfer
from cascade.seeds import Seeds
from cascade.world.model import WorldModel

CHUNK = 8


@dataclass(frozen=True)
class Args:
    """Zero-shot success from random data."""

    out: Path
    """JSON to write"""
    seeds: Seeds = (0, 1, 2)
    """seeds"""
    env: str = "minigrid:Empty-8x8-v0"
    """environment"""
    steps: int = 40_000
    """environment steps of the random deployment"""
    model_steps: int = 1_600
    """gradient steps of the world model"""
    prioritize_ends: float = 0.5
    """fraction of the world model's sequences that contain the end of an episode"""
    discount_scale: float = 10.0
    """weight of the discount head's loss: where an episode ends is all that tells the goal from other corners"""
    reward_steps: int = 800
    """gradient steps of the reward head"""
    behaviour_steps: int = 600
    """gradient steps of the behaviour policy"""


def settings(args: Args) -> RunConfig:
    """The demo preset in this world, with the entropy bonus that it had when this was measured."""
    config = preset("demo")
    agent = replace(config.transfer.agent, entropy=1e-2)
    return replace(
        config,
        env=replace(config.env, id=args.env, time_limit=0),
        deploy=replace(config.deploy, steps=args.steps),
        world=replace(config.world, discount_scale=args.discount_scale),
        sample=replace(config.sample, prioritize_ends=args.prioritize_ends),
        transfer=replace(
            config.transfer,
            reward_steps=args.reward_steps,
            behaviour_steps=args.behaviour_steps,
            agent=agent,
        ),
    )


def random_data(config: RunConfig, folder: Path, seed: int) -> Store:
    """The first deployment."""
    spec = spec_of(config.env)
    plan = Plan.of(config.deploy, seed=seed, deployment=0)
    with vectorise(config.env, config.deploy, plan) as envs:
        collect(RandomPolicy(spec.action), envs, Journal(folder, 0, spec), plan, config.deploy)
    return Store.open(folder)


def learn_world(config: RunConfig, store: Store, seed: int, steps: int) -> WorldModel:
    """The world model after `steps` steps; no label is opened."""
    key = jax.random.key(seed)
    sampler = make_sampler(store.fields(), config.sample, jax.random.fold_in(key, 0))
    models = jax.jit(partial(create_models, store.spec, config))(key=jax.random.fold_in(key, 1))
    run = jax.jit(model_phase, donate_argnums=0)
    for step in range(0, steps, CHUNK):
        models, metrics = run(models, sampler.chunk(step, CHUNK), jnp.int32(step), jax.random.fold_in(key, 2))
    print(f"  world model loss {float(metrics['loss']):.2f}", flush=True)
    return models.world.model


def chance(config: RunConfig, store: Store) -> float:
    """Success of random actions in the same episodes."""
    played = evaluate(RandomPolicy(store.spec.action), config, 1, jax.random.key(0))
    return float((played.returns["reward"][played.finished] > 0).mean())


def one(args: Args, seed: int) -> dict:
    """Everything of one seed."""
    config, began = settings(args), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        store = random_data(config, Path(folder), seed)
        world = learn_world(config, store, seed, args.model_steps)
        trained = time.perf_counter()
        outcome = transfer(world, store, ["reward"], config, store.spec, seed)
        random = chance(config, store)
    result = outcome.results["reward"]
    return {
        "success": result.success,
        "return": result.mean_return,
        "episodes": len(result.returns),
        "steps": float(np.mean(result.steps)),
        "random_success": random,
        "rewarding_rows": result.labels.nonzero,
        "rows": result.labels.rows,
        "reward_head": result.reward_head,
        "seconds": {"data_and_world": round(trained - began, 1)}
        | {name: round(value, 1) for name, value in outcome.seconds.items()},
    }


def main(args: Args) -> None:
    result: dict = {
        "machine": describe(),
        "settings": vars(args) | {"seeds": list(args.seeds), "preset": "demo", "out": args.out.name},
        "seeds": {},
    }
    for seed in args.seeds:
        result["seeds"][seed] = one(args, seed)
        print(f"seed {seed}: {result['seeds'][seed]}", flush=True)
        result["success"] = float(np.mean([entry["success"] for entry in result["seeds"].values()]))
        args.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Args))
