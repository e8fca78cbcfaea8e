"""How fast this machine collects and reads: environments, whole deployments, and the samplers.

Every rate is the median of a few repeats, beside the best of them: other work on the machine slows some.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import numpy as np

from cascade.config import EnvConfig, RunConfig
from cascade.data.device import DeviceSampler
from cascade.data.host import HostSampler
from cascade.data.journal import Journal
from cascade.data.sampler import Sampler
from cascade.data.store import Store
from cascade.deploy import Plan, RandomPolicy, Seconds, Summary, collect, vectorise
from cascade.envs import make, spec_of
from cascade.explore import population
from cascade.explore.policy import PopulationPolicy
from cascade.specs import EnvSpec
from cascade.types import Policy
from cascade.world.model import WorldModel

REPEATS = 5
STEPS_PER_SECOND = 4_000
"""Steps of a deployment for each second that was asked for; less if the preset's deployment has less."""
Result = dict[str, Any]


def rate(count: Callable[[float], int], seconds: float) -> Result:
    """Steps per second of `count(seconds)`, which works for about so long and says how many steps it made."""
    rates = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        steps = count(seconds / REPEATS)
        rates.append(steps / (time.perf_counter() - began))
    return summarised(rates)


def summarised(rates: list[float]) -> Result:
    """Median and best."""
    return {"steps_per_s": round(float(np.median(rates))), "best": round(max(rates)), "repeats": len(rates)}


def plain_environment(config: EnvConfig) -> gym.Env | None:
    """The environment as its own package makes it, without anything of ours; None where there is none."""
    kind, _, name = config.id.partition("?")[0].partition(":")
    ids = {"minigrid": ("MiniGrid-" + name, name), "gym": (name,)}.get(kind, ())
    make(config).close()  # registers what has to be
    known = [id for id in ids if id in gym.registry]
    return gym.make(known[0], disable_env_checker=True) if known else None


def step_plain(env: gym.Env, seconds: float) -> int:
    """Random steps of one plain environment for about so long; how many."""
    actions = [env.action_space.sample() for _ in range(256)]
    env.reset(seed=0)
    steps, until = 0, time.perf_counter() + seconds
    while time.perf_counter() < until:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        steps += len(actions)
    return steps


def _random_actions(spec: EnvSpec, count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    if spec.action.kind == "discrete":
        return rng.integers(spec.action.size, size=count).astype(spec.action.dtype)
    return rng.uniform(-1, 1, (count, spec.action.size)).astype(spec.action.dtype)


def environment(config: RunConfig, seconds: float) -> Result:
    """Steps per second: the plain environment, ours, and ours in worker processes."""
    results: Result = {"id": config.env.id, "observation": config.env.observation}
    plain = plain_environment(config.env)
    if plain is not None:
        results["raw"] = rate(partial(step_plain, plain), seconds)
        plain.close()
    return results | {"adapter": _adapter(config, seconds), "vectoriser": vectoriser(config, seconds)}


def _adapter(config: RunConfig, seconds: float) -> Result:
    """One environment of ours, in this process."""
    env = make(config.env)
    actions = list(_random_actions(env.spec, 256))

    def count(seconds: float) -> int:
        env.reset(0)
        steps, until = 0, time.perf_counter() + seconds
        while time.perf_counter() < until:
            for action in actions:
                step = env.step(action)
                if step.terminated or step.truncated:
                    env.reset(steps)
            steps += len(actions)
        return steps

    result = rate(count, seconds)
    env.close()
    return result


def vectoriser(config: RunConfig, seconds: float) -> Result:
    """All lanes of a deployment, in its worker processes and its groups, with actions that nobody chose."""
    plan = _plan(config, config.deploy.steps)
    with vectorise(config.env, config.deploy, plan) as envs:
        groups = plan.group_lanes()
        actions = {len(group): _random_actions(envs.spec, len(group)) for group in groups}

        def count(seconds: float) -> int:
            for group in groups:
                envs.send(group, actions[len(group)], group.astype(np.int64))
            steps, until = 0, time.perf_counter() + seconds
            while time.perf_counter() < until:
                for group in groups:
                    tick = envs.wait(group)
                    seeds = np.where(tick.terminated | tick.truncated, steps, -1)
                    envs.send(group, actions[len(group)], seeds)
                    steps += int(np.count_nonzero(seeds < 0))
            for group in groups:
                envs.wait(group)
            return steps

        result = rate(count, seconds)
    return result | {"lanes": plan.lanes, "groups": plan.groups, "workers": config.deploy.workers}


def _steps(config: RunConfig, seconds: float) -> int:
    return max(1, min(config.deploy.steps, int(seconds * STEPS_PER_SECOND)))


def _plan(config: RunConfig, steps: int) -> Plan:
    deploy = replace(config.deploy, steps=steps)
    return Plan.of(deploy, seed=0, deployment=0, population=config.population)


def explorers(spec: EnvSpec, config: RunConfig) -> PopulationPolicy:
    """Explorers of the preset's size. They are untrained: what they have learnt does not change their speed."""
    world = jax.jit(partial(WorldModel, spec, config.world))(key=jax.random.key(0))
    explore = replace(config.explore, population=config.population)
    create = partial(population.create, config.world, spec.action, explore)
    return PopulationPolicy(world, jax.jit(create)(key=jax.random.key(1)).agents.actor.model)


def collection(config: RunConfig, seconds: float) -> Result:
    """Whole deployments, from the first reset to the committed files, with random and with trained-size policies.

    One plain environment is stepped before each deployment of the explorers, so that both meet the same machine.
    """
    spec, plain = spec_of(config.env), plain_environment(config.env)
    results = {
        "random": _deployments(RandomPolicy(spec.action), config, seconds, plain=None),
        "population": _deployments(explorers(spec, config), config, seconds, plain),
    }
    if plain is not None:
        plain.close()
    return results


def _deployments(policy: Policy, config: RunConfig, seconds: float, plain: gym.Env | None) -> Result:
    plan = _plan(config, _steps(config, seconds))
    with deployed(policy, config, 4 * plan.lanes):  # compiles
        pass
    rates, raw, spent = [], [], np.zeros(3)
    for _ in range(REPEATS):
        if plain is not None:
            began = time.perf_counter()
            raw.append(step_plain(plain, 0.5 * seconds / REPEATS) / (time.perf_counter() - began))
        with deployed(policy, config, plan.steps) as (_, summary, elapsed):
            rates.append(plan.steps / elapsed)
            spent += np.array(summary.seconds)
    share = dict(zip(Seconds._fields, (spent / spent.sum()).round(3).tolist(), strict=True))
    result = summarised(rates) | {
        "steps": plan.steps,
        "lanes": plan.lanes,
        "groups": plan.groups,
        "share": share,
    }
    if raw:
        ratios = np.array(rates) / np.array(raw)
        result |= {
            "raw_steps_per_s": round(float(np.median(raw))),
            "times_raw": round(float(np.median(ratios)), 2),
        }
    return result


@contextmanager
def deployed(policy: Policy, config: RunConfig, steps: int) -> Iterator[tuple[Path, Summary, float]]:
    """A deployment in a folder that is removed afterwards, its summary, and the seconds that it took."""
    deploy = replace(config.deploy, steps=steps)
    plan = _plan(config, steps)
    with tempfile.TemporaryDirectory() as folder, vectorise(config.env, deploy, plan) as envs:
        began = time.perf_counter()
        summary = collect(policy, envs, Journal(folder, 0, envs.spec), plan, deploy)
        yield Path(folder), summary, time.perf_counter() - began


def samplers(config: RunConfig, seconds: float, per_call: int) -> Result:
    """Batches per second of both samplers, `per_call` to a call, from a deployment with random actions."""
    action = spec_of(config.env).action
    steps = max(_steps(config, seconds), config.sample.length)
    with deployed(RandomPolicy(action), config, steps) as (root, _, _):
        fields = Store.open(root).fields()
        results: Result = {"rows": fields.rows, "row_bytes": fields.row_bytes, "batches_per_call": per_call}
        for kind in (DeviceSampler, HostSampler):
            sampler: Sampler = kind(fields, config.sample, jax.random.key(0))
            name = "device" if kind is DeviceSampler else "host"
            results[name] = _batches(sampler, seconds, per_call)
            sampler.close()
    return results


def _batches(sampler: Sampler, seconds: float, per_call: int) -> Result:
    jax.block_until_ready(sampler.chunk(0, per_call))
    step = [per_call]

    def count(seconds: float) -> int:
        batches, until = 0, time.perf_counter() + seconds
        while time.perf_counter() < until:
            jax.block_until_ready(sampler.chunk(step[0], per_call))
            step[0] += per_call
            batches += per_call
        return batches

    result = rate(count, seconds)
    return {"batches_per_s": result.pop("steps_per_s")} | result
