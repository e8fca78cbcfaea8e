"""Why a policy does not find the goal of FourRooms: is it never seen, or not reached, and does the model forget?

The same episodes, none of which any result is reported on, for a saved policy (a folder that `cascade transfer`
writes) and for a scripted searcher with a perfect memory, which goes to the nearest place that shows something new,
and to the goal once it has seen it. In the episodes that the policy loses its world model is asked too: how surprised
is it (KL of posterior and prior, nats a step) by views that show a cell for the first time, and by views that do not?

    python benchmarks/minigrid_search.py --out results/fourrooms_search/seed-0.json \
        --policy runs/fourrooms/cascade/cascade/transfer/reward/deploy-004/seed-0
"""

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from cascade.config import EnvConfig
from cascade.envs import make
from cascade.run.machine import describe
from cascade.transfer.saved import Behaviour
from cascade.types import Batch
from cascade.world.model import WorldModel

Cell = tuple[int, int]
Known = dict[Cell, str | None]
"""every cell that was seen so far, with what is there"""
Place = tuple[int, int, int]
"""x, y and the direction"""
STEPS = 100
LEFT, RIGHT, FORWARD = 0, 1, 2
AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
LATE = 20
"""a goal first seen in so many last steps may be out of reach"""
SPANS = ((1, 20), (20, 40), (40, 60), (60, STEPS))
"""steps of an episode over which surprise is averaged"""


@dataclass(frozen=True)
class Args:
    """How searches for the goal end."""

    out: Path
    """JSON to write"""
    policy: Path
    """folder of the saved policy"""
    env: str = "minigrid:FourRooms-v0?compass=shown&actions=moves"
    """environment"""
    episodes: int = 100
    """episodes for each"""
    entropy: int = 0xBEEF
    """of the episodes' seeds; the evaluation of a transfer has another"""


@dataclass
class Episode:
    """One search."""

    found: bool = False
    seen_at: int | None = None
    """step at which the goal first came into sight"""
    rooms: set[tuple[bool, bool]] = field(default_factory=set)
    obs: list[Any] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    news: list[int] = field(default_factory=list)
    """cells of each step's view that had not been seen before"""


def in_view(world: Any) -> Iterator[tuple[Cell, str | None]]:
    """The cells that the agent sees, each with what is there."""
    _, visible = world.gen_obs_grid()
    size, ahead, right = world.agent_view_size, np.array(world.dir_vec), np.array(world.right_vec)
    corner = np.array(world.agent_pos) + ahead * (size - 1) - right * (size // 2)
    for i, j in zip(*np.nonzero(visible), strict=True):
        x, y = (int(c) for c in corner - ahead * j + right * i)
        if 0 <= x < world.width and 0 <= y < world.height:
            there = world.grid.get(x, y)
            yield (x, y), there and there.type


def scripted(known: Known, place: Place, view: int) -> int:
    """The first action on the shortest way to the goal, or else to a place that shows something new."""
    goal = next((cell for cell, kind in known.items() if kind == "goal"), None)
    came: dict[Place, tuple[Place, int] | None] = {place: None}
    queue = deque([place])
    while queue:
        here = queue.popleft()
        x, y, direction = here
        if (x, y) == goal if goal else _shows_news(known, here, view):
            first = FORWARD
            while (back := came[here]) is not None:
                here, first = back
            return first
        dx, dy = AHEAD[direction]
        step = (x + dx, y + dy)
        moves = {LEFT: (x, y, (direction - 1) % 4), RIGHT: (x, y, (direction + 1) % 4)}
        if known.get(step, "wall") != "wall":
            moves[FORWARD] = (*step, direction)
        for action, there in moves.items():
            if there not in came:
                came[there] = (here, action)
                queue.append(there)
    return RIGHT


def _shows_news(known: Known, place: Place, view: int) -> bool:
    """Whether straight ahead, before a wall, lies a cell that has not been seen."""
    x, y, direction = place
    dx, dy = AHEAD[direction]
    for distance in range(1, view):
        cell = (x + distance * dx, y + distance * dy)
        if cell not in known:
            return True
        if known[cell] == "wall":
            return False
    return False


def play(env: Any, seed: int, act: Callable[[Any, bool, Known], int]) -> Episode:
    """One episode."""
    world, episode = env.env, Episode()
    known: Known = {}
    now = env.reset(seed)
    for step in range(STEPS):
        view = dict(in_view(world))
        if "goal" in view.values() and episode.seen_at is None:
            episode.seen_at = step
        episode.news.append(len(view.keys() - known.keys()))
        x, y = (int(c) for c in world.agent_pos)
        known |= view | {(x, y): None}
        episode.rooms.add((x > world.width // 2, y > world.height // 2))
        action = act(now.obs, step == 0, known)
        episode.obs.append(now.obs)
        episode.actions.append(action)
        now = env.step(action)
        if now.terminated or now.truncated:
            break
    episode.found = now.rewards["reward"] > 0
    return episode


def summary(episodes: list[Episode]) -> dict[str, Any]:
    """How they ended."""
    lost = [episode for episode in episodes if not episode.found]
    steps = [len(episode.actions) for episode in episodes if episode.found]
    return {
        "episodes": len(episodes),
        "success": round(float(np.mean([episode.found for episode in episodes])), 3),
        "steps_when_found": round(float(np.mean(steps)), 1) if steps else None,
        "lost": len(lost),
        "lost_unseen": sum(episode.seen_at is None for episode in lost),
        "lost_seen_late": sum((episode.seen_at or 0) >= STEPS - LATE for episode in lost),
        "rooms_of_the_lost": round(float(np.mean([len(e.rooms) for e in lost])), 2) if lost else None,
        "lost_steps_without_news": round(float(np.mean([n == 0 for e in lost for n in e.news])), 3)
        if lost
        else None,
    }


def surprise(world: WorldModel, episodes: list[Episode]) -> list[dict[str, Any]]:
    """KL of steps with and without news, by their time in episodes that are all of the same length."""
    obs = {
        name: jnp.stack([jnp.stack([seen[name] for seen in episode.obs]) for episode in episodes])
        for name in episodes[0].obs[0]
    }
    actions = jnp.array([episode.actions for episode in episodes])
    first = jnp.zeros(actions.shape, bool).at[:, 0].set(True)
    batch = Batch(obs, actions, first, jnp.zeros(actions.shape, bool))
    states, posterior = world.observe(batch, world.rssm.noise(jax.random.key(0), *actions.shape))
    kl = np.asarray(world.rssm.kl(posterior, world.rssm.prior(states)))
    news = np.array([episode.news for episode in episodes]) > 0
    rows = []
    for low, high in SPANS:
        part, new = kl[:, low:high], news[:, low:high]
        means = {name: float(part[chosen].mean()) for name, chosen in (("news", new), ("no_news", ~new))}
        rows.append({"steps": [low, high], "kl": means, "share_of_news": float(new.mean())})
    return rows


def main(args: Args) -> None:
    env = make(EnvConfig(args.env, observation="grid"))
    seeds = np.random.SeedSequence(args.entropy).generate_state(args.episodes).astype(np.int64) >> 1

    def search(act: Callable[[Any, bool, Known], int]) -> list[Episode]:
        return [play(env, int(seed), act) for seed in seeds]

    def searcher(_obs: Any, _first: bool, known: Known) -> int:
        world = env.env
        x, y = (int(c) for c in world.agent_pos)
        return scripted(known, (x, y, int(world.agent_dir)), world.agent_view_size)

    settings = {"env": args.env, "episodes": args.episodes, "entropy": args.entropy}
    command = f"python benchmarks/minigrid_search.py --policy {args.policy} --out {args.out}"
    result: dict[str, Any] = {"command": command, "machine": describe(), "settings": settings}
    result["scripted"] = summary(search(searcher))
    print("scripted", result["scripted"], flush=True)
    policy = Behaviour.load(args.policy)
    player = policy.player()
    episodes = search(lambda obs, first, _: int(player(obs, first=first)))
    lost = [episode for episode in episodes if not episode.found]
    result["policy"] = summary(episodes) | {
        "surprise_of_the_lost": surprise(policy.world, lost) if lost else []
    }
    print("policy", result["policy"], flush=True)
    args.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Args))
