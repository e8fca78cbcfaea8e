"""Presets: a `RunConfig` for each environment family, one file per family."""

from cascade.config import RunConfig
from cascade.errors import SettingError
from cascade.presets import minigrid

PRESETS: dict[str, RunConfig] = minigrid.PRESETS


def preset(name: str) -> RunConfig:
    """The settings of this name."""
    if name not in PRESETS:
        raise SettingError("preset", name, f"one of {', '.join(PRESETS)}")
    return PRESETS[name]
