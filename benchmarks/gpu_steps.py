"""The step times of the benchmarks page: full-size and compact models, on whatever device JAX finds.

python benchmarks/gpu_steps.py --out benchmarks/gpu_steps.json
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import jax

from cascade.config import EnvConfig, RunConfig, SampleConfig
from cascade.presets import preset
from cascade.run import bench
from cascade.run.machine import describe
from cascade.specs import ActionSpec, EnvSpec, ObservationSpec

PIXELS = EnvSpec("pixels", {"image": ObservationSpec("image", (64, 64, 3))}, ActionSpec("discrete", 18))
GRID = EnvSpec("grid", {"grid": ObservationSpec("grid", (7, 7, 3), (11, 6, 4))}, ActionSpec("discrete", 7))


def population(config: RunConfig, size: int, starts: int) -> RunConfig:
    agent = replace(config.explore.agent, starts=starts)
    return replace(config, explore=replace(config.explore, population=size, agent=agent))


def compact_model() -> RunConfig:
    """A small symbolic model whose sizes stay as they are, whatever the presets become."""
    given = preset("minigrid-fourrooms")
    agent = replace(given.explore.agent, starts=128)
    return replace(
        given,
        sample=replace(given.sample, batch=16, length=40),
        world=replace(
            given.world, deter=256, hidden=256, stoch=16, classes=16, prior="independent", mlp_units=256
        ),
        ensemble=replace(given.ensemble, units=256, beside=True),
        explore=replace(given.explore, agent=agent),
    )


def cases(smoke: bool) -> dict[str, tuple]:
    full = RunConfig(env=EnvConfig(), sample=SampleConfig(batch=16, length=50))
    full = replace(full, world=replace(full.world, unroll=5))
    compact = compact_model()
    if smoke:
        full = replace(
            full, world=replace(preset("demo").world, cnn_depth=4), sample=SampleConfig(batch=2, length=5)
        )
        full = replace(full, ensemble=preset("demo").ensemble, explore=preset("demo").explore)
        compact = preset("demo")
    symbolic = preset("minigrid-fourrooms" if not smoke else "demo")
    world, explorers = bench.world_model_step, bench.explorers_step
    starts = 0 if not smoke else 8
    return {
        "world model, full": (world, PIXELS, full, 20, 1),
        "explorers, full, P=10, 800 starts": (explorers, PIXELS, population(full, 10, starts), 10, 1),
        "explorers, full, P=1, 800 starts": (explorers, PIXELS, population(full, 1, starts), 10, 1),
        "explorers, full, P=10, 80 starts": (explorers, PIXELS, population(full, 10, starts or 80), 10, 1),
        "world model, compact, 1 seed": (world, GRID, compact, 50, 1),
        "world model, compact, 10 seeds": (world, GRID, compact, 50, 10),
        "explorers, compact, P=10, 1 seed": (explorers, GRID, compact, 50, 1),
        "explorers, compact, P=10, 10 seeds": (explorers, GRID, compact, 50, 10),
        "world model, minigrid-fourrooms, 5 seeds": (world, GRID, symbolic, 50, 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, to try the script itself")
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose name contains one of these")
    args = parser.parse_args()
    rates = {name: bench.matrix_rate(name) / 1e12 for name in ("bfloat16", "float32")}
    results: dict = {"machine": describe(), "matrix_tflop_per_s": rates, "steps": {}}
    for name, (measure, spec, config, per_call, seeds) in cases(args.smoke).items():
        if not any(part in name for part in args.only):
            continue
        result = measure(spec, config, per_call=2 if args.smoke else per_call, seeds=seeds)
        result["share_of_matrix_rate"] = round(result["tflop_per_s"] / rates[config.world.precision], 3)
        results["steps"][name] = result
        print(
            f"{name:40s} {result['ms']:9.2f} ms  {result['gflop']:9.1f} GFLOP  {result['tflop_per_s']:7.1f} TFLOP/s"
            f"  first call {result['first_call_s']:.0f} s",
            flush=True,
        )
        args.out.write_text(json.dumps(results, indent=2) + "\n")
        jax.clear_caches()


if __name__ == "__main__":
    main()
