"""Kill runs with SIGKILL at random moments of every phase, start them again, and compare with one never killed.

    python tests/run/kills.py --kills 20

Each run is killed once in a phase that is drawn beforehand, at a random moment after the phase was announced, and
then continued by the same command until it ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SETTINGS = [
    *("run", "demo", "--smoke", "--env", "probe:chain", "--env.observation", "auto", "--env.time-limit", "8"),
    *("--deploy.steps", "600", "--model-steps", "60", "--explorer-steps", "60", "--checkpoint-seconds", "0"),
]
LONGEST = 300.0  # seconds of one process
TITLES = ("deploying", "world model", "explorers", "measuring")


@dataclass(frozen=True)
class Moment:
    """When to kill: so many seconds after a phase of a deployment was announced."""

    deployment: int
    title: str
    seconds: float

    @property
    def line(self) -> str:
        return f"deployment {self.deployment + 1}/2, {self.title}"


def command(out: Path, *more: str) -> list[str]:
    return [sys.executable, "-c", "from cascade.cli import main; main()", *SETTINGS, "--out", str(out), *more]


def environment(cache: Path) -> dict[str, str]:
    """All runs share compiled programs, so that a restart takes seconds."""
    own = {name: value for name, value in os.environ.items() if name != "CASCADE_COMPILATION_CACHE"}
    return own | {"XDG_CACHE_HOME": str(cache), "JAX_PLATFORMS": "cpu"}


def finish(out: Path, cache: Path) -> None:
    """Run to the end."""
    done = subprocess.run(
        command(out), env=environment(cache), capture_output=True, text=True, check=False, timeout=LONGEST
    )
    assert done.returncode == 0, done.stderr[-2000:]


def kill_at(out: Path, cache: Path, moment: Moment, number: int = signal.SIGKILL) -> tuple[bool, int, str]:
    """Start, and send the signal at the moment; whether it was still running then, its exit code, its words."""
    process = subprocess.Popen(command(out), env=environment(cache), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    words = []
    for line in process.stderr:
        words.append(line)
        if line.startswith(moment.line):
            time.sleep(moment.seconds)
            break
    alive = process.poll() is None
    process.send_signal(number)
    words.append(process.communicate(timeout=LONGEST)[1])
    return alive, process.returncode, "".join(words)


def summary(out: Path) -> dict[str, object]:
    """What must not depend on kills: weights, data, results, and which steps were logged."""
    import numpy as np
    from run_helpers import saved_state

    from cascade.run.api import open_run
    from cascade.run.checkpoint import Checkpoints, named_leaves
    from cascade.run.folder import Folder

    run = open_run(out)
    checkpoints = Checkpoints(Folder(out).checkpoints(run.seeds), read_only=True)
    weights = hashlib.blake2b()
    for name, leaf in sorted(named_leaves(saved_state(run, run.seeds[0])).items()):
        weights.update(name.encode() + np.asarray(leaf).tobytes())
    lines = [json.loads(line) for line in Folder(out).metrics.read_text().splitlines()]
    steps = [(line["deployment"], line["phase"], line["step"]) for line in lines]
    store = run.store()
    meta = checkpoints.meta()
    return {
        "weights": weights.hexdigest(),
        "data": [deployment.digest for deployment in store.deployments],
        "budgets": [deployment.manifest.steps for deployment in store.deployments],
        "records": run.results,
        "steps": steps,
        "logged": [line["values"] for line in lines],
        "position": [meta["deployment"], meta["phase"], meta["step"]],
    }


def moments(count: int, seed: int) -> list[Moment]:
    """Moments that visit every phase of both deployments in turn, each at a random time in it."""
    rng = random.Random(seed)
    phases = [(k, title) for k in (0, 1) for title in TITLES]
    rng.shuffle(phases)
    return [Moment(*phases[i % len(phases)], rng.uniform(0.0, 0.6)) for i in range(count)]


def main(kills: int, seed: int = 0) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, cache = Path(folder), Path(folder) / "cache"
        finish(root / "whole", cache)
        whole = summary(root / "whole")
        assert whole["budgets"] == [600, 600]
        hits = 0
        for i, moment in enumerate(moments(kills, seed)):
            out = root / f"killed-{i}"
            alive, _, _ = kill_at(out, cache, moment)
            finish(out, cache)
            same = summary(out) == whole
            hits += alive
            print(
                f"{moment.line} + {moment.seconds:.2f} s: {'same' if same else 'DIFFERENT'}, killed: {alive}",
                flush=True,
            )
            assert same
        print(f"{kills} runs, {hits} killed while running: all ended with the same weights, data and records")


if __name__ == "__main__":
    main(int(sys.argv[sys.argv.index("--kills") + 1]) if "--kills" in sys.argv else 20)
