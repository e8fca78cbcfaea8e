"""The plan of a deployment: who takes how many steps, and what every episode draws from.

Explorers and lanes share the budget exactly. A lane is a serial stream of episodes 0, 1, 2, ..., each with the
key (explorer, lane of that explorer, episode); the last is cut where the lane's budget ends. What an episode
draws is a function of the plan and of its key, so that whoever collects it, and however often, gets the same.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cascade.config import DeployConfig, require
from cascade.specs import EpisodeKey

PATIENCE = 1
"""How often an episode that failed is tried again as it was, before it is drawn anew."""


class Draw(NamedTuple):
    """What is random in one episode."""

    seed: int
    """of the environment's reset; 31 bits, which every environment takes"""
    key: np.ndarray
    """uint32 [2]: the threefry key that the episode's actions are folded from, time by time"""


def split(total: int, parts: int) -> np.ndarray:
    """`total` in `parts` that differ by one at most, the larger ones first."""
    return np.full(parts, total // parts, np.int64) + (np.arange(parts) < total % parts)


def attempt_after(failures: int) -> int:
    """Which draw an episode uses after so many failures of its own.

    The first retry repeats the episode: most likely its process was killed from outside. From the second on
    it is another episode: a draw that always crashes its environment must not be tried for ever.
    """
    return max(0, failures - PATIENCE)


@dataclass(frozen=True)
class Plan:
    """A deployment of `population` explorers with `each` lanes; nothing in it depends on the machine."""

    seed: int
    deployment: int
    steps: int
    population: int = 1
    each: int = 1
    """lanes of every explorer"""
    groups: int = 1
    """groups of lanes that are acted for in turn"""

    def __post_init__(self) -> None:
        require("seed", self.seed, self.seed >= 0, "0 or more")
        for name in ("steps", "population", "each", "groups"):
            require(f"deploy.{name}", getattr(self, name), getattr(self, name) >= 1, "at least 1")
        even = self.each % self.groups == 0
        require("deploy.groups", self.groups, even, f"a divisor of each explorer's {self.each} lanes")

    @classmethod
    def of(cls, config: DeployConfig, *, seed: int, deployment: int, population: int = 1) -> Plan:
        """The plan that the settings ask for.

        Every explorer has `lanes // population` lanes, at least one. If that number is even there are two
        groups, so that one is stepped while the other is acted for; otherwise there is one. `deploy.groups`
        asks for more of them; what does not divide the lanes is lowered until it does.
        """
        each = max(1, config.lanes // population)
        groups = config.groups or (1 if each % 2 else 2)
        groups = next(count for count in range(min(groups, each), 0, -1) if each % count == 0)
        return cls(seed, deployment, config.steps, population, each, groups)

    @property
    def lanes(self) -> int:
        """Environments at once. Lanes are explorer-major: lane = explorer * each + i."""
        return self.population * self.each

    def owner(self, lane: int) -> tuple[int, int]:
        """The explorer of a lane, and which of its lanes it is."""
        return divmod(lane, self.each)

    def lane_of(self, key: EpisodeKey) -> int:
        """The lane that an episode belongs to."""
        return key.explorer * self.each + key.lane

    def budgets(self) -> np.ndarray:
        """Steps of every lane, [population, each]; 0 where there are more lanes than steps."""
        return np.stack([split(share, self.each) for share in split(self.steps, self.population).tolist()])

    def group_lanes(self) -> list[np.ndarray]:
        """The lanes of each group, explorer-major, with equally many of every explorer.

        Which of its lanes an explorer has in a group rotates, so that workers, which own every so many-th
        lane, have their share of each group.
        """
        size = self.each // self.groups
        explorers = np.arange(self.population)
        return [
            (
                (explorers * self.each + (explorers + group) % self.groups * size)[:, None] + np.arange(size)
            ).ravel()
            for group in range(self.groups)
        ]

    def draw(self, key: EpisodeKey, attempt: int = 0) -> Draw:
        """What episode `key` draws from, at this attempt."""
        sequence = np.random.SeedSequence(self.seed, spawn_key=(self.deployment, *key, attempt))
        seed, *words = sequence.generate_state(3)
        return Draw(int(seed) >> 1, np.array(words, np.uint32))

    def to_json(self) -> dict[str, Any]:
        """What decides the bytes of the deployment."""
        names = ("seed", "deployment", "steps", "population", "each", "groups")
        return {name: getattr(self, name) for name in names}


class Stream:
    """One lane's episodes in their order: which is next, and how many steps the lane still has."""

    def __init__(self, plan: Plan, lane: int, budget: int, done: Mapping[int, int]):
        """`done` are the steps of the episodes that are stored already, by number."""
        self._plan = plan
        self._explorer, self._lane = plan.owner(lane)
        self._done = set(done)
        self.remaining = budget - sum(done.values())
        self.failures = 0
        """of the episode that is next"""
        self._number = -1
        self._advance()

    @property
    def key(self) -> EpisodeKey:
        """The episode that is next or under way."""
        return EpisodeKey(self._explorer, self._lane, self._number)

    def draw(self) -> Draw:
        """What that episode draws from."""
        return self._plan.draw(self.key, attempt_after(self.failures))

    def finish(self, steps: int) -> None:
        """The episode is done."""
        self.remaining -= steps
        self.failures = 0
        self._advance()

    def _advance(self) -> None:
        self._number += 1
        while self._number in self._done:
            self._number += 1


def streams(
    plan: Plan, finished: Mapping[EpisodeKey, int], only: Container[int] | None = None
) -> list[Stream]:
    """The stream of every lane, given the steps of the episodes that are stored already.

    Lanes that are not among `only` have no budget: somebody else collects them.
    """
    done: list[dict[int, int]] = [{} for _ in range(plan.lanes)]
    for key, steps in finished.items():
        done[plan.lane_of(key)][key.episode] = steps
    budgets = plan.budgets().ravel().tolist()
    if only is not None:
        budgets = [
            budget if lane in only else sum(done[lane].values()) for lane, budget in enumerate(budgets)
        ]
    return [Stream(plan, lane, budgets[lane], done[lane]) for lane in range(plan.lanes)]
