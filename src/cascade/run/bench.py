"""What this machine does: environments, sampler, and the two training steps, as plain numbers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cascade.config import ExploreConfig, RunConfig
from cascade.explore import population
from cascade.run.flops import count_flops
from cascade.run.phases import create_models, explorer_phase, model_phase, model_step
from cascade.specs import EnvSpec, ObservationSpec
from cascade.types import Batch

Result = dict[str, Any]


def median_seconds(call: Callable[[], Any], repeats: int = 5) -> tuple[float, float]:
    """Median time of a call after a first one, and the time of that first one, compilation included."""
    start = time.perf_counter()
    jax.block_until_ready(call())
    first = time.perf_counter() - start
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - start)
    return float(np.median(times)), first


def matrix_rate(precision: str) -> float:
    """Operations per second of a large matrix product, on random numbers."""
    size = 8192 if jax.default_backend() == "gpu" else 1024
    a, b = (
        jax.random.normal(key, (size, size)).astype(precision) for key in jax.random.split(jax.random.key(0))
    )
    product = jax.jit(lambda a, b: a @ b)
    seconds, _ = median_seconds(lambda: product(a, b), repeats=20)
    return 2 * size**3 / seconds


def random_chunk(spec: EnvSpec, config: RunConfig, count: int) -> Batch:
    """Batches without structure, of the right shapes, on the device."""
    shape = (count, config.sample.batch, config.sample.length)
    keys = iter(jax.random.split(jax.random.key(1), 3 + len(spec.observations)))

    def part(obs: ObservationSpec) -> jax.Array:
        if obs.kind == "vector":
            return jax.random.normal(next(keys), (*shape, *obs.shape))
        top = min(obs.classes) if obs.classes else 256
        return jax.random.randint(next(keys), (*shape, *obs.shape), 0, top).astype(jnp.uint8)

    action = (
        jax.random.randint(next(keys), shape, 0, spec.action.size)
        if spec.action.kind == "discrete"
        else jax.random.uniform(next(keys), (*shape, spec.action.size), minval=-1.0)
    )
    first = jax.random.bernoulli(next(keys), 0.02, shape).at[..., 0].set(True)
    terminal = jax.random.bernoulli(next(keys), 0.01, shape)
    return Batch({name: part(obs) for name, obs in spec.observations.items()}, action, first, terminal)


def _seeded(function: Callable[..., Any], seeds: int) -> Callable[..., Any]:
    return jax.vmap(function) if seeds > 1 else function


def _stack(tree: Any, seeds: int) -> Any:
    return jax.tree.map(lambda x: jnp.stack([x] * seeds), tree) if seeds > 1 else tree


def world_model_step(spec: EnvSpec, config: RunConfig, *, per_call: int, seeds: int = 1) -> Result:
    """Time of one world-model step with its ensemble, `per_call` steps to a compiled call."""
    models = jax.jit(partial(create_models, spec, config))(key=jax.random.key(0))
    chunk, key = random_chunk(spec, config, per_call), jax.random.key(2)
    batch = jax.tree.map(lambda x: x[0], chunk)
    flops = seeds * count_flops(model_step, models, batch, key)
    phase = _seeded(lambda models, chunk: model_phase(models, chunk, jnp.int32(0), key), seeds)
    run = jax.jit(phase, donate_argnums=0)
    state, chunk = [_stack(models, seeds)], _stack(chunk, seeds)

    def call() -> Any:
        state[0], metrics = run(state[0], chunk)
        return metrics

    seconds, first = median_seconds(call)
    return _timing(seconds / per_call, first, flops) | {"seeds": seeds, "steps_per_call": per_call}


def explorers_step(spec: EnvSpec, config: RunConfig, *, per_call: int, seeds: int = 1) -> Result:
    """Time of one step of all explorers, posterior states included."""
    models = jax.jit(partial(create_models, spec, config))(key=jax.random.key(0))
    explore: ExploreConfig = replace(config.explore, population=config.population)
    create = partial(population.create, config.world, spec.action, explore)
    explorers = jax.jit(create)(key=jax.random.key(1))
    chunk, key = random_chunk(spec, config, per_call), jax.random.key(2)
    weight = jnp.float32(config.diversity_weight)
    one = jax.tree.map(lambda x: x[:1], chunk)
    flops = seeds * count_flops(
        partial(explorer_phase, config=explore), explorers, models, one, weight, jnp.int32(0), key
    )
    phase = _seeded(
        lambda explorers, models, chunk: explorer_phase(
            explorers, models, chunk, weight, jnp.int32(0), key, explore
        ),
        seeds,
    )
    run = jax.jit(phase, donate_argnums=0)
    state, models, chunk = [_stack(explorers, seeds)], _stack(models, seeds), _stack(chunk, seeds)

    def call() -> Any:
        state[0], metrics = run(state[0], models, chunk)
        return metrics

    seconds, first = median_seconds(call)
    starts = explore.agent.starts or config.sample.batch * config.sample.length
    return _timing(seconds / per_call, first, flops) | {
        "seeds": seeds,
        "steps_per_call": per_call,
        "population": explore.population,
        "starts": starts,
        "horizon": explore.agent.horizon,
    }


def _timing(seconds: float, first: float, flops: int) -> Result:
    return {
        "ms": round(1e3 * seconds, 3),
        "first_call_s": round(first, 2),
        "gflop": round(flops / 1e9, 2),
        "tflop_per_s": round(flops / seconds / 1e12, 3),
    }
