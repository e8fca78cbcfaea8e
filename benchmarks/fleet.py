"""Collecting on a Ray cluster against collecting on one machine, with as many cores, workers and runners.

    python benchmarks/fleet.py --out benchmarks/fleet.json

Explorers of the demo's size in FourRooms with long episodes. Both engines run on the same cores, in turns, and are
measured the same way: from the first fifth of the steps to the last, so that neither start-up nor compilation is in
it. Other work on the machine slows some repeats: rates are the best of them, and processor time, which hardly
depends on other work, is given beside, by who spent it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from cascade.config import EnvConfig, RunConfig
from cascade.data.journal import Journal
from cascade.deploy import Plan, RandomPolicy, collect, collect_fleet, fleet, vectorise
from cascade.deploy.turns import Turns
from cascade.envs import InProcess, spec_of
from cascade.presets import preset
from cascade.run.bench_collect import explorers
from cascade.run.machine import describe, installed

EPISODE = 1_000
"""Steps of an episode: long."""
TICK = os.sysconf("SC_CLK_TCK")
OF_RAY = ("/ray/core/src/ray/", "/ray/_private/", "/ray/dashboard/", "ray::")
"""What the command lines of Ray's own processes hold."""


def config(steps: int) -> RunConfig:
    base = preset("demo")
    env = replace(base.env, id="minigrid:FourRooms-v0", time_limit=EPISODE)
    return replace(base, env=env, deploy=replace(base.deploy, steps=steps))


def processes() -> dict[int, tuple[int, str, float]]:
    """Parent, command and processor seconds of every process."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            found[int(folder.name)] = int(stat[1]), command, (int(stat[11]) + int(stat[12])) / TICK
    return found


def below(root: int, there: dict[int, tuple[int, str, float]]) -> set[int]:
    """A process and its descendants."""
    found, new = set(), {root}
    while new:
        found |= new
        new = {pid for pid, (parent, *_) in there.items() if parent in new} - found
    return found


class Meter:
    """Rates between the first fifth of a deployment and its end, and who spent processor time in between."""

    def __init__(self, steps: int):
        self._after, self.marks = steps // 5, []
        self.threads, self.cuda = {}, False

    def __call__(self, now) -> None:
        due = not self.marks or time.perf_counter() - self.marks[-1][0] > 0.5
        if now.steps < self._after or (now.steps < now.budget and not due):
            return
        there = processes()
        mine = below(os.getpid(), there)
        runners = [pid for pid in mine if there[pid][1].startswith("ray::Runner")]
        spent = {pid: sum(there[child][2] for child in below(pid, there)) for pid in runners}
        self.marks.append((time.perf_counter(), now.steps, spent, self._rest(mine, there, runners)))
        for pid in runners:
            self._look(pid)

    def _rest(self, mine: set[int], there: dict, runners: list[int]) -> dict[str, float]:
        """This process and its workers, and what belongs to Ray itself."""
        collecting = set().union(*(below(pid, there) for pid in runners)) if runners else set()
        cluster = {pid for pid in mine - collecting if any(part in there[pid][1] for part in OF_RAY)}
        return {
            "driver": sum(there[pid][2] for pid in mine - collecting - cluster),
            "cluster": sum(there[pid][2] for pid in cluster),
        }

    def _look(self, pid: int) -> None:
        try:
            threads = {
                task.name: sum(map(int, (task / "stat").read_text().rpartition(")")[2].split()[11:13]))
                for task in Path(f"/proc/{pid}/task").iterdir()
            }
            self.cuda |= "libcuda" in Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            return
        first, _ = self.threads.get(pid, (threads, threads))
        self.threads[pid] = first, threads

    def result(self) -> dict[str, float]:
        (began, before, spent, rest), (ended, steps, spent_at_end, rest_at_end) = (
            self.marks[0],
            self.marks[-1],
        )
        count, seconds = steps - before, ended - began
        runners = {pid: used - spent.get(pid, used) for pid, used in spent_at_end.items()}
        found = {name: 1e6 * (rest_at_end[name] - used) / count for name, used in rest.items()}
        found["runners"] = 1e6 * sum(runners.values()) / count
        return {
            "steps_per_s": count / seconds,
            "cpu_us": {name: round(value, 1) for name, value in found.items()},
            "collecting_us": found["runners"] + found["driver"],
            "runner_cores": max(runners.values(), default=0.0) / seconds,
        }

    def busy_threads(self) -> int:
        """Threads of a runner that took more than a twentieth of its time."""
        worst = 0
        for first, last in self.threads.values():
            used = [ticks - first.get(name, 0) for name, ticks in last.items()]
            worst = max(worst, sum(one > 0.05 * sum(used) for one in used))
        return worst


def compare(cores: int, steps: int, repeats: int) -> dict:
    """Both engines in turns, on so many cores, with as many workers and runners."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    settings = config(steps)
    deploy = replace(settings.deploy, workers=cores, runners=cores, engine="ray")
    spec = spec_of(settings.env)
    policy = explorers(spec, settings)
    plan = Plan.of(deploy, seed=0, deployment=0, population=settings.population)
    began = time.perf_counter()
    ray = fleet.connect("")
    started = time.perf_counter() - began
    names = {"local": cores} | ({"local_one_worker": 1} if cores > 1 else {})
    results: dict[str, list] = {name: [] for name in (*names, "ray")}
    meters, starts, size = [], [], 0
    for _ in range(repeats):
        for name, workers in names.items():
            fewer = replace(deploy, workers=workers)
            with tempfile.TemporaryDirectory() as folder, vectorise(settings.env, fewer, plan) as envs:
                meter = Meter(steps)
                collect(policy, envs, Journal(folder, 0, spec), plan, fewer, progress=meter)
                results[name].append(meter.result())
                size = sum(p.stat().st_size for p in Path(folder).rglob("*.npy"))
        with tempfile.TemporaryDirectory() as folder:
            meter, began = Meter(steps), time.perf_counter()
            collect_fleet(policy, Journal(folder, 0, spec), plan, settings.env, deploy, progress=meter)
            results["ray"].append(meter.result())
            starts.append(meter.marks[0][0] - began - meter.marks[0][1] / meter.result()["steps_per_s"])
            meters.append(meter)
    ray.shutdown()
    found = {
        name: {
            "best_steps_per_s": round(max(r["steps_per_s"] for r in repeated)),
            "steps_per_s": [round(r["steps_per_s"]) for r in repeated],
            "least_cpu_us_per_step": round(min(r["collecting_us"] for r in repeated), 1),
            "cpu_us_per_step": [r["cpu_us"] for r in repeated],
        }
        for name, repeated in results.items()
    }
    best, local = found["ray"], max((found[name] for name in names), key=lambda x: x["best_steps_per_s"])
    return {
        "cores": cores,
        "steps": steps,
        "lanes": plan.lanes,
        "groups": plan.groups,
        **found,
        "ray_over_best_local": round(best["best_steps_per_s"] / local["best_steps_per_s"], 3),
        "bytes_per_step": round(size / steps, 1),
        "kb_per_s_and_runner": round(1e-3 * best["best_steps_per_s"] * size / steps / cores, 1),
        "cluster_start_s": round(started, 1),
        "runner_start_s": round(min(starts), 1),
        "runner_threads": max(len(last) for meter in meters for _, last in meter.threads.values()),
        "runner_busy_threads": max(meter.busy_threads() for meter in meters),
        "runner_cores": round(max(r["runner_cores"] for r in results["ray"]), 2),
        "runner_maps_cuda": any(meter.cuda for meter in meters),
    }


def bookkeeping(observation: str, steps: int) -> dict:
    """What the one process that all runners report to can take: episodes to the journal, and the commit."""
    env = EnvConfig("minigrid:FourRooms-v0", observation, time_limit=EPISODE)
    plan = Plan(seed=0, deployment=0, steps=steps, each=4)
    with InProcess(env, plan.lanes) as envs:
        turns = Turns(RandomPolicy(envs.spec.action), envs, plan, np.arange(plan.lanes), {})
        while turns.active:
            turns.turn()
        episodes, spec = turns.harvest().episodes, envs.spec
    rates = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            journal, began = Journal(folder, 0, spec), time.perf_counter()
            for episode in episodes:
                journal.append(episode)
            journal.commit()
            rates.append(steps / (time.perf_counter() - began))
            size = sum(p.stat().st_size for p in Path(folder).rglob("*.npy"))
    return {
        "observation": observation,
        "steps": steps,
        "steps_per_s": round(max(rates)),
        "bytes_per_step": round(size / steps, 1),
        "mb_per_s": round(1e-6 * max(rates) * size / steps, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Ray against one machine.")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--cores", type=int, default=0, help="measure this one only, and print it")
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    if args.cores:
        print(json.dumps(compare(args.cores, args.steps, args.repeats)))
        return
    command = [sys.executable, __file__, "--steps", str(args.steps), "--repeats", str(args.repeats)]
    compared = []
    for cores in (1, 2):
        found = subprocess.run(
            [*command, "--cores", str(cores)], stdout=subprocess.PIPE, text=True, check=True
        )
        compared.append(json.loads(found.stdout.splitlines()[-1]))
        print(json.dumps(compared[-1], indent=2))
    document = {
        "command": "python benchmarks/fleet.py --out benchmarks/fleet.json",
        "machine": describe() | {"ray": installed("ray")},
        "load_average": [round(x, 1) for x in os.getloadavg()],
        "engines": compared,
        "bookkeeping": [bookkeeping("grid", 64_000), bookkeeping("image", 8_000)],
    }
    if args.out:
        args.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(document["bookkeeping"]), jax.default_backend())


if __name__ == "__main__":
    main()
