"""Write the results of runs as one small document that can be committed.

    python scripts/record.py runs/fourrooms --command 'cascade sweep ...' --out results/fourrooms.json

PATHS are run folders, or folders of them, as `cascade sweep` makes, or earlier records, whose entries are taken over.
Methods may have run on different days, and so may the seeds of one: runs of one name join. Each run becomes an entry,
named by its place under the path: where its settings differ from its preset, the seconds of every phase, and of every
metric one list of values for each seed, by deployment.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from cascade.presets import preset
from cascade.run.api import Run, open_run
from cascade.run.folder import Folder
from cascade.run.results import Results
from cascade.run.settings import differences, to_document


def runs_under(path: Path) -> dict[str, Path]:
    """Run folders at or below a path, by name."""
    found = sorted(about.parent for about in path.rglob(Folder(Path()).about.name))
    return {str(run.relative_to(path)) if run != path else path.name: run for run in found}


def by_metric(run: Run) -> dict[str, dict[str, list[float | None]]]:
    """`metric` or `metric@task` -> seed -> values by deployment; None where there is none."""
    last = max(item["deployment"] for item in run.results)
    found: dict[str, dict[str, list[float | None]]] = {}
    for item in run.results:
        name = item["metric"] + (f"@{item['task']}" if item["task"] else "")
        values = found.setdefault(name, {}).setdefault(str(item["seed"]), [None] * (last + 1))
        if item["value"] is not None:
            values[item["deployment"]] = float(f"{item['value']:.6g}")
    return found


def entry(path: Path) -> dict[str, Any]:
    """One run."""
    run, folder = open_run(path), Folder(path)
    seconds: dict[str, list[float]] = {}
    for phase in sorted(Results.open(folder.results).phases, key=lambda phase: phase["deployment"]):
        seconds.setdefault(phase["phase"], []).append(round(phase["seconds"], 1))
    changed = differences(to_document(preset(run.preset)), to_document(run.settings))
    return {
        "method": run.settings.method,
        "preset": run.preset,
        "changed": changed,
        "machine": json.loads(folder.about.read_text(encoding="utf-8"))["machine"],
        "seconds": seconds,
        "metrics": by_metric(run),
    }


def joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """One entry of the seeds of two, whose settings are the same."""
    same = ("method", "preset", "changed")
    metrics = {name: seeds | second["metrics"][name] for name, seeds in first["metrics"].items()}
    seeds = [set(run["metrics"]["steps"]) for run in (first, second)]
    if seeds[0] & seeds[1] or any(first[name] != second[name] for name in same):
        raise SystemExit("runs of one name must have the same settings and different seeds")
    seconds = {
        phase: [round(one + other, 1) for one, other in zip(times, second["seconds"][phase], strict=True)]
        for phase, times in first["seconds"].items()
    }
    return first | {"seconds": seconds, "metrics": metrics}


def main() -> None:
    parser = argparse.ArgumentParser(description="Results of runs as one document.")
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--command", required=True, help="what made the runs")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    runs: dict[str, Any] = {}
    for path in args.paths:
        if path.suffix == ".json":
            found = json.loads(path.read_text(encoding="utf-8"))["runs"]
        else:
            found = {name: entry(run) for name, run in runs_under(path).items()}
        runs |= {name: joined(runs[name], run) if name in runs else run for name, run in found.items()}
    text = json.dumps({"command": args.command, "runs": runs}, separators=(",", ":"))
    # One line for each metric of each run, so that a change can be read.
    args.out.write_text(text.replace('},"', '},\n"').replace(':{"', ':{\n"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
