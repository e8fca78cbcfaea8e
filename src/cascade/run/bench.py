"""How fast this machine computes: its matrix rate, and the two training steps. Collecting is in `bench_collect`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

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


class Times(NamedTuple):
    """Seconds of a call."""

    median: float
    best: float
    first: float
    """of the first one, compilation included, which is in neither of the others"""


def time_calls(call: Callable[[], Any], repeats: int = 5, seconds: float = 0.0) -> Times:
    """How long a call takes, until its result is there.

    It is called `repeats` times at least, and for at least so many seconds.
    """
    start = time.perf_counter()
    jax.block_until_ready(call())
    first = time.perf_counter() - start
    times: list[float] = []
    while len(times) < repeats or sum(times) < seconds:
        start = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - start)
    return Times(float(np.median(times)), min(times), first)


def median_seconds(call: Callable[[], Any], repeats: int = 5, seconds: float = 0.0) -> tuple[float, float]:
    """Median time of a call after the first one, and the time of that first one."""
    times = time_calls(call, repeats, seconds)
    return times.median, times.first


def matrix_rate(precision: str, seconds: float = 0.0) -> float:
    """Operations per second of a large matrix product, on random numbers, at its best.

    The best, since it stands for what the device can do: a share of it must not rise because something else ran.
    """
    size = 8192 if jax.default_backend() == "gpu" else 1024
    a, b = (
        jax.random.normal(key, (size, size)).astype(precision) for key in jax.random.split(jax.random.key(0))
    )
    product = jax.jit(lambda a, b: a @ b)
    return 2 * size**3 / time_calls(lambda: product(a, b), repeats=20, seconds=seconds).best


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


def world_model_step(
    spec: EnvSpec, config: RunConfig, *, per_call: int, seeds: int = 1, seconds: float = 0.0
) -> Result:
    """Time of one world-model step, with the ensemble if it trains beside it; `per_call` steps to a compiled call."""
    models = jax.jit(partial(create_models, spec, config))(key=jax.random.key(0))
    chunk, key = random_chunk(spec, config, per_call), jax.random.key(2)
    batch = jax.tree.map(lambda x: x[0], chunk)
    beside = config.trains_beside
    flops = seeds * count_flops(partial(model_step, beside=beside), models, batch, key)
    phase = _seeded(lambda models, chunk: model_phase(models, chunk, jnp.int32(0), key, beside), seeds)
    run = jax.jit(phase, donate_argnums=0)
    state, chunk = [_stack(models, seeds)], _stack(chunk, seeds)

    def call() -> Any:
        state[0], metrics = run(state[0], chunk)
        return metrics

    timing = _timing(time_calls(call, seconds=seconds), per_call, flops)
    return timing | {"seeds": seeds, "with_ensemble": beside}


def explorers_step(
    spec: EnvSpec, config: RunConfig, *, per_call: int, seeds: int = 1, seconds: float = 0.0
) -> Result:
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

    times = time_calls(call, seconds=seconds)
    starts = explore.agent.starts or config.sample.batch * config.sample.length
    return _timing(times, per_call, flops) | {
        "seeds": seeds,
        "population": explore.population,
        "starts": starts,
        "horizon": explore.agent.horizon,
    }


def _timing(times: Times, per_call: int, flops: int) -> Result:
    seconds = times.median / per_call
    numbers = {
        "ms": 1e3 * seconds,
        "best_ms": 1e3 * times.best / per_call,
        "first_call_s": times.first,
        "gflop": flops / 1e9,
        "tflop_per_s": flops / seconds / 1e12,
    }
    return {name: rounded(value) for name, value in numbers.items()} | {"steps_per_call": per_call}


def rounded(value: float) -> float:
    """Four digits: more are noise."""
    return float(f"{value:.4g}")
