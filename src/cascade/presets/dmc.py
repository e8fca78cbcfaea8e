"""DeepMind Control's walker: from pixels, compact or with the paper's sizes, or from its joints on a CPU."""

from dataclasses import replace

from cascade.config import (
    DeployConfig,
    EnsembleConfig,
    EnvConfig,
    ExploreConfig,
    RunConfig,
    SampleConfig,
    TransferConfig,
)
from cascade.presets.families import AGENT, WORLD

# Table 2 of the paper, for the random initial dataset (λ is 0.3 for the others). It prints 2 deployments; the
# text and two captions say 15, the initial dataset included, and those are meant here.
PAPER = RunConfig(
    deployments=15,
    model_steps=5_000,
    explorer_steps=250,
    env=EnvConfig("dmc:walker", observation="image", action_repeat=2),
    deploy=DeployConfig(steps=200_000, lanes=40, workers=8),
    sample=SampleConfig(batch=16, length=50),
    world=WORLD["dmc"],
    explore=ExploreConfig(weight=0.1, agent=AGENT["dmc"]),
    transfer=TransferConfig(
        agent=AGENT["dmc"], prioritize_ends=0.0
    ),  # rewards are dense, ends only time limits
)

# A few hours on one GPU; most of them are spent on drawing, so it draws without shadows.
COMPACT = replace(
    PAPER,
    deployments=8,
    env=replace(PAPER.env, id="dmc:walker?draw=fast"),
    deploy=DeployConfig(steps=50_000, lanes=40, workers=2),
    world=replace(WORLD["dmc"], cnn_depth=32, mlp_layers=2, mlp_units=256),
    ensemble=EnsembleConfig(layers=2, units=256),
    explore=replace(PAPER.explore, agent=replace(AGENT["dmc"], layers=2, units=256, starts=128)),
    transfer=replace(
        PAPER.transfer,
        reward_layers=2,
        reward_units=256,
        agent=replace(AGENT["dmc"], layers=2, units=256, starts=256),
    ),
)

# Vectors need neither convolutions nor a renderer: minutes for a deployment on two CPU cores.
STATE = replace(
    COMPACT,
    deployments=5,
    model_steps=2_000,
    env=EnvConfig("dmc:walker", observation="vector", action_repeat=2),
    deploy=DeployConfig(steps=20_000, lanes=40),
    world=replace(COMPACT.world, precision="float32", stoch=16, classes=16),
)

PRESETS = {"dmc-walker": COMPACT, "dmc-walker-paper": PAPER, "dmc-walker-state": STATE}
