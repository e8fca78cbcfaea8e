"""Kill a runner of a fleet every few seconds while it collects, stop the head once, and compare with one machine.

    python tests/deploy/chaos.py --every 4

Explorers of the demo's size in FourRooms. Half-way the head is told to stop, and a second call goes on. What is
committed in the end must be, byte for byte, what the local engine commits without any death.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from cascade.data.journal import Journal
from cascade.data.store import Deployment
from cascade.deploy import Plan, collect, collect_fleet, fleet, vectorise
from cascade.envs import spec_of
from cascade.presets import preset
from cascade.run.bench_collect import explorers


def runner_processes() -> list[int]:
    """Process ids of the runners that this process's own cluster started, and of nobody else's."""
    parents: dict[int, int] = {}
    runners = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command, status = (folder / "cmdline").read_bytes(), (folder / "status").read_text()
            except OSError:
                continue
            parents[int(folder.name)] = int(status.partition("PPid:")[2].split()[0])
            if command.startswith(b"ray::Runner"):
                runners.append(int(folder.name))
    return [runner for runner in runners if os.getpid() in _ancestors(runner, parents)]


def _ancestors(process: int, parents: dict[int, int]) -> set[int]:
    found: set[int] = set()
    while process in parents and process not in found:
        found.add(process)
        process = parents[process]
    return found


class Chaos:
    """Looks on, kills a runner at random every so many seconds, and says when the head is to stop."""

    def __init__(self, every: float, stop_at: int, rng: random.Random):
        self._every, self._stop_at, self._rng = every, stop_at, rng
        self._last, self._steps = time.monotonic(), 0
        self.killed: list[int] = []

    def __call__(self, now) -> None:
        self._steps = now.steps
        if time.monotonic() - self._last < self._every:
            return
        if there := runner_processes():
            victim = self._rng.choice(there)
            os.kill(victim, signal.SIGKILL)
            self.killed.append(victim)
            self._last = time.monotonic()
            print(f"{now.steps:,} of {now.budget:,} steps: killed runner {victim}", flush=True)

    def stop(self) -> bool:
        return self._steps >= self._stop_at


def digests(folder: Path) -> dict[str, str]:
    """Of every file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def main() -> None:
    parser = argparse.ArgumentParser(description="A fleet whose runners are killed again and again.")
    parser.add_argument("--every", type=float, default=4.0, help="seconds between two kills")
    parser.add_argument("--steps", type=int, default=150_000, help="environment steps of the deployment")
    parser.add_argument("--runners", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0, help="who is killed")
    parser.add_argument("--out", type=Path, help="JSON to write")
    args = parser.parse_args()
    config = replace(preset("demo"), env=preset("minigrid-fourrooms").env)
    deploy = replace(config.deploy, steps=args.steps, engine="ray", runners=args.runners)
    spec, plan = spec_of(config.env), Plan.of(deploy, seed=0, deployment=1, population=config.population)
    policy, rng = explorers(spec, config), random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        local, ours = Path(folder, "local"), Path(folder, "fleet")
        with vectorise(config.env, deploy, plan) as envs:
            collect(policy, envs, Journal(local, 1, spec), plan, deploy)
        ray, killed, began = fleet.connect(""), [], time.monotonic()
        for stop_at in (args.steps // 2, args.steps + 1):
            chaos = Chaos(args.every, stop_at, rng)
            journal = Journal(ours, 1, spec)
            summary = collect_fleet(
                policy, journal, plan, config.env, deploy, progress=chaos, stop=chaos.stop
            )
            killed += chaos.killed
            print(f"interrupted: {summary.interrupted}, {summary.steps:,} steps kept", flush=True)
        ray.shutdown()
        table = Deployment.open(ours / "deploy-001").episodes
        keys = table[["explorer", "lane", "episode"]].tolist()
        result = {
            "every_s": args.every,
            "runners": args.runners,
            "kills": len(killed),
            "seconds": round(time.monotonic() - began, 1),
            "steps": int(table["steps"].sum()),
            "budget": args.steps,
            "duplicates": len(keys) - len(set(keys)),
            "same_bytes": digests(local / "deploy-001") == digests(ours / "deploy-001"),
        }
    print(json.dumps(result))
    if args.out:
        args.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    assert result["steps"] == result["budget"]
    assert result["duplicates"] == 0
    assert result["same_bytes"]


if __name__ == "__main__":
    main()
