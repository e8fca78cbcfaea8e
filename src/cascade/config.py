"""Every setting, as frozen dataclasses: one line of help each, checked when made.

A preset (folder `presets`) is a `RunConfig` with the values of one environment family.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cascade.errors import SettingError


def require(setting: str, value: object, ok: bool, expected: str) -> None:
    """Raise the one-line error for a setting that cannot be used."""
    if not ok:
        raise SettingError(setting, value, expected)


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
    """environment steps of one deployment, over all explorers: exactly as many are stored"""
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
    device_bytes: int = 8 << 30
    """largest dataset, in bytes, that is kept on the device; beyond it batches are read from the store"""

    def __post_init__(self) -> None:
        require("sample.batch", self.batch, self.batch >= 1, "at least 1")
        require("sample.length", self.length, self.length >= 2, "at least 2")
        ends = self.prioritize_ends
        require("sample.prioritize-ends", ends, 0.0 <= ends <= 1.0, "a fraction from 0 to 1")


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

    def __post_init__(self) -> None:
        require("optimizer.lr", self.lr, self.lr > 0, "a positive number")
        require("optimizer.clip", self.clip, self.clip >= 0, "0 or more")


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
    cnn_depth: int = 48
    """channels of the first convolution; doubled by each of the next three"""
    mlp_layers: int = 4
    """layers of vector encoders, decoders and heads"""
    mlp_units: int = 400
    """units of those layers"""
    layer_norm: bool = False
    """LayerNorm in the encoder, decoder and heads (the recurrent cell always has it)"""
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
        require("world.kl-balance", self.kl_balance, 0.0 <= self.kl_balance <= 1.0, "a fraction from 0 to 1")
        require("world.free-nats", self.free_nats, self.free_nats >= 0.0, "0 or more")


@dataclass(frozen=True)
class EnsembleConfig:
    """The latent-disagreement ensemble."""

    members: int = 10
    """one-step models"""
    layers: int = 4
    """hidden layers of each"""
    units: int = 400
    """units of each layer"""
    measure: Literal["variance", "std"] = "variance"
    """what the members' disagreement is"""
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(lr=3e-4))
    """how it is trained"""

    def __post_init__(self) -> None:
        require("ensemble.members", self.members, self.members >= 2, "at least 2")


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

    def __post_init__(self) -> None:
        for name in ("layers", "units", "horizon", "slow_every"):
            require(
                f"agent.{name.replace('_', '-')}", getattr(self, name), getattr(self, name) >= 1, "at least 1"
            )
        require("agent.starts", self.starts, self.starts >= 0, "0 (all) or more")
        require("agent.discount", self.discount, 0.0 <= self.discount <= 1.0, "a number from 0 to 1")
        require("agent.trace", self.trace, 0.0 <= self.trace <= 1.0, "a number from 0 to 1")
        require("agent.entropy", self.entropy, self.entropy >= 0.0, "0 or more")


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
    normalize: Literal["running", "none"] = "running"
    """divide each reward term by its own running scale, or take the raw formula"""
    begin: Literal["warm", "fresh"] = "warm"
    """after each deployment explorers go on from their weights (warm) or begin anew (fresh)"""
    agent: ActorCriticConfig = field(default_factory=ActorCriticConfig)
    """the actor and critic of each explorer"""

    def __post_init__(self) -> None:
        require("explore.population", self.population, self.population >= 1, "at least 1")
        require("explore.weight", self.weight, 0.0 <= self.weight <= 1.0, "a number from 0 to 1")


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
    greedy: bool = False
    """take the most likely action when evaluated, rather than draw one"""

    def __post_init__(self) -> None:
        for name in ("reward_layers", "reward_units", "reward_steps", "behaviour_steps", "episodes"):
            value = getattr(self, name)
            require(f"transfer.{name.replace('_', '-')}", value, value >= 1, "at least 1")
        for name in ("batch", "length"):
            value = getattr(self, name)
            require(f"transfer.{name}", value, value >= 0, "0 (as in sample) or more")
        ends = self.prioritize_ends
        require("transfer.prioritize-ends", ends, 0.0 <= ends <= 1.0, "a fraction from 0 to 1")


@dataclass(frozen=True)
class RunConfig:
    """A whole run: Algorithm 1 of the paper."""

    method: Literal["cascade", "pp2e", "p2e", "random"] = "cascade"
    """cascade; pp2e (no diversity); p2e (one explorer, no diversity); random (no explorers at all)"""
    deployments: int = 5
    """times the explorers are sent out"""
    initial: str = "random"
    """the first deployment: random actions, or data: the path of a run or of its data, or minari:ID_OR_PATH"""
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

    @property
    def population(self) -> int:
        """How many explorers the method has."""
        return 1 if self.method in ("p2e", "random") else self.explore.population

    @property
    def diversity_weight(self) -> float:
        """λ as the method has it."""
        return self.explore.weight if self.method == "cascade" else 0.0
