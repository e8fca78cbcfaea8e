"""Each environment family's small preset on one accelerator: environments through the vectoriser, and both steps.

    python benchmarks/gpu_families.py --out benchmarks/gpu_families.json

Writes after every measurement, so that a limit on time loses only what is not yet measured.
"""

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import tyro

from cascade.envs import spec_of
from cascade.presets import preset
from cascade.presets.smoke import smoke
from cascade.run import bench, bench_collect
from cascade.run.machine import describe
from cascade.run.train import steps_per_call


@dataclass(frozen=True)
class Args:
    """Speeds of the small presets."""

    out: Path
    """JSON to write"""
    presets: tuple[str, ...] = ("dmc-walker", "atari-montezuma", "crafter")
    """presets to measure"""
    workers: int = 16
    """worker processes that step environments"""
    lanes: int = 64
    """environments at once"""
    seconds: float = 5.0
    """time for each measurement, compilation not counted"""
    smoke: bool = False
    """tiny sizes, to see whether it runs"""


def main(args: Args) -> None:
    result: dict = {"machine": describe(), "settings": vars(args) | {"out": args.out.name}, "presets": {}}
    began = time.perf_counter()
    for name in args.presets:
        config = smoke(preset(name)) if args.smoke else preset(name)
        config = replace(config, deploy=replace(config.deploy, workers=args.workers, lanes=args.lanes))
        spec, found = (
            spec_of(config.env),
            {"environment": config.env.id, "observation": config.env.observation},
        )
        result["presets"][name] = found
        size = steps_per_call(spec, config.model_steps)

        def note(what: str, value: dict, found: dict = found, name: str = name) -> None:
            found[what] = value
            args.out.write_text(json.dumps(result, indent=2) + "\n")
            print(f"{time.perf_counter() - began:6.0f} s  {name}: {what}: {value}", flush=True)

        note("vectoriser", bench_collect.vectoriser(config, args.seconds))
        note("world", bench.world_model_step(spec, config, per_call=size, seconds=args.seconds))
        note("explorers", bench.explorers_step(spec, config, per_call=min(size, 10), seconds=args.seconds))
        jax.clear_caches()


if __name__ == "__main__":
    main(tyro.cli(Args))
