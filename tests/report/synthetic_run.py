"""A fabricated run folder, for tests of the report alone: plausible shapes and curves, no result of anything.

python tests/report/synthetic_run.py FOLDER       four methods, to look at a page by hand
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from cascade.report.predictions import strip

SKILL = {"cascade": 1.0, "pp2e": 0.72, "p2e": 0.55, "random": 0.35}
SIDE = 19


def four_rooms(rng: np.random.Generator) -> np.ndarray:
    """Free cells of a FourRooms-like level, bool [W, H]."""
    free = np.zeros((SIDE, SIDE), dtype=bool)
    free[1:-1, 1:-1] = True
    middle = SIDE // 2
    free[middle, :] = free[:, middle] = False
    for low, high in ((1, middle), (middle + 1, SIDE - 1)):
        free[middle, rng.integers(low, high)] = True
        free[rng.integers(low, high), middle] = True
    return free


MOVES = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])


def walk(free: np.ndarray, steps: int, start: int, straight: float, rng: np.random.Generator) -> np.ndarray:
    """Cells of a walk that keeps its direction with the odds `straight`, int16 [steps, 2]."""
    cells = np.argwhere(free)
    here, move = cells[start % len(cells)], MOVES[rng.integers(4)]
    path = [here]
    for _ in range(steps - 1):
        there = here + move
        if free[tuple(there)]:
            here = there
        if not free[tuple(here + move)] or rng.random() > straight:
            move = MOVES[rng.integers(4)]
        path.append(here)
    return np.array(path, dtype=np.int16)


def picture(free: np.ndarray, tile: int = 8) -> np.ndarray:
    """A level drawn as MiniGrid does: dark floor with thin lines, gray walls, a green goal."""
    floor = np.full((tile, tile, 3), 0, np.uint8)
    floor[0], floor[:, 0] = 40, 40
    tiles = np.where(free.T[:, :, None, None, None], floor, np.full((tile, tile, 3), 100, np.uint8))
    goal = tuple(np.argwhere(free)[-5])
    tiles[goal[1], goal[0]] = (0, 200, 60)
    return tiles.transpose(0, 2, 1, 3, 4).reshape(SIDE * tile, SIDE * tile, 3)


def film(level: np.ndarray, path: np.ndarray, tile: int = 8) -> np.ndarray:
    frames = np.repeat(level[None], len(path), axis=0)
    for frame, (x, y) in zip(frames, path, strict=True):
        frame[y * tile + 1 : (y + 1) * tile, x * tile + 1 : (x + 1) * tile] = (220, 30, 30)
    return frames


def measure(folder: Path, seed: int, deployment: int, population: int, levels: int, steps: int) -> float:
    """Write one .npz and return the coverage in it."""
    rng = np.random.default_rng(99)
    free = np.stack([four_rooms(rng) for _ in range(levels)])
    rng = np.random.default_rng([seed, deployment, population])
    straight = 1 - 0.9 * 0.5**deployment
    starts = 61 * np.arange(population) * (deployment > 0) + 17
    walks = [[walk(room, steps, start, straight, rng) for room in free] for start in starts]
    paths = np.array(walks, dtype=np.int16)
    paths[:, 0, steps - 5 :] = -1  # an episode that ended early
    visits = np.zeros((population, levels, SIDE, SIDE), np.uint16)
    explorer, level, _ = np.nonzero(paths[..., 0] >= 0)
    x, y = paths[paths[..., 0] >= 0].T
    np.add.at(visits, (explorer, level, x, y), 1)
    pictures = np.stack([picture(room) for room in free[:3]])
    films = np.stack([film(pictures[1], paths[p, 1, : 12 * 5 : 5]) for p in range(population)])
    shares = visits.reshape(population, levels, -1) / visits.sum(axis=(2, 3))[..., None]
    distance = 0.5 * np.abs(shares[:, None] - shares[None]).sum(-1).mean(-1)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        folder / f"deploy-{deployment:03d}.npz",
        visits=visits,
        reachable=free,
        paths=paths,
        pictures=pictures,
        films=films,
        open_loop=strip(films[0], films[-1], 4),
        distance=distance.astype(np.float32),
    )
    return float(np.mean(((visits > 0).any(0) & free).sum((1, 2)) / free.sum((1, 2))))


def logs(rng: np.random.Generator, seed: int, deployment: int, population: int, steps: int) -> list[dict]:
    lines = []
    for step in range(0, steps, 20):
        age = deployment + step / steps
        loss = 3.5 * np.exp(-0.9 * age) + 0.4 + 0.05 * rng.normal()
        values = {"loss": loss, "loss/grid": 0.8 * loss, "kl": 1.2 + 0.3 * rng.random(), "ensemble": loss / 9}
        lines.append({"phase": "model", "step": step, "values": values})
        values = {
            "entropy": (1.8 - 0.25 * age + 0.1 * rng.normal(size=population)).tolist(),
            "information_gain": (0.6 * np.exp(-0.5 * age) + 0.03 * rng.random(population)).tolist(),
            "diversity": (np.log1p(age) + 0.1 * np.arange(population)).tolist(),
        }
        lines.append({"phase": "explore", "step": step, "values": values})
    extra = {"time": 1.8e9 + 1000 * deployment, "deployment": deployment, "seed": seed}
    return [extra | line for line in lines]


def transfer(run: Path, task: str, deployment: int, seeds: tuple[int, ...], skill: float) -> None:
    rng = np.random.default_rng([deployment, len(task)])
    steps = np.arange(0, 400, 20)
    curves = {
        "step": steps.tolist(),
        "reward_loss": np.exp(-steps / 90).tolist(),
        "return": (1 - np.exp(-steps / 150)).tolist(),
    }
    found = {}
    for seed in seeds:
        returns = (rng.random(40) < min(0.95, 0.15 + 0.3 * skill * deployment)).astype(float)
        mean = float(returns.mean())
        found[str(seed)] = {
            "success": mean,
            "return": 0.9 * mean,
            "episodes": 40,
            "returns": returns.tolist(),
            "reward_head": {},
            "labels": {},
            "curves": curves,
        }
    folder = run / "transfer" / task / f"deploy-{deployment:03d}"
    folder.mkdir(parents=True, exist_ok=True)
    document = {"task": task, "deployment": deployment, "seeds": found}
    (folder / "result.json").write_text(json.dumps(document))


def settings(method: str, population: int, deployments: int) -> dict:
    return {
        "method": method,
        "deployments": deployments,
        "model_steps": 600,
        "explorer_steps": 200,
        "env": {"id": "minigrid:FourRooms-v0", "observation": "grid", "image_size": 64},
        "deploy": {"steps": 12_000, "lanes": 32},
        "world": {"deter": 128, "stoch": 16, "optimizer": {"lr": 3e-4}},
        "explore": {"population": population, "weight": 0.3, "embedding": "final"},
    }


def write_run(
    run: Path,
    method: str = "cascade",
    seeds: tuple[int, ...] = (0, 1),
    deployments: int = 3,
    population: int = 4,
    levels: int = 4,
    steps: int = 80,
    tasks: tuple[str, ...] = ("goal",),
    environment: str = "minigrid:FourRooms-v0",
) -> Path:
    """A whole run folder; returns it."""
    population = population if method in ("cascade", "pp2e") else 1
    skill = SKILL[method]
    run.mkdir(parents=True, exist_ok=True)
    records: list[dict] = []
    phases, lines = [], []
    for deployment in range(deployments):
        for seed in seeds:
            rng = np.random.default_rng([seed, deployment, len(method)])
            folder = run / "measures" / f"seed-{seed}"
            covered = measure(folder, seed, deployment, population, levels, steps)
            values = {
                "coverage": skill * covered,
                "rewarding_episodes": float(rng.poisson(4 * skill * (deployment + 1))),
                "episodes": 120.0,
                "population_diversity": skill * (0.3 + 0.2 * deployment) + 0.03 * rng.random(),
                "dataset_diversity": 4 + skill * deployment + 0.3 * rng.random(),
                "held_out_loss": 2.4 * np.exp(-0.4 * deployment) + 0.1 * rng.random(),
                "information_gain": 0.5 * np.exp(-0.5 * deployment) + 0.05 * rng.random(),
            }
            base = {"seed": seed, "deployment": deployment, "task": None}
            records += [base | {"metric": name, "value": float(value)} for name, value in values.items()]
            lines += logs(rng, seed, deployment, population, 600)
        for task in tasks:
            transfer(run, task, deployment, seeds, skill)
        durations = {
            "deploy": 6.2,
            "model": 48.0,
            "explore": 0.0 if method == "random" else 31.5,
            "measure": 4.4,
        }
        phases += [
            {"phase": name, "deployment": deployment, "seconds": value * (1 + 0.1 * deployment), "steps": 600}
            for name, value in durations.items()
        ]
    common = {"format": 1, "preset": "demo", "method": method}
    document = common | {
        "seeds": list(seeds),
        "settings": settings(method, population, deployments),
        "environment": {
            "name": environment,
            "observations": {},
            "action": {},
            "tasks": list(tasks),
            "info": {},
        },
        "machine": {
            "cascade": "0.1.0",
            "python": "3.11",
            "platform": "Linux",
            "cores": 2,
            "devices": ["cpu"],
        },
        "created": "2026-11-16T05:00:00+00:00",
    }
    (run / "run.json").write_text(json.dumps(document))
    results = common | {"environment": environment, "records": records, "phases": phases}
    (run / "results.json").write_text(json.dumps(results))
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


if __name__ == "__main__":
    for number, name in enumerate(SKILL):
        size = 6 if number else 10
        write_run(
            Path(sys.argv[1]) / name, name, seeds=tuple(range(size)), deployments=4, tasks=("goal", "far")
        )
