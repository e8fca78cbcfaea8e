r"""What makes explorers cover FourRooms? Populations trained in the same world model, sent to the same levels.

    python benchmarks/ablations.py --seeds 1-5 --out results/defaults.json
    python benchmarks/ablations.py --seeds 1-5 --likelihood categorical --only cascade pp2e p2e \
        --out results/classes.json
    python benchmarks/ablations.py --seeds 1-5 --explorer-steps 240 960 3840 \
        --only cascade 'weight 0.3' pp2e p2e --out results/longer.json

For each seed: one random deployment, a world model and an ensemble trained on it, and then one population after
another, each with one setting changed, all from the same weights and on the same draws. Each is sent into levels
that nothing is reported on, since defaults are chosen by this, with as many episodes as the others, split over its
explorers. Settings are the demo's, with a wider ensemble and longer training. Seeds that the record holds already are
not measured again.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import tyro
from minigrid_diversity import random_data

from cascade.config import EnvConfig, ExploreConfig, RunConfig
from cascade.data.sampler import make_sampler
from cascade.data.store import Store
from cascade.deploy import RandomPolicy
from cascade.explore import population
from cascade.explore.disagreement import Ensemble
from cascade.explore.policy import PopulationPolicy
from cascade.metrics import aggregate, coverage, diversity
from cascade.presets import preset
from cascade.run.machine import describe
from cascade.run.measure import held_out_episodes, whereabouts
from cascade.run.phases import Models, create_models, explorer_phase, model_phase, settling_phase
from cascade.seeds import Seeds, format_seeds
from cascade.types import Policy

CHUNK = 8
TUNING_LEVELS = 1_000  # the number of the first; results are reported on the levels from 0
train = jax.jit(model_phase, donate_argnums=0)
settle = jax.jit(settling_phase, static_argnames="span", donate_argnums=0)
improve = jax.jit(explorer_phase, static_argnames="config", donate_argnums=0)
CHANGES: dict[str, dict[str, Any]] = {
    "cascade": {},
    "pp2e": {"weight": 0.0},
    "p2e": {"weight": 0.0, "population": 1},
    "weight 0.1": {"weight": 0.1},
    "weight 0.3": {"weight": 0.3},
    "weight 0.5": {"weight": 0.5},
    "weight 0.8": {"weight": 0.8},
    "divided, not centred": {"normalize": "running"},
    "raw terms": {"normalize": "none"},
    "final state": {"embedding": "final"},
    "all pairs": {"diversity": "distance"},
    "population 2": {"population": 2},
    "population 5": {"population": 5},
    "population 10": {"population": 10},
    "64 starts": {"starts": 64},
    "entropy 0.04": {"entropy": 0.04},
    "entropy 0.16": {"entropy": 0.16},
    "standard deviation": {"measure": "std"},
}
"""Settings that differ from the preset, by the name of the population."""


@dataclass(frozen=True)
class Args:
    """Coverage after one deployment, one setting changed at a time."""

    out: Path
    """JSON to write"""
    seeds: Seeds = tuple(range(1, 6))
    """seeds"""
    steps: int = 40_000
    """environment steps of the random deployment"""
    model_steps: int = 4_000
    """gradient steps of the world model"""
    settle: int = 1_600
    """gradient steps of the ensemble alone, after the world model's"""
    explorer_steps: tuple[int, ...] = (240,)
    """gradient steps of the explorers; with several they are sent off after each"""
    episodes: int = 10
    """episodes in each of the held-out levels"""
    likelihood: Literal["gaussian", "categorical"] = "gaussian"
    """what the ensemble's members say of the next z"""
    only: tuple[str, ...] = ()
    """names of the populations; without this all of them"""


def changed(config: RunConfig, changes: dict[str, Any]) -> RunConfig:
    """The settings of one population."""
    plain = {name: value for name, value in changes.items() if name not in ("starts", "entropy", "measure")}
    own = {name: value for name, value in changes.items() if name in ("starts", "entropy")}
    agent = replace(config.explore.agent, **own)
    return replace(
        config,
        explore=replace(config.explore, agent=agent, **plain),
        ensemble=replace(config.ensemble, measure=changes.get("measure", config.ensemble.measure)),
    )


def learn(config: RunConfig, store: Store, seed: int, steps: int) -> Models:
    """The models that all populations are trained in."""
    key = jax.random.key(seed)
    sampler = make_sampler(store.fields(), config.sample, jax.random.fold_in(key, 0))
    models = jax.jit(partial(create_models, store.spec, config))(key=jax.random.fold_in(key, 1))
    for step in range(0, steps, CHUNK):
        chunk = sampler.chunk(step, CHUNK)
        models, metrics = train(models, chunk, jnp.int32(step), jax.random.fold_in(key, 2))
    print(f"  world model loss {float(metrics['loss']):.2f}", flush=True)
    span = (steps, config.ensemble.settle)
    for step in range(steps, sum(span), CHUNK):
        chunk = sampler.chunk(step, CHUNK)
        models, _ = settle(models, chunk, jnp.int32(step), jax.random.fold_in(key, 2), span=span)
    return models


def measuring(models: Models, config: RunConfig) -> Models:
    """The same ensemble with this measure of disagreement."""
    old = models.ensemble.model
    actions = models.world.model.action.size
    blank = Ensemble(config.world, actions, config.ensemble, key=jax.random.key(0))
    return eqx.tree_at(
        lambda m: m.ensemble.model, models, eqx.tree_at(lambda e: e.members, blank, old.members)
    )


def explore(
    config: ExploreConfig, run: RunConfig, models: Models, store: Store, seed: int, stops: Sequence[int]
) -> Iterator[Policy]:
    """A population as it is after so many steps."""
    key = jax.random.key(seed)
    sampler = make_sampler(store.fields(), run.sample, jax.random.fold_in(key, 5))
    same = replace(config, weight=0.0)  # an input of the compiled step, not part of its program
    create = jax.jit(partial(population.create, run.world, store.spec.action, config))
    explorers = create(key=jax.random.fold_in(key, 3))
    for step in range(0, max(stops), CHUNK):
        explorers, _ = improve(
            explorers,
            models,
            sampler.chunk(step, CHUNK),
            jnp.float32(config.weight),
            jnp.int32(step),
            jax.random.fold_in(key, 4),
            config=same,
        )
        if step + CHUNK in stops:
            actors = jax.tree.map(jnp.copy, explorers.agents.actor.model)  # the next step reuses their memory
            yield PopulationPolicy(models.world.model, actors)


def visited(policy: Policy, config: RunConfig, store: Store, seed: int) -> dict[str, float]:
    """What the population does in the held-out levels."""
    episodes = held_out_episodes(policy, config, seed)
    arrays = whereabouts(episodes, config, store.spec)
    cells = [len(np.unique(episode.info["agent_pos"], axis=0)) for episode in episodes]
    found = {
        "coverage": coverage.coverage(arrays["visits"], arrays["reachable"]),
        "cells_per_episode": float(np.mean(cells)),
        "deployed_distance": diversity.population_diversity(arrays["distance"]),
        "success": float(np.mean([episode.terminated for episode in episodes])),
    }
    return {name: float(f"{value:.5g}") for name, value in found.items()}


def one(args: Args, config: RunConfig, seed: int) -> dict[str, dict[str, float]]:
    """Every population of one seed."""
    folder = args.out.with_suffix(f".seed-{seed}")
    store = Store.open(folder) if (folder / "deploy-000").exists() else random_data(config, folder, seed)
    models = learn(config, store, seed, args.model_steps)
    found = {
        "random": visited(RandomPolicy(store.spec.action), replace(config, method="random"), store, seed)
    }
    print(f"  random: {found['random']}", flush=True)
    for name in args.only or CHANGES:
        began, own = time.perf_counter(), changed(config, CHANGES[name])
        stops = sorted(args.explorer_steps)
        policies = explore(own.explore, own, measuring(models, own), store, seed, stops)
        for number, policy in enumerate(policies):
            full = f"{name}, {stops[number]} steps" if number else name
            found[full] = visited(policy, own, store, seed)
            print(f"  {full}: {found[full]}  {time.perf_counter() - began:.0f} s", flush=True)
    return found


def summary(seeds: dict[str, dict[str, dict[str, float]]]) -> dict[str, dict[str, Any]]:
    """Means over seeds with bootstrap intervals, and of coverage the differences from the default, seed by seed."""
    names = [name for name in next(iter(seeds.values())) if all(name in found for found in seeds.values())]
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        found[name] = {}
        for metric in ("coverage", "cells_per_episode", "deployed_distance", "success"):
            values = np.array([[own[name][metric]] for own in seeds.values()])
            found[name][metric] = [float(f"{x:.4g}") for x in aggregate.mean_interval(values)]
        gaps = np.array([[own[name]["coverage"] - own["cascade"]["coverage"]] for own in seeds.values()])
        found[name]["coverage_less_default"] = [float(f"{x:.4g}") for x in aggregate.mean_interval(gaps)]
    return found


def write(path: Path, result: dict[str, Any]) -> None:
    """The record so far."""
    result["summary"] = summary(result["seeds"])
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def refuse_misfits(args: Args, settings: dict[str, Any], stored: dict[str, Any]) -> None:
    """What could not be compared, or not be told apart in the record, said before anything is trained."""
    if args.only and "cascade" not in args.only:
        raise SystemExit("--only: the default, cascade, must be among them")
    if any(steps % CHUNK for steps in args.explorer_steps):
        raise SystemExit(f"--explorer-steps: expected multiples of {CHUNK}")
    other = [name for name in settings if name != "seeds" and stored.get(name) != settings[name]]
    if stored and other:
        raise SystemExit(f"{args.out}: was measured with another {', '.join(other)}; choose another --out")


def main(args: Args) -> None:
    config = preset("demo")
    config = replace(
        config,
        env=EnvConfig("minigrid:FourRooms-v0", observation="grid"),
        deploy=replace(config.deploy, steps=args.steps),
        ensemble=replace(config.ensemble, units=512, settle=args.settle, likelihood=args.likelihood),
        measure=replace(config.measure, episodes=args.episodes, first=TUNING_LEVELS),
    )
    result: dict[str, Any] = {"seeds": {}}
    if args.out.exists():
        result = json.loads(args.out.read_text(encoding="utf-8"))
    seeds = tuple(sorted({*args.seeds, *map(int, result["seeds"])}))
    settings = json.loads(json.dumps(vars(args) | {"seeds": seeds, "out": args.out.name, "preset": "demo"}))
    refuse_misfits(args, settings, result.get("settings", {}))
    command = f"python benchmarks/ablations.py --seeds {format_seeds(seeds)} --out results/{args.out.name}"
    if args.likelihood != "gaussian":
        command += f" --likelihood {args.likelihood}"
    if len(args.explorer_steps) > 1:
        command += " --explorer-steps" + "".join(f" {steps}" for steps in args.explorer_steps)
    if args.only:
        command += " --only" + "".join(f" '{name}'" for name in args.only)
    result |= {
        "command": command,
        "machine": describe(),
        "settings": settings,
        "changes": CHANGES,
    }
    for seed in sorted({*args.seeds} - set(map(int, result["seeds"]))):
        print(f"seed {seed}", flush=True)
        result["seeds"][str(seed)] = one(args, config, seed)
        write(args.out, result)
    for name, found in result["summary"].items():
        print(
            f"{name:24s} coverage {found['coverage']}  against the default {found['coverage_less_default']}"
        )


if __name__ == "__main__":
    main(tyro.cli(Args))
