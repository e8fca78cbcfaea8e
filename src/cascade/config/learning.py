"""Settings of what learns: the world model, the ensemble, the explorers, and behaviours at test time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cascade.config.require import require


@dataclass(frozen=True)
class OptimizerConfig:
    """Adam with decoupled weight decay and clipping by global norm."""

    lr: float = 1e-4
    """learning rate"""
    eps: float = 1e-5
    """Adam's epsilon"""
    clip: float = 100.0
    """largest global norm of a gradient; 0 does not clip"""
    weight_decay: float = 1e-6
    """share of every parameter that is taken off at each step"""

    def check(self, place: str) -> None:
        """Refuse what cannot be used; `place` is what this is called among all settings."""
        for name in ("lr", "eps"):
            require(f"{place}.{name}", getattr(self, name), getattr(self, name) > 0, "a positive number")
        require(f"{place}.clip", self.clip, self.clip >= 0, "0 or more")
        decay = self.weight_decay
        require(f"{place}.weight-decay", decay, 0 <= decay < 1, "a share from 0 to below 1")


@dataclass(frozen=True)
class WorldConfig:
    """The DreamerV2 world model."""

    deter: int = 1024
    """size of the recurrent state h"""
    hidden: int = 1024
    """size of the layers around it"""
    latent: Literal["discrete", "gaussian"] = "discrete"
    """kind of stochastic state z"""
    stoch: int = 32
    """number of categoricals, or of Gaussian dimensions"""
    classes: int = 32
    """classes of each categorical"""
    prior: Literal["independent", "joint"] = "independent"
    """how z is imagined: each categorical by itself, or given those before it, so that they agree on what is rare"""
    cnn_depth: int = 48
    """channels of the first convolution; doubled by each of the next three"""
    mlp_layers: int = 4
    """layers of vector encoders, decoders and heads"""
    mlp_units: int = 400
    """units of those layers"""
    layer_norm: bool = False
    """LayerNorm in the hidden layers of encoder, decoder and discount head (the recurrent cell always has it)"""
    discount_head: bool = True
    """predict where episodes end"""
    kl_balance: float = 0.8
    """share of the KL that trains the prior"""
    kl_scale: float = 1.0
    """weight of the KL"""
    free_nats: float = 0.0
    """KL below which it is not reduced further"""
    discount_scale: float = 1.0
    """weight of the discount head's loss"""
    precision: Literal["bfloat16", "float32"] = "bfloat16"
    """arithmetic of the network's layers; parameters, losses and KL stay float32"""
    unroll: int = 1
    """steps of the recurrent scan laid out in one loop body"""
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    """how it is trained"""

    def __post_init__(self) -> None:
        for name in ("deter", "hidden", "stoch", "classes", "cnn_depth", "mlp_layers", "mlp_units", "unroll"):
            require(
                f"world.{name.replace('_', '-')}", getattr(self, name), getattr(self, name) >= 1, "at least 1"
            )
        discrete = self.prior == "independent" or self.latent == "discrete"
        require("world.prior", self.prior, discrete, "independent, since world.latent is gaussian")
        require("world.kl-balance", self.kl_balance, 0.0 <= self.kl_balance <= 1.0, "a fraction from 0 to 1")
        for name in ("kl_scale", "free_nats", "discount_scale"):
            value = getattr(self, name)
            require(f"world.{name.replace('_', '-')}", value, value >= 0.0, "0 or more")
        self.optimizer.check("world.optimizer")


@dataclass(frozen=True)
class EnsembleConfig:
    """The latent-disagreement ensemble."""

    members: int = 10
    """one-step models"""
    layers: int = 4
    """hidden layers of each"""
    units: int = 400
    """units of each layer"""
    likelihood: Literal["gaussian", "categorical"] = "gaussian"
    """what members say of the next z: each of its numbers, or how likely each class of each categorical is"""
    measure: Literal["variance", "std"] = "variance"
    """what the members' disagreement is"""
    beside: bool = True
    """train it beside the world model; otherwise only in the steps of settle, and the world model trains faster"""
    settle: int = 0
    """gradient steps of the ensemble alone, after those of the world model, which is then at rest"""
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(lr=3e-4))
    """how it is trained"""

    def __post_init__(self) -> None:
        require("ensemble.members", self.members, self.members >= 2, "at least 2")
        for name in ("layers", "units"):
            require(f"ensemble.{name}", getattr(self, name), getattr(self, name) >= 1, "at least 1")
        require("ensemble.settle", self.settle, self.settle >= 0, "0 or more")
        self.optimizer.check("ensemble.optimizer")


@dataclass(frozen=True)
class ActorCriticConfig:
    """An actor and a critic trained in imagination: the explorers, and later the behaviour policies."""

    layers: int = 4
    """hidden layers of the actor and of the critic"""
    units: int = 400
    """units of each layer"""
    horizon: int = 15
    """imagined steps"""
    starts: int = 0
    """states that imagination starts from, drawn from each batch; 0 starts from all of them"""
    discount: float = 0.99
    """discount of rewards, per step"""
    trace: float = 0.95
    """weight of longer returns in the lambda-return"""
    entropy: float = 2e-3
    """weight of the actor's entropy"""
    gradient: Literal["auto", "reinforce", "dynamics"] = "auto"
    """how the actor learns; auto is reinforce for discrete actions and dynamics for continuous ones"""
    slow_every: int = 100
    """critic updates between two copies of the critic into its slow target"""
    actor: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(lr=8e-5))
    """how the actor is trained"""
    critic: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(lr=2e-4))
    """how the critic is trained"""

    def check(self, place: str) -> None:
        """Refuse what cannot be used; `place` is what this is called among all settings."""
        for name in ("layers", "units", "horizon", "slow_every"):
            value = getattr(self, name)
            require(f"{place}.{name.replace('_', '-')}", value, value >= 1, "at least 1")
        require(f"{place}.starts", self.starts, self.starts >= 0, "0 (all) or more")
        for name in ("discount", "trace"):
            value = getattr(self, name)
            require(f"{place}.{name}", value, 0.0 <= value <= 1.0, "a number from 0 to 1")
        require(f"{place}.entropy", self.entropy, self.entropy >= 0.0, "0 or more")
        self.actor.check(f"{place}.actor")
        self.critic.check(f"{place}.critic")


@dataclass(frozen=True)
class ExploreConfig:
    """The population of explorers and what they are rewarded for."""

    population: int = 10
    """explorers"""
    weight: float = 0.1
    """lambda of the paper: 0 rewards information gain alone, 1 population diversity alone"""
    embedding: str = "final"
    """summary of a trajectory: final, mean, or module:function of the imagined trajectory"""
    diversity: str = "distance"
    """measure of diversity: distance, paired, variance, determinant, or module:function of the summaries"""
    normalize: Literal["running", "centred", "none"] = "running"
    """divide each reward term by its running spread; first take off its running mean too; or take the raw formula"""
    begin: Literal["warm", "fresh"] = "warm"
    """after each deployment explorers go on from their weights (warm) or begin anew (fresh)"""
    agent: ActorCriticConfig = field(default_factory=ActorCriticConfig)
    """the actor and critic of each explorer"""

    def __post_init__(self) -> None:
        require("explore.population", self.population, self.population >= 1, "at least 1")
        require("explore.weight", self.weight, 0.0 <= self.weight <= 1.0, "a number from 0 to 1")
        self.agent.check("explore.agent")


@dataclass(frozen=True)
class TransferConfig:
    """Zero-shot transfer: reward heads and behaviour policies, trained on stored data and a frozen world model."""

    reward_layers: int = 4
    """hidden layers of a reward head"""
    reward_units: int = 400
    """units of each layer"""
    reward: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(lr=1e-3))
    """how reward heads are trained"""
    reward_steps: int = 2_000
    """gradient steps of the reward heads"""
    behaviour_steps: int = 5_000
    """gradient steps of the behaviour policies"""
    batch: int = 0
    """sequences per batch; 0 takes sample.batch"""
    length: int = 0
    """rows per sequence; 0 takes sample.length"""
    prioritize_ends: float = 0.5
    """fraction of sequences that are made to contain a rare reward, or an episode's end where none is rare"""
    normalize: Literal["running", "none"] = "running"
    """divide imagined rewards by the running size of imagined returns, or by nothing but the labels' own size"""
    agent: ActorCriticConfig = field(default_factory=ActorCriticConfig)
    """the actor and critic of each task"""
    episodes: int = 100
    """episodes of the evaluation, for each task"""
    episode_steps: int = 27_000
    """actions after which such an episode is cut; else a policy that meets no end would be played for ever"""
    greedy: bool = False
    """take the most likely action when evaluated, rather than draw one"""
    lookahead: int = 0
    """trajectories that the policy imagines after each discrete action before it acts; 0: it acts by itself"""
    lookahead_weight: float = 20.0
    """nats that an imagined advantage of 1 is worth beside the actor's log-probabilities"""

    def __post_init__(self) -> None:
        counts = (
            "reward_layers",
            "reward_units",
            "reward_steps",
            "behaviour_steps",
            "episodes",
            "episode_steps",
        )
        for name in counts:
            value = getattr(self, name)
            require(f"transfer.{name.replace('_', '-')}", value, value >= 1, "at least 1")
        for name in ("batch", "length"):
            value = getattr(self, name)
            require(f"transfer.{name}", value, value >= 0, "0 (as in sample) or more")
        require("transfer.lookahead", self.lookahead, self.lookahead >= 0, "0 (none) or more")
        weight = self.lookahead_weight
        require("transfer.lookahead-weight", weight, weight >= 0.0, "0 or more")
        ends = self.prioritize_ends
        require("transfer.prioritize-ends", ends, 0.0 <= ends <= 1.0, "a fraction from 0 to 1")
        self.reward.check("transfer.reward")
        self.agent.check("transfer.agent")
