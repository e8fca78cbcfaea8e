"""Keys for the episodes of several deployments that become one."""

from __future__ import annotations

from cascade.specs import EpisodeKey


class Numbering:
    """Explorer and lane stay as they were, and a lane's episodes are numbered on in the order they come in.

    A number is left out wherever an episode does not follow the one before it: there a deployment ended, which may
    have cut that one.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[int, int], tuple[int, tuple[int, int]]] = {}

    def key(self, deployment: int, explorer: int, lane: int, episode: int) -> EpisodeKey:
        """The new key of the episode that had these."""
        number, following = self._last.get((explorer, lane), (-1, (deployment, episode)))
        number += 1 if (deployment, episode) == following else 2
        self._last[explorer, lane] = number, (deployment, episode + 1)
        return EpisodeKey(explorer, lane, number)
