"""Worlds to explore: one protocol, one registry, and a vectoriser that steps many of them in processes."""

import os

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # stdout belongs to results

from cascade.envs.protocol import Environment, Timestep
from cascade.envs.registry import make, opened, spec_of
from cascade.envs.vectorise import Failure, InProcess, Tick, Vectoriser

__all__ = [
    "Environment",
    "Failure",
    "InProcess",
    "Tick",
    "Timestep",
    "Vectoriser",
    "make",
    "opened",
    "spec_of",
]
