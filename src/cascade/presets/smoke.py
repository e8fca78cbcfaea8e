"""Any preset, shrunk to seconds: the same world and kind of observation, everything else tiny."""

from dataclasses import replace

from cascade.config import DeployConfig, MeasureConfig, RunConfig, SampleConfig
from cascade.presets import preset

POPULATION = 2
TIME_LIMIT = 20
"""Actions of an episode: short, so that some end in every deployment."""


def smoke(config: RunConfig | str) -> RunConfig:
    """A preset, or these settings, at a size at which every phase takes seconds on one core. Nothing is learnt."""
    config = preset(config) if isinstance(config, str) else config
    return replace(
        config,
        deployments=2,
        measure=MeasureConfig(levels=2, steps=TIME_LIMIT, pictures=1),
        model_steps=4,
        explorer_steps=2,
        env=replace(config.env, time_limit=TIME_LIMIT),
        deploy=replace(
            DeployConfig(steps=240, lanes=2 * POPULATION), step_timeout=config.deploy.step_timeout
        ),
        sample=replace(config.sample, batch=4, length=8, device_bytes=SampleConfig.device_bytes),
        world=replace(
            config.world,
            deter=16,
            hidden=16,
            stoch=4,
            classes=4,
            cnn_depth=2,
            mlp_layers=1,
            mlp_units=16,
            precision="float32",
            unroll=1,
        ),
        ensemble=replace(
            config.ensemble, members=2, layers=1, units=16, settle=min(2, config.ensemble.settle)
        ),
        explore=replace(
            config.explore,
            population=POPULATION,
            agent=replace(config.explore.agent, horizon=3, starts=8, layers=1, units=16),
        ),
        transfer=replace(
            config.transfer,
            reward_layers=1,
            reward_units=16,
            reward_steps=2,
            behaviour_steps=2,
            agent=replace(config.transfer.agent, horizon=3, starts=8, layers=1, units=16),
            episodes=4,
        ),
    )
