"""Crafter, from its 64x64 pictures: compact, or with the paper's sizes."""

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

# The paper has 20 deployments of 50k steps here. It gives neither λ nor the train steps: λ is that of its other
# generated worlds, the train steps are those of its other pixel games.
PAPER = RunConfig(
    deployments=20,
    model_steps=5_000,
    explorer_steps=10_000,
    env=EnvConfig("crafter:world", observation="image"),
    deploy=DeployConfig(steps=50_000, lanes=40, workers=8),
    sample=SampleConfig(batch=16, length=50),
    world=WORLD["crafter"],
    explore=ExploreConfig(weight=0.1, agent=AGENT["crafter"]),
    transfer=TransferConfig(agent=AGENT["crafter"]),
)

# A few hours on one GPU: half the deployments, a narrower model, and a tenth of the imagination.
COMPACT = replace(
    PAPER,
    deployments=10,
    explorer_steps=5_000,
    deploy=replace(PAPER.deploy, workers=2),
    world=replace(WORLD["crafter"], deter=512, hidden=512, cnn_depth=32, mlp_layers=2, mlp_units=256),
    ensemble=EnsembleConfig(layers=2, units=256),
    explore=replace(PAPER.explore, agent=replace(AGENT["crafter"], layers=2, units=256, starts=128)),
    transfer=replace(
        PAPER.transfer,
        reward_layers=2,
        reward_units=256,
        agent=replace(AGENT["crafter"], layers=2, units=256, starts=256),
    ),
)

PRESETS = {"crafter": COMPACT, "crafter-paper": PAPER}
