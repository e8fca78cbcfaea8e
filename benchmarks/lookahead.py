"""What looking ahead is worth: saved policies with and without it, in the same episodes.

    cascade run minigrid-fourrooms --seeds 0-4 --out runs/fourrooms
    cascade transfer runs/fourrooms --lookahead 32
    python benchmarks/lookahead.py --run runs/fourrooms --out results/lookahead.json

Of every policy that the transfer saved with a lookahead: its success alone, and with so many imagined trajectories
behind each action and such a weight of what they earn. The first hundred episodes are those that transfers are scored
in; the others, on which settings may be chosen, come after them. Goes on where the record ends.
"""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro

import cascade
from cascade.data.store import deployment_folder
from cascade.errors import CascadeError
from cascade.run.api import Run
from cascade.run.machine import describe
from cascade.run.transfer import evaluate
from cascade.seeds import Seeds
from cascade.transfer.saved import Behaviour

REPORTED = 100
"""episodes of the evaluation that results are reported of"""


@dataclass(frozen=True)
class Args:
    """Policies with and without looking ahead."""

    run: Path
    """a run that was transferred with a lookahead"""
    out: Path
    """JSON to write"""
    task: str = "reward"
    """the task of the policies"""
    seeds: Seeds = ()
    """seeds; all of the run's without this"""
    settings: tuple[str, ...] = ("0", "32x20")
    """trajectories behind each action x weight of what they earn; 0 does not look ahead"""
    episodes: int = 300
    """episodes for each"""


def varied(one: Behaviour, setting: str) -> Behaviour:
    """The behaviour with this setting in place of its own."""
    draws, _, weight = setting.partition("x")
    if not int(draws):
        return replace(one, lookahead=None)
    if one.lookahead is None:
        raise CascadeError(
            f"the policy for {one.task} was saved without a lookahead; transfer with --lookahead 32 first"
        )
    own = one.lookahead.config
    config = replace(own, lookahead=int(draws), lookahead_weight=float(weight or own.lookahead_weight))
    return replace(one, lookahead=replace(one.lookahead, config=config))


def scored(run: Run, one: Behaviour, setting: str, args: Args, seed: int) -> dict[str, Any]:
    """Its success in the reported episodes and in the others."""
    transfer = replace(run.settings.transfer, episodes=args.episodes)
    deploy = replace(run.settings.deploy, lanes=args.episodes)
    began = time.perf_counter()
    config = replace(run.settings, transfer=transfer, deploy=deploy)
    played = evaluate(varied(one, setting).policy(), config, 1, jax.random.key(seed))
    found = played.returns[args.task][:, 0] > 0
    return {
        "success": float(found[:REPORTED].mean()),
        "success_in_others": float(found[REPORTED:].mean()) if args.episodes > REPORTED else None,
        "steps_when_found": round(float(played.steps[:, 0][found].mean()), 1) if found.any() else None,
        "seconds": round(time.perf_counter() - began, 1),
    }


def main(args: Args) -> None:
    run = cascade.open(args.run)
    place = deployment_folder(run.path / "transfer" / args.task, run.resolve(None))
    result: dict[str, Any] = {"settings": {}, "runs": {}}
    if args.out.exists():
        result = json.loads(args.out.read_text(encoding="utf-8"))
    words = (
        f"--run {args.run} --settings {' '.join(args.settings)} --episodes {args.episodes} --out {args.out}"
    )
    result["command"] = f"python benchmarks/lookahead.py {words}"
    result["machine"] = describe()
    result["settings"] = {"episodes": args.episodes, "reported": REPORTED, "environment": run.settings.env.id}
    for setting in args.settings:
        for seed in args.seeds or run.seeds:
            entries = result["runs"].setdefault(setting, {})
            if str(seed) in entries:
                continue
            behaviour = Behaviour.load(place / f"seed-{seed}")
            entries[str(seed)] = scored(run, behaviour, setting, args, seed)
            args.out.write_text(json.dumps(result) + "\n", encoding="utf-8")
            print(setting, seed, entries[str(seed)], flush=True)
        values = [entry["success"] for entry in result["runs"][setting].values()]
        print(f"{setting}: {100 * np.mean(values):.1f} %", flush=True)


if __name__ == "__main__":
    main(tyro.cli(Args))
