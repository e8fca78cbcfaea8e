"""What runs on the machines of a fleet: some lanes of a plan at a time, with a worker process for their environments.

A runner is a plain class, made into an actor by `cascade.deploy.fleet`. It keeps nothing that its sender does not
have: when it dies, its lanes are begun again, by another one, from the episodes that had arrived.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import jax
import numpy as np

from cascade import __version__
from cascade.config import DeployConfig, EnvConfig
from cascade.deploy.plan import Plan
from cascade.deploy.turns import Report, Turns
from cascade.envs import Vectoriser
from cascade.envs.worker import THREAD_LIMITS
from cascade.errors import CascadeError
from cascade.specs import EpisodeKey
from cascade.types import Policy


def environ() -> dict[str, str]:
    """A runner's variables, set before JAX is loaded: one thread, no accelerator, the flags of this process.

    XLA's thread pool is as large as PJRT_NPROC says, whatever OMP_NUM_THREADS is.
    """
    variables = dict.fromkeys(THREAD_LIMITS, "1")
    variables |= {"PJRT_NPROC": "1", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    variables["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "")
    if cache := getattr(jax.config, "jax_compilation_cache_dir", None):
        variables["JAX_COMPILATION_CACHE_DIR"] = str(cache)
    return variables


def versions() -> dict[str, str]:
    """What must be the same everywhere for episodes to be."""
    found = {name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "numpy", "gymnasium")}
    return {"cascade": __version__, **found}


class Runner:
    """One core of a fleet."""

    def __init__(self, policy: Policy, env: EnvConfig, plan: Plan, config: DeployConfig):
        self._policy, self._env, self._plan, self._config = policy, env, plan, config
        self._envs: Vectoriser | None = None
        self._turns: Turns | None = None

    def ready(self) -> dict[str, str]:
        """Answers once it runs: where, and with which versions."""
        return {"host": platform.node(), "pid": str(os.getpid()), **versions()}

    def begin(self, lanes: np.ndarray, finished: Mapping[EpisodeKey, int]) -> None:
        """Take these lanes, of which some episodes are finished already. Environments of lanes before serve again."""
        with _plain_errors():
            if self._envs is None or self._envs.lanes != len(lanes):
                if self._envs is not None:
                    self._envs.close()
                self._envs = Vectoriser(self._env, len(lanes), 1, self._config.step_timeout)
            self._turns = Turns(self._policy, self._envs, self._plan, lanes, finished)

    def advance(self, seconds: float, began: None = None) -> Report:
        """Go on for about so long; what was finished in that time.

        Whoever passes what `begin` gave hears its error here.
        """
        if self._turns is None:
            raise ValueError("this runner has no lanes to go on with")
        until = time.monotonic() + seconds
        with _plain_errors():
            while self._turns.active and time.monotonic() < until:
                self._turns.turn()
        return self._turns.harvest()


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Errors that the user can fix, in the one class that travels between processes."""
    try:
        yield
    except CascadeError as error:
        raise CascadeError(str(error)) from None
