"""MiniGrid: FourRooms and MultiRoom-N4-S5, symbolic and compact, or with the paper's pixels and sizes."""

from dataclasses import replace

from cascade.config import (
    ActorCriticConfig,
    DeployConfig,
    EnsembleConfig,
    EnvConfig,
    ExploreConfig,
    OptimizerConfig,
    RunConfig,
    SampleConfig,
    TransferConfig,
    WorldConfig,
)
from cascade.presets.families import AGENT, WORLD

# Symbols, MiniGrid's own compass beside the view, and none of the actions that do nothing in these worlds: a small
# model then learns to remember a level in about half the steps.
FOUR_ROOMS = EnvConfig("minigrid:FourRooms-v0?compass=shown&actions=moves", observation="grid")
MULTI_ROOM = EnvConfig("minigrid:MultiRoom-N4-S5-v0?compass=shown&actions=doors", observation="grid")

# Symbols need no convolutions: a small model learns them in minutes, and ten seeds share one GPU.
COMPACT = RunConfig(
    env=FOUR_ROOMS,
    initial="varied",  # of uniform actions a model learns nothing about doing one thing for long
    explorer_steps=300,  # longer, and they find what the model only imagines: see benchmarks/NOTES.md
    deploy=DeployConfig(steps=200_000, lanes=200, workers=4),
    sample=SampleConfig(
        batch=32, length=101, prioritize_starts=1.0
    ),  # whole episodes, so that it learns to remember
    world=WorldConfig(
        discount_scale=10.0,  # ends are rare, and a policy exploits places where the model wrongly expects them
        deter=512,
        hidden=512,
        # What is rare, such as a goal in view, must come in one piece: a policy does not learn to search for what is
        # never imagined, and small categoricals that are drawn one by one hardly ever agree on it.
        stoch=8,
        classes=64,
        prior="joint",
        mlp_layers=2,
        mlp_units=512,
        layer_norm=True,
        unroll=5,
        optimizer=OptimizerConfig(lr=1e-3, clip=5.0),
    ),
    # No narrower than what it predicts: a narrow member cannot even copy z, and that error hides what is new.
    ensemble=EnsembleConfig(
        layers=2,
        units=512,
        likelihood="categorical",
        beside=False,
        settle=2_000,
        optimizer=OptimizerConfig(lr=1e-3),
    ),
    # What these are compared with, on levels that nothing is reported on: docs/ablations.md.
    explore=ExploreConfig(
        weight=0.2,
        embedding="mean",
        diversity="paired",
        normalize="centred",
        begin="fresh",
        agent=ActorCriticConfig(
            layers=2,
            units=256,
            starts=32,
            entropy=8e-2,
            actor=OptimizerConfig(lr=1e-3),
            critic=OptimizerConfig(lr=1e-3),
        ),
    ),
    transfer=TransferConfig(
        reward_layers=2,
        reward_units=256,
        agent=ActorCriticConfig(
            layers=2,
            units=256,
            starts=256,
            entropy=1e-2,
            actor=OptimizerConfig(lr=3e-4),
            critic=OptimizerConfig(lr=3e-4),
        ),
    ),
)

# Minutes on two CPU cores, in a large empty room whose far corner, the goal, random actions hardly ever reach. The
# agent knows where it is: nothing but that tells one part of the room from another.
DEMO = replace(
    COMPACT,
    env=EnvConfig(
        "minigrid:Empty-16x16-v0?compass=shown&position=shown&actions=moves",
        observation="grid",
        time_limit=80,
    ),
    initial="random",
    deployments=3,
    model_steps=1_200,
    explorer_steps=160,
    deploy=DeployConfig(steps=40_000, lanes=32),
    sample=SampleConfig(batch=16, length=32, prioritize_ends=0.5),
    world=replace(
        COMPACT.world,
        deter=128,
        hidden=128,
        stoch=16,
        classes=16,
        prior="independent",
        mlp_units=128,
        layer_norm=False,
        precision="float32",
        unroll=4,
        optimizer=OptimizerConfig(lr=1e-3),
    ),
    ensemble=replace(COMPACT.ensemble, members=4, units=384, likelihood="gaussian", settle=400),
    explore=replace(
        COMPACT.explore,
        population=4,
        agent=replace(COMPACT.explore.agent, units=128, starts=16),
    ),
    transfer=replace(
        COMPACT.transfer,
        reward_units=128,
        reward_steps=800,
        behaviour_steps=1_200,
        agent=replace(COMPACT.transfer.agent, units=128, starts=128, entropy=3e-2),
    ),
)

# Table 2 of the paper, with DreamerV2's sizes, from the agent's own view in pixels.
PAPER_FOUR_ROOMS = RunConfig(
    env=EnvConfig("minigrid:FourRooms-v0", observation="image"),
    deploy=DeployConfig(steps=200_000, lanes=40, workers=4),
    sample=SampleConfig(batch=16, length=40),
    world=WORLD["minigrid"],
    explore=ExploreConfig(weight=0.1, agent=AGENT["minigrid"]),
    transfer=TransferConfig(agent=AGENT["minigrid"]),
)

PRESETS = {
    "demo": DEMO,
    "minigrid-fourrooms": COMPACT,
    "minigrid-fourrooms-paper": PAPER_FOUR_ROOMS,
    "minigrid-multiroom": replace(COMPACT, env=MULTI_ROOM, sample=replace(COMPACT.sample, length=121)),
    "minigrid-multiroom-paper": replace(
        PAPER_FOUR_ROOMS,
        env=EnvConfig("minigrid:MultiRoom-N4-S5-v0", observation="image"),  # six rooms, as registered
        explore=replace(PAPER_FOUR_ROOMS.explore, weight=0.3),
    ),
}
