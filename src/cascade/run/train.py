"""The two training phases over all seeds of a group: compiled once, many steps to a call, state donated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from cascade.config import DeployConfig, ExploreConfig, RunConfig
from cascade.data.host import host_device
from cascade.data.sampler import Sampler, make_sampler
from cascade.data.store import Store
from cascade.explore.population import Population
from cascade.run.phases import Models, explorer_phase, model_phase, settling_phase
from cascade.specs import EnvSpec
from cascade.types import Batch
from cascade.world.model import Metrics

MANY = 128
"""Lanes from which on an accelerator acts quicker than a CPU, even without convolutions."""


def over_seeds(function: Callable[..., Any], *args: Any) -> Any:
    """`function` for every seed. One seed is a plain call, which is faster than a vmap over one."""
    if jax.tree.leaves(args)[0].shape[0] > 1:
        return jax.vmap(function)(*args)
    return jax.tree.map(lambda x: x[None], function(*jax.tree.map(lambda x: x[0], args)))


@partial(jax.jit, donate_argnums=0, static_argnames="beside")
def train_models(
    models: Models, chunk: Batch, step: Int[Array, ""], keys: Key[Array, " S"], beside: bool = True
) -> tuple[Models, Metrics]:
    """One model step for each batch of a chunk [S, K, B, T], and one of the ensemble beside it, or not."""
    out: tuple[Models, Metrics] = over_seeds(
        lambda models, chunk, key: model_phase(models, chunk, step, key, beside), models, chunk, keys
    )
    return out


@partial(jax.jit, donate_argnums=0, static_argnames="span")
def settle_ensembles(
    models: Models, chunk: Batch, step: Int[Array, ""], keys: Key[Array, " S"], span: tuple[int, int]
) -> tuple[Models, Metrics]:
    """One step of the ensemble alone for each batch of a chunk [S, K, B, T]."""
    out: tuple[Models, Metrics] = over_seeds(
        lambda models, chunk, key: settling_phase(models, chunk, step, key, span), models, chunk, keys
    )
    return out


@partial(jax.jit, donate_argnums=0, static_argnames="config")
def train_explorers(
    explorers: Population,
    models: Models,
    chunk: Batch,
    weight: Float[Array, ""],
    step: Int[Array, ""],
    keys: Key[Array, " S"],
    config: ExploreConfig,
) -> tuple[Population, Metrics]:
    """One step of all explorers for each batch of a chunk [S, K, B, T], the models frozen."""
    out: tuple[Population, Metrics] = over_seeds(
        lambda explorers, models, chunk, key: explorer_phase(
            explorers, models, chunk, weight, step, key, config
        ),
        explorers,
        models,
        chunk,
        keys,
    )
    return out


@jax.jit
def _together(*chunks: Batch) -> Batch:
    """The seeds' chunks along a leading S."""
    stacked: Batch = jax.tree.map(lambda *x: jnp.stack(x), *chunks)
    return stacked


class Samplers:
    """Draws for all seeds at once, each from its own data."""

    def __init__(self, stores: Sequence[Store], config: RunConfig, keys: Key[Array, " S"]):
        # What may lie on the device is for all seeds together.
        sample = replace(config.sample, device_bytes=config.sample.device_bytes // len(stores))
        self._each: list[Sampler] = [
            make_sampler(store.fields(), sample, key) for store, key in zip(stores, keys, strict=True)
        ]

    def chunk(self, step: int, count: int) -> Batch:
        """[S, count, B, T]"""
        return _together(*(sampler.chunk(step, count) for sampler in self._each))

    @property
    def reason(self) -> str:
        """Where the batches come from, and why."""
        return self._each[0].reason

    def close(self) -> None:
        for sampler in self._each:
            sampler.close()


def steps_per_call(spec: EnvSpec, steps: int) -> int:
    """How many gradient steps to a compiled call are quick here.

    A GPU wants many. On a CPU a loop around convolutions is slower than its body alone; without them a few steps
    save the calls. Where it can be, it is a divisor of the phase's steps, so that no rest is compiled for.
    """
    if jax.default_backend() == "cpu":
        most = 1 if is_convolutional(spec) else 8
    else:
        most = 20 if is_convolutional(spec) else 50
    divisors = [size for size in range(most, most // 2, -1) if steps % size == 0]
    return divisors[0] if divisors else most


def acting_device(spec: EnvSpec, deploy: DeployConfig) -> jax.Device:
    """Where policies act while deployed. A few lanes without convolutions are quickest on the CPU: a step of a small
    network there takes less time than a launch on an accelerator and the way back."""
    if is_convolutional(spec) or deploy.lanes >= MANY:
        return jax.devices()[0]
    return host_device() or jax.devices()[0]


def is_convolutional(spec: EnvSpec) -> bool:
    return any(obs.kind == "image" for obs in spec.observations.values())


def chunks(done: int, steps: int, size: int) -> Iterator[tuple[int, int]]:
    """(first step, count) of the calls that are left of a phase. They begin at multiples of `size`, always."""
    for step in range(done, steps, size):
        yield step, min(size, steps - step)
