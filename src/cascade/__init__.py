"""CASCADE: one general world model from a handful of reward-free deployments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cascade.explore.player import Player

__version__ = "0.1.0"


def load_policy(folder: Path | str, seed: int = 0) -> Player:
    """A behaviour that was saved, as a plain callable: `action = policy(obs, first=True)`."""
    from cascade.explore import saved  # here, so that `import cascade` stays light

    return saved.load_policy(folder, seed)
