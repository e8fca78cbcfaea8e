"""Small deployments, and policies that remember what they were asked."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from cascade.config import DeployConfig, EnvConfig
from cascade.data.journal import Journal
from cascade.deploy import Plan, RandomPolicy, Summary, collect, vectorise
from cascade.envs import InProcess


def deploy(root: Path, plan: Plan, id: str = "probe:table?limit=7", policy=None, journal=None, **options):
    """Collect a plan in this process; what is there already is resumed."""
    config = options.pop("config", DeployConfig())
    with InProcess(EnvConfig(id=id), plan.lanes) as envs:
        journal = journal or Journal(root, plan.deployment, envs.spec)
        return collect(policy or RandomPolicy(envs.spec.action), envs, journal, plan, config, **options)


def deploy_in_workers(root: Path, plan: Plan, config: DeployConfig, id: str, **options) -> Summary:
    """The same in worker processes. `meanwhile(envs)` is called at every turn."""
    meanwhile = options.pop("meanwhile", None)
    with vectorise(EnvConfig(id=id), config, plan) as envs:
        if meanwhile is not None:
            options["stop"] = lambda: bool(meanwhile(envs))
        journal = Journal(root, plan.deployment, envs.spec)
        return collect(RandomPolicy(envs.spec.action), envs, journal, plan, config, **options)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by relative name."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def data_of(folder: Path) -> dict[str, bytes]:
    """The same without the manifest, which also tells of failures."""
    return {name: data for name, data in contents(folder).items() if name != "manifest.json"}


def table_of(summary: Summary) -> np.ndarray:
    assert summary.deployment is not None
    return np.array(summary.deployment.episodes)


class Counting:
    """Acts on how long each lane's episode is, which it remembers; jitted, and counts its traces."""

    def __init__(self, actions: int, act=None):
        self.actions = actions
        self.calls: list[tuple[np.ndarray, np.ndarray]] = []
        self.lanes: list[int] = []
        self.traces = 0
        self._act = act or jax.jit(self._count)

    def _count(self, *args):
        self.traces += 1
        return self.choose(*args)

    def choose(self, age, obs, is_first, keys):
        age = jnp.where(is_first, 0, age + 1)
        draws = jax.vmap(lambda key: jax.random.randint(key, (), 0, self.actions))(keys)
        return age, (draws + age + obs["vector"].argmax(-1)) % self.actions

    def initial(self, lanes: int):
        self.lanes.append(lanes)
        return jnp.full(lanes, 1000, jnp.int32)

    def act(self, carry, obs, is_first, keys):
        carry, action = self._act(carry, obs, is_first, keys)
        self.calls.append((is_first.copy(), jax.random.key_data(keys)))
        return carry, np.asarray(action)


def stop_after(turns: int):
    """A `stop` that says so at the given turn."""
    left = [turns]

    def stop() -> bool:
        left[0] -= 1
        return left[0] < 0

    return stop
