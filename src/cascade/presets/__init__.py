"""Presets: a `RunConfig` for each environment family, one file per family.

NAME is compact, NAME-paper has the paper's sizes. `smoke.smoke` shrinks any of them to seconds.
"""

from difflib import get_close_matches

from cascade.config import RunConfig
from cascade.errors import SettingError, did_you_mean
from cascade.presets import atari, crafter, dmc, minigrid

PRESETS: dict[str, RunConfig] = minigrid.PRESETS | atari.PRESETS | crafter.PRESETS | dmc.PRESETS


def preset(name: str) -> RunConfig:
    """The settings of this name."""
    if name not in PRESETS:
        near = did_you_mean(get_close_matches(name, PRESETS))
        raise SettingError("preset", name, f"one of {', '.join(PRESETS)}{near}")
    return PRESETS[name]
