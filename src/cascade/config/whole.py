"""Settings of a whole run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cascade.config.collecting import DeployConfig, EnvConfig, MeasureConfig, SampleConfig
from cascade.config.learning import EnsembleConfig, ExploreConfig, TransferConfig, WorldConfig
from cascade.config.require import require


@dataclass(frozen=True)
class RunConfig:
    """A whole run: Algorithm 1 of the paper."""

    method: Literal["cascade", "pp2e", "p2e", "random"] = "cascade"
    """cascade; pp2e (no diversity); p2e (one explorer, no diversity); random (no explorers at all)"""
    deployments: int = 5
    """times the explorers are sent out"""
    initial: str = "random"
    """the first deployment: random, or varied (random, with odds of its own in every episode), or data: the path of a
    run or of its data, or minari:ID_OR_PATH"""
    model_steps: int = 20_000
    """gradient steps of the world model and the ensemble after each deployment"""
    explorer_steps: int = 10_000
    """gradient steps of the explorers after each deployment"""
    checkpoint_seconds: float = 120.0
    """time between two checkpoints inside a phase; 0 writes one as often as possible"""
    devices: int = 0
    """devices of this machine that train together; 0 is all of its accelerators, or one CPU"""
    max_skipped: int = 100
    """updates of any one model that may be skipped because they were not finite, before the run stops"""
    env: EnvConfig = field(default_factory=EnvConfig)
    """the world"""
    deploy: DeployConfig = field(default_factory=DeployConfig)
    """how explorers are deployed"""
    sample: SampleConfig = field(default_factory=SampleConfig)
    """how batches are drawn"""
    world: WorldConfig = field(default_factory=WorldConfig)
    """the world model"""
    ensemble: EnsembleConfig = field(default_factory=EnsembleConfig)
    """the disagreement ensemble"""
    explore: ExploreConfig = field(default_factory=ExploreConfig)
    """the explorers"""
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    """what is measured"""
    transfer: TransferConfig = field(default_factory=TransferConfig)
    """zero-shot transfer"""

    def __post_init__(self) -> None:
        require("deployments", self.deployments, self.deployments >= 1, "at least 1")
        for name in ("model_steps", "explorer_steps"):
            require(name.replace("_", "-"), getattr(self, name), getattr(self, name) >= 0, "0 or more")
        require("checkpoint-seconds", self.checkpoint_seconds, self.checkpoint_seconds >= 0, "0 or more")
        require("devices", self.devices, self.devices >= 0, "0 (all accelerators) or more")
        require("max-skipped", self.max_skipped, self.max_skipped >= 0, "0 or more")
        likelihood = self.ensemble.likelihood
        fits = likelihood == "gaussian" or self.world.latent == "discrete"
        require("ensemble.likelihood", likelihood, fits, "gaussian for a Gaussian latent (world.latent)")
        beside, settle = self.ensemble.beside, self.ensemble.settle
        require("ensemble.beside", beside, beside or settle > 0, "true, or ensemble.settle of 1 or more")
        episodes = self.measure.episodes
        fits = episodes == 0 or episodes >= self.population
        require("measure.episodes", episodes, fits, f"0, or one for each of {self.population} explorers")

    @property
    def population(self) -> int:
        """How many explorers the method has."""
        return 1 if self.method in ("p2e", "random") else self.explore.population

    @property
    def trains_beside(self) -> bool:
        """Whether the ensemble trains beside the world model; not where nobody explores by it."""
        return self.ensemble.beside and self.method != "random"

    @property
    def settling_steps(self) -> int:
        """Steps of the ensemble alone; none where nobody explores by it, or nothing is trained."""
        return self.ensemble.settle if self.method != "random" and self.model_steps else 0

    @property
    def diversity_weight(self) -> float:
        """λ as the method has it."""
        return self.explore.weight if self.method == "cascade" else 0.0
