"""Presets: a `RunConfig` for each environment family, one file per family.

NAME is compact, NAME-paper has the paper's sizes. `smoke.smoke` shrinks any of them to seconds.
"""

from cascade.config import RunConfig
from cascade.errors import SettingError
from cascade.presets import atari, crafter, dmc, minigrid

PRESETS: dict[str, RunConfig] = minigrid.PRESETS | atari.PRESETS | crafter.PRESETS | dmc.PRESETS


def preset(name: str) -> RunConfig:
    """The settings of this name."""
    if name not in PRESETS:
        raise SettingError("preset", name, f"one of {', '.join(PRESETS)}")
    return PRESETS[name]
