"""One short run of each pixel family's small preset on an accelerator: learning curves and filmstrips.

    python benchmarks/short_runs.py --out results/short_runs.json --films docs/assets

One deployment of random actions, the world model and the explorers trained on it for a few minutes, and then
every explorer filmed from the same start. Writes after every family, so that a limit on time loses only what
is not yet done; a family whose run is there already is not run again, and `--presets` runs some of them and
leaves the others in the record as they are.
"""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tyro
from PIL import Image

from cascade.config import RunConfig
from cascade.presets import preset
from cascade.presets.smoke import smoke
from cascade.run.api import run
from cascade.run.folder import Folder
from cascade.run.machine import commit, describe
from cascade.run.results import Results


class Length(NamedTuple):
    """How long each part of a short run is."""

    deployed: int
    """environment steps of the deployment; Crafter without numba is slow"""
    model: int
    """gradient steps of the world model; in Montezuma's Revenge it learns the screen long before the small figure"""
    explorers: int
    """gradient steps of the explorers; Atari's learning rates are half of the others'"""


LENGTHS = {
    "dmc-walker": Length(10_000, 2_000, 600),
    "atari-montezuma": Length(50_000, 10_000, 10_000),
    "crafter": Length(2_000, 2_000, 600),
}
POINTS, FRAMES, SHOWN, SIDE = 40, 8, 5, 72
"""Points of a curve; frames of a filmstrip, explorers on it, and pixels of a frame."""


@dataclass(frozen=True)
class Args:
    """Short runs of the pixel families."""

    out: Path
    """JSON to write"""
    films: Path
    """folder for a filmstrip of each family"""
    runs: Path = Path("runs/short")
    """folder for the runs"""
    presets: tuple[str, ...] = tuple(LENGTHS)
    """presets to run"""
    workers: int = 14
    """worker processes that step environments"""
    smoke: bool = False
    """tiny sizes, to see whether it runs"""


def settings(args: Args, name: str) -> RunConfig:
    """The preset with one short deployment."""
    config = smoke(preset(name)) if args.smoke else preset(name)
    measure = replace(config.measure, levels=2, steps=250, pictures=1)
    if args.smoke:
        return replace(config, deployments=1, measure=replace(measure, steps=20))
    length = LENGTHS[name]
    return replace(
        config,
        deployments=1,
        model_steps=length.model,
        explorer_steps=length.explorers,
        deploy=replace(config.deploy, steps=length.deployed, workers=args.workers),
        measure=measure,
    )


def curve(lines: list[dict[str, Any]], phase: str, names: tuple[str, ...]) -> dict[str, list[float]]:
    """What a phase logged, at about POINTS of its moments; means over explorers."""
    own = [line for line in lines if line["phase"] == phase]
    chosen = [own[i] for i in np.unique(np.linspace(0, len(own) - 1, POINTS).astype(int))]
    found = {"step": [line["step"] for line in chosen]}
    for name in names:
        found[name] = [float(f"{np.mean(line['values'][name]):.5g}") for line in chosen]
    return found


def strip(films: np.ndarray) -> np.ndarray:
    """A row of frames for each of the first explorers, uint8 [height, width, 3]."""
    times = np.linspace(0, films.shape[1] - 1, FRAMES).round().astype(int)
    rows = []
    for film in films[:SHOWN]:
        frames = [np.asarray(Image.fromarray(film[t]).resize((SIDE, SIDE))) for t in times]
        rows.append(np.concatenate([np.pad(frame, ((0, 2), (0, 2), (0, 0))) for frame in frames], 1))
    return np.concatenate(rows)


def entry(folder: Folder, config: RunConfig) -> dict[str, Any]:
    """Curves and measures of a run."""
    results = Results.open(folder.results)
    lines = [json.loads(line) for line in folder.metrics.read_text(encoding="utf-8").splitlines()]
    seconds = {phase["phase"]: phase["seconds"] for phase in results.phases}
    explored = [line for line in lines if line["phase"] == "explore"][-1]["values"]
    return {
        "environment": config.env.id,
        "commit": commit(),
        "deployed_steps": config.deploy.steps,
        "model_steps": config.model_steps,
        "explorer_steps": config.explorer_steps,
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "world": curve(lines, "model", ("loss", "kl", "ensemble/loss")),
        "explorers": curve(lines, "explore", ("information_gain", "diversity", "entropy")),
        "pairwise_distance": explored["pairwise_distance"],
        "measures": {
            item["metric"] + (f"@{item['task']}" if item["task"] else ""): float(f"{item['value']:.5g}")
            for item in results.records
        },
    }


def main(args: Args) -> None:
    before = json.loads(args.out.read_text(encoding="utf-8"))["runs"] if args.out.exists() else {}
    result: dict[str, Any] = {
        "command": "python benchmarks/short_runs.py --out results/short_runs.json --films docs/assets",
        "machine": describe(),
        "runs": {name: found for name, found in before.items() if name in LENGTHS},
    }
    args.films.mkdir(parents=True, exist_ok=True)
    for name in args.presets:
        began, config, folder = time.perf_counter(), settings(args, name), Folder(args.runs / name)
        run(config, folder.path, preset=name)
        result["runs"][name] = entry(folder, config)
        with np.load(folder.measures(0, 0)) as arrays:
            Image.fromarray(strip(arrays["films"])).save(args.films / f"films-{name}.png", optimize=True)
        args.out.write_text(json.dumps(result) + "\n", encoding="utf-8")
        found = result["runs"][name]
        loss = found["world"]["loss"]
        print(
            f"{name}: {time.perf_counter() - began:.0f} s, loss {loss[0]:.1f} to {loss[-1]:.1f}, "
            f"{found['seconds']}, deployed distance {found['measures'].get('deployed_distance')}",
            flush=True,
        )


if __name__ == "__main__":
    main(tyro.cli(Args))
