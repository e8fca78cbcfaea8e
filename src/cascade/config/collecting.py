"""Settings of what is collected: worlds, deployments, batches, measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cascade.config.require import require


@dataclass(frozen=True)
class EnvConfig:
    """Which world, and how it is shown."""

    id: str = "minigrid:FourRooms-v0"
    """minigrid:NAME, atari:GAME, crafter:world, dmc:walker, gym:ID, probe:NAME, module:function, or an entry point"""
    observation: Literal["auto", "grid", "image", "vector"] = "auto"
    """how it is observed, where the environment leaves a choice"""
    image_size: int = 64
    """height and width of images, in pixels"""
    action_repeat: int = 1
    """environment steps per action"""
    time_limit: int = 0
    """actions before an episode is cut; 0 keeps the environment's own limit"""

    def __post_init__(self) -> None:
        require("env.image-size", self.image_size, self.image_size >= 8, "at least 8")
        require("env.action-repeat", self.action_repeat, self.action_repeat >= 1, "at least 1")
        require("env.time-limit", self.time_limit, self.time_limit >= 0, "0 or more")


@dataclass(frozen=True)
class DeployConfig:
    """How explorers are deployed."""

    steps: int = 200_000
    """actions of one deployment, over all explorers: exactly as many are stored"""
    lanes: int = 16
    """environments stepped at once, over all explorers"""
    groups: int = 0
    """groups of lanes that are acted for in turn; 0 is two, or one where explorers have an odd number of lanes"""
    workers: int = 1
    """worker processes that step them, on this machine"""
    engine: Literal["local", "ray"] = "local"
    """who collects: this machine, or runners on a Ray cluster (extra: ray); the data are the same"""
    address: str = ""
    """address of the Ray cluster; empty starts one on this machine"""
    runners: int = 0
    """processes on the Ray cluster that collect, one core each; 0 is one for each of its cores"""
    step_timeout: float = 60.0
    """seconds after which a silent worker counts as hung and is restarted"""
    max_failures: int = 20
    """environment failures in one deployment after which the run stops and says why"""

    def __post_init__(self) -> None:
        for name in ("steps", "lanes", "workers"):
            require(f"deploy.{name}", getattr(self, name), getattr(self, name) >= 1, "at least 1")
        require(
            "deploy.step-timeout", self.step_timeout, self.step_timeout > 0, "a positive number of seconds"
        )
        for name in ("groups", "runners"):
            require(
                f"deploy.{name}", getattr(self, name), getattr(self, name) >= 0, "0 (chosen here) or more"
            )
        require("deploy.max-failures", self.max_failures, self.max_failures >= 0, "0 or more")


@dataclass(frozen=True)
class SampleConfig:
    """How training batches are drawn from the stored data."""

    batch: int = 16
    """sequences per batch"""
    length: int = 50
    """rows per sequence"""
    prioritize_ends: float = 0.0
    """fraction of sequences that are made to contain the end of an episode"""
    prioritize_starts: float = 0.0
    """fraction of sequences, these or others, that begin where an episode does, so that its whole past is known; in
    an episode longer than a sequence some begin later, or its last rows would never be drawn"""
    device_bytes: int = 8 << 30
    """largest dataset, in bytes, that is kept on the device; beyond it batches are read from the store"""

    def __post_init__(self) -> None:
        require("sample.batch", self.batch, self.batch >= 1, "at least 1")
        require("sample.length", self.length, self.length >= 2, "at least 2")
        for name in ("prioritize_ends", "prioritize_starts"):
            share = getattr(self, name)
            require(f"sample.{name.replace('_', '-')}", share, 0.0 <= share <= 1.0, "a fraction from 0 to 1")


@dataclass(frozen=True)
class MeasureConfig:
    """What is measured after every deployment, outside the budget; nothing of it is ever learned from."""

    levels: int = 20
    """held-out starts that the policies are sent to; the same for every method and seed; 0 sends them nowhere"""
    first: int = 0
    """number of the first of those starts; settings are chosen on others than results are reported on"""
    episodes: int = 0
    """episodes from each start, shared by the explorers; 0 is as many as a full population has explorers"""
    steps: int = 500
    """actions after which such an episode is cut"""
    pictures: int = 4
    """starts that are also drawn and filmed"""

    def __post_init__(self) -> None:
        for name in ("levels", "first", "episodes", "pictures"):
            require(f"measure.{name}", getattr(self, name), getattr(self, name) >= 0, "0 or more")
        require("measure.steps", self.steps, self.steps >= 1, "at least 1")
