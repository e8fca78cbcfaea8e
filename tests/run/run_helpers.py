"""Runs of seconds on a probe world, and what is compared between them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import gymnasium
import jax
import numpy as np
from gymnasium import spaces

from cascade.config import EnvConfig, RunConfig
from cascade.explore.actor import Actor
from cascade.presets import preset
from cascade.presets.smoke import smoke
from cascade.run import state
from cascade.run.api import Run, Silent, groups, open_run
from cascade.run.checkpoint import Checkpoints, named_leaves
from cascade.run.folder import Folder
from cascade.run.state import Position, State
from cascade.specs import EnvSpec
from cascade.transfer.saved import Behaviour
from cascade.world.model import WorldModel
from cascade.world.rssm import feature_size

SEEDS = (0, 1)


def tiny(**changes: object) -> RunConfig:
    """The demo, shrunk, on a chain of six states."""
    config = smoke(preset("demo"))
    config = replace(
        config,
        env=EnvConfig("probe:chain", time_limit=8),
        explore=replace(config.explore, begin="warm"),
        model_steps=16,
        explorer_steps=16,
        checkpoint_seconds=1e9,
    )
    return replace(config, **changes)


def saved_state(run: Run, seed: int = 0) -> State:
    """A seed's part of the last checkpoint, optimisers and all."""
    group = next(group for group in groups(run.spec, run.seeds) if seed in group)
    keys = state.seed_keys(group)
    checkpoints = Checkpoints(Folder(run.path).checkpoints(group), read_only=True)
    saved = checkpoints.restore(state.blueprint(run.spec, run.settings, keys))
    return state.of_seed(saved["state"], group.index(seed))


def weights(run: Run | Path, seed: int = 0) -> dict[str, np.ndarray]:
    """Everything that was learned, by name."""
    run = run if isinstance(run, Run) else open_run(run)
    return {name: np.asarray(leaf) for name, leaf in named_leaves(saved_state(run, seed)).items()}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


class Signals(Silent):
    """Sends this process a signal when a run comes to a certain place."""

    def __init__(self, where: Callable[[Position], bool], number: int = signal.SIGTERM):
        self._where, self._number, self.sent = where, number, False
        self.notes: list[str] = []

    def step(self, at: Position, values: dict[str, float]) -> None:
        if not self.sent and self._where(at):
            self.sent = True
            os.kill(os.getpid(), self._number)

    def note(self, text: str) -> None:
        self.notes.append(text)


def traces(function: object) -> int:
    """How often a jitted function has been compiled."""
    return int(function._cache_size())  # type: ignore[attr-defined]


def finite(tree: object) -> bool:
    return all(bool(np.isfinite(np.asarray(x)).all()) for x in jax.tree.leaves(tree))


def one_action(spec: EnvSpec, config: RunConfig, index: int, task: str = "reward") -> Behaviour:
    """A behaviour that always does the same, and needs no training for it."""
    agent = config.transfer.agent
    make = jax.jit(
        lambda key: (
            WorldModel(spec, config.world, key=key),
            Actor(feature_size(config.world), spec.action, agent, config.world.precision, key=key),
        )
    )
    world, actor = make(jax.random.key(0))
    bias = actor.mlp.out.bias.at[index].set(50.0)
    return Behaviour(world, eqx.tree_at(lambda one: one.mlp.out.bias, actor, bias), spec, task)


class Dark(gymnasium.Env):
    """A world that nobody can look at: it has no `render` of its own."""

    observation_space, action_space = spaces.Box(-1, 1, (1,)), spaces.Discrete(2)

    def __init__(self, config):
        self.count = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.count += 1
        return np.full(1, self.count / 5, np.float32), 0.0, self.count == 5, False, {}
