"""Atari: the paper's four games from 64x64 grey pixels, compact or with the paper's sizes."""

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

GAMES = {
    "montezuma": "MontezumaRevenge",
    "frostbite": "Frostbite",
    "hero": "Hero",
    "freeway": "Freeway",
}
MONTEZUMA = EnvConfig("atari:MontezumaRevenge", observation="image", action_repeat=4)

# Table 2 of the paper has Montezuma's Revenge; its text has 15 deployments of 200k for all four games.
PAPER = RunConfig(
    deployments=15,
    model_steps=5_000,
    explorer_steps=10_000,
    env=MONTEZUMA,
    deploy=DeployConfig(steps=200_000, lanes=40, workers=8),
    sample=SampleConfig(batch=16, length=50),
    world=WORLD["atari"],
    explore=ExploreConfig(weight=0.8, agent=AGENT["atari"]),
    transfer=TransferConfig(agent=AGENT["atari"]),
)

# A few hours on one GPU: fewer and smaller deployments, a narrower model, and a tenth of the imagination.
COMPACT = replace(
    PAPER,
    deployments=8,
    explorer_steps=5_000,
    deploy=DeployConfig(steps=100_000, lanes=40, workers=2),
    world=replace(WORLD["atari"], deter=400, hidden=400, cnn_depth=32, mlp_layers=2, mlp_units=256),
    ensemble=EnsembleConfig(layers=2, units=256),
    explore=replace(PAPER.explore, agent=replace(AGENT["atari"], layers=2, units=256, starts=128)),
    transfer=replace(
        PAPER.transfer,
        reward_layers=2,
        reward_units=256,
        agent=replace(AGENT["atari"], layers=2, units=256, starts=256),
    ),
)


def _playing(config: RunConfig, game: str) -> RunConfig:
    return replace(config, env=replace(config.env, id=f"atari:{game}"))


PRESETS = {f"atari-{short}": _playing(COMPACT, game) for short, game in GAMES.items()} | {
    f"atari-{short}-paper": _playing(PAPER, game) for short, game in GAMES.items()
}
