"""Several methods at once on one GPU, in pieces: the same command goes on until everything is done.

    python benchmarks/at_once.py --preset minigrid-fourrooms --seeds 0-4 --minutes 9 \
        --out runs/fourrooms --record results/fourrooms.json

Every method is a `cascade sweep --transfer` of its own, whose log is OUT/METHOD.log; where NVIDIA's MPS is there the
processes share the GPU by it. When the minutes are over each is interrupted, saves and ends. After every piece the
record holds what there is so far. What follows `--` are settings for all of them, also in the record:

    python benchmarks/at_once.py --seeds 0 --smoke --out runs/tiny --record runs/tiny.json -- --measure.pictures 0

Other seeds, or other methods, run on another day join an earlier record by `--join results/fourrooms.json`.
"""

import contextlib
import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import tyro

from cascade.run.api import open_run
from cascade.run.folder import Folder
from cascade.run.signals import listening
from cascade.run.sweep import METHODS, last_logged
from cascade.seeds import Seeds, format_seeds

ROOT = Path(__file__).parents[1]
LOOK, GRACE = 30.0, 60.0
"""Seconds between two lines of progress, and to save in when interrupted."""


@dataclass(frozen=True)
class Args:
    """Methods side by side, and one record of them."""

    out: Path
    """folder for the runs"""
    record: Path
    """JSON to write"""
    join: Path | None = None
    """an earlier record, whose methods and seeds are taken over"""
    preset: str = "minigrid-fourrooms"
    """where the settings are from"""
    methods: tuple[str, ...] = METHODS
    """methods to compare"""
    seeds: Seeds = tuple(range(5))
    """seeds"""
    minutes: float = 0.0
    """time for this piece; 0 goes on to the end"""
    smoke: bool = False
    """tiny sizes, to see whether it runs"""


def commands(args: Args, settings: list[str]) -> dict[str, list[str]]:
    """What every method's process is called with."""
    shared = ["--seeds", format_seeds(args.seeds), "--transfer", "--quiet", *settings]
    shared += ["--smoke"] if args.smoke else []
    return {
        method: ["sweep", args.preset, "--methods", method, "--out", str(args.out / method), *shared]
        for method in args.methods
    }


def run_folder(args: Args, method: str) -> Path:
    """Where that leaves the method's run."""
    return args.out / method / method


@contextlib.contextmanager
def sharing_the_gpu() -> Iterator[None]:
    """NVIDIA's daemon that lets processes compute at the same time, if this machine has it."""
    control = shutil.which("nvidia-cuda-mps-control")
    if control:
        subprocess.run([control, "-d"], check=False, capture_output=True)
    try:
        yield
    finally:
        if control:
            subprocess.run([control], input="quit\n", text=True, check=False, capture_output=True)


def work(args: Args, todo: Mapping[str, list[str]]) -> dict[str, int]:
    """Run them all until they end, the time is over or somebody asks to stop; how each ended."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    for method, words in todo.items():
        with (args.out / f"{method}.log").open("ab") as log:
            running[method] = subprocess.Popen(
                [sys.executable, "-m", "cascade", *words], stdout=log, stderr=log, start_new_session=True
            )
    began = looked = time.monotonic()
    deadline = began + 60 * args.minutes if args.minutes else float("inf")
    asked = False
    with listening() as stop:
        while any(process.poll() is None for process in running.values()):
            now = time.monotonic()
            if not asked and (stop() or now > deadline):
                asked, deadline = True, min(now, deadline)
                for process in running.values():
                    process.send_signal(signal.SIGINT)
            if asked and now > deadline + GRACE:
                for process in running.values():
                    process.kill()
            if now - looked > LOOK:
                looked = now
                standing = (f"{m}: {last_logged(Folder(run_folder(args, m)).metrics)}" for m in running)
                print(f"{now - began:5.0f} s  " + "; ".join(standing), flush=True)
            time.sleep(0.2)
    return {method: process.returncode for method, process in running.items()}


def measured(args: Args) -> list[str]:
    """Methods whose runs have a result."""
    return [
        method
        for method in args.methods
        if Folder(run_folder(args, method)).about.exists() and open_run(run_folder(args, method)).results
    ]


def write(args: Args, methods: list[str], settings: list[str]) -> None:
    """The record of what there is, with the commands that made it."""
    words = ["python", "benchmarks/at_once.py", "--preset", args.preset, "--methods", *args.methods]
    words += ["--seeds", format_seeds(args.seeds), "--out", str(args.out), "--record", str(args.record)]
    sources, before = [str(args.out / method) for method in methods], ""
    if args.join is not None:
        words += ["--join", str(args.join)]
        sources.insert(0, str(args.join))
        before = json.loads(args.join.read_text(encoding="utf-8"))["command"] + "\n"
    words += ["--smoke"] if args.smoke else []
    command = before + shlex.join(words + (["--", *settings] if settings else []))
    script = [sys.executable, str(ROOT / "scripts" / "record.py"), *sources]
    subprocess.run([*script, "--command", command, "--out", str(args.record)], check=True)
    print(f"{args.record}: {', '.join(methods)}")


def main(args: Args, settings: list[str]) -> None:
    args.out.mkdir(parents=True, exist_ok=True)
    with sharing_the_gpu():
        ended = work(args, commands(args, settings))
    for method, code in ended.items():
        last = (args.out / f"{method}.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        print(f"{method}: exit code {code}; {last[-1] if last else 'it said nothing'}")
    if names := measured(args):
        write(args, names, settings)
    if any(ended.values()):
        raise SystemExit("not all of them are done; the same command goes on from here")


if __name__ == "__main__":
    words = [*sys.argv[1:], "--"]
    end = words.index("--")
    main(tyro.cli(Args, args=words[:end]), words[end + 1 : -1])
