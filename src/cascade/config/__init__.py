"""Every setting, as frozen dataclasses: one line of help each, checked when made.

A preset (folder `presets`) is a `RunConfig` with the values of one environment family.
"""

from cascade.config.collecting import DeployConfig, EnvConfig, MeasureConfig, SampleConfig
from cascade.config.learning import (
    ActorCriticConfig,
    EnsembleConfig,
    ExploreConfig,
    OptimizerConfig,
    TransferConfig,
    WorldConfig,
)
from cascade.config.require import require
from cascade.config.whole import RunConfig

__all__ = [
    "ActorCriticConfig",
    "DeployConfig",
    "EnsembleConfig",
    "EnvConfig",
    "ExploreConfig",
    "MeasureConfig",
    "OptimizerConfig",
    "RunConfig",
    "SampleConfig",
    "TransferConfig",
    "WorldConfig",
    "require",
]
