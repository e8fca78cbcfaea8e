"""Actions per second of each family: one environment of ours, twenty in worker processes, and ALE's own twenty.

python benchmarks/environments.py --out benchmarks/environments.json
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import ale_py
import numpy as np

from cascade.config import DeployConfig
from cascade.envs import atari, gl
from cascade.presets import preset
from cascade.run.bench_collect import environment, rate
from cascade.run.machine import describe

PRESETS = ("atari-montezuma", "crafter", "dmc-walker-state", "dmc-walker", "dmc-walker-paper")
LANES, WORKERS = 20, 2


def ale_vector(seconds: float) -> dict:
    """The emulator's own vector of environments, threads and all, set to what ours shows."""
    envs = ale_py.AtariVectorEnv(
        "montezuma_revenge",
        LANES,
        num_threads=WORKERS,
        img_height=64,
        img_width=64,
        stack_num=1,
        frameskip=4,
        noop_max=0,
        reward_clipping=False,
        repeat_action_probability=atari.STICKY,
        full_action_space=True,
        max_num_frames_per_episode=atari.FRAMES,
    )
    actions = np.random.default_rng(0).integers(18, size=(64, LANES))
    envs.reset(seed=0)

    def count(seconds: float) -> int:
        steps, until = 0, time.perf_counter() + seconds
        while time.perf_counter() < until:
            for action in actions:
                envs.step(action)
            steps += actions.size
        return steps

    result = rate(count, seconds)
    envs.close()
    return result | {"lanes": LANES, "threads": WORKERS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    results: dict = {"machine": describe(), "opengl": gl.choose(), "presets": {}}
    for name in PRESETS:
        config = replace(preset(name), deploy=DeployConfig(lanes=LANES, workers=WORKERS))
        found = environment(config, args.seconds)
        results["presets"][name] = found | {"action_repeat": config.env.action_repeat}
        print(name, found, flush=True)
    results["ale_vector"] = ale_vector(args.seconds)
    print("ale vector", results["ale_vector"], flush=True)
    args.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
