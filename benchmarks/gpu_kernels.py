"""Which kernels a training step spends its time in.

    python benchmarks/gpu_kernels.py --case 'explorers, full, P=10, 800 starts' --top 40

Cases are those of `gpu_steps.py`. One compiled call is traced by JAX's profiler after it has been timed, and the
device's events are added up by name: milliseconds and launches for each step.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from gpu_steps import cases

from cascade.run import bench
from cascade.run.bench import Times, time_calls


def kernels(folder: Path, device: str) -> dict[str, tuple[Counter[str], Counter[str]]]:
    """Nanoseconds and launches by kernel, for each stream of the device."""
    path = next(folder.rglob("*.xplane.pb"))
    found = {}
    for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
        if device in plane.name:
            for line in plane.lines:
                spent, count = Counter[str](), Counter[str]()
                for event in line.events:
                    spent[event.name] += int(event.duration_ns)
                    count[event.name] += 1
                if spent:
                    found[f"{plane.name}, {line.name}"] = spent, count
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of a step by kernel.")
    parser.add_argument("--case", default="explorers, full, P=10, 800 starts")
    parser.add_argument("--top", type=int, default=40, help="kernels of each stream to print")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, to try the script itself")
    args = parser.parse_args()
    measure, spec, config, per_call, seeds = cases(args.smoke)[args.case]
    folder = Path(tempfile.mkdtemp())

    def traced(call: Callable[[], Any], repeats: int = 5, seconds: float = 0.0) -> Times:
        times = time_calls(call, repeats, seconds)
        with jax.profiler.trace(str(folder)):
            jax.block_until_ready(call())
        return times

    bench.time_calls = traced
    result = measure(spec, config, per_call=2 if args.smoke else per_call, seeds=seeds)
    steps = result["steps_per_call"]
    for stream, (spent, count) in kernels(folder, "CPU" if args.smoke else "GPU").items():
        print(f"{stream}: {sum(spent.values()) / 1e6 / steps:.2f} ms a step")
        for name, nanoseconds in spent.most_common(args.top):
            print(f"{nanoseconds / 1e6 / steps:9.3f} ms {count[name] / steps:7.1f}x  {name[:140]}")
    print(result)


if __name__ == "__main__":
    main()
