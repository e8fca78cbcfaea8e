"""One world model trained by two processes, as on two hosts: each reads half of every batch, both end with one model.

    python examples/two_hosts.py

starts both processes here, on the CPU. On a cluster, start one on each host, all with the first one's address:

    python examples/two_hosts.py --coordinator HOST:PORT --processes 2 --process 0

Every process runs the same program. What differs is which sequences of a batch it reads: its own share, which
`make_array_from_process_local_data` joins to the batch that all of them see. XLA adds the gradients up.
"""

import argparse
import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from cascade.config import WorldConfig
from cascade.nn.learner import Learner
from cascade.specs import ActionSpec, EnvSpec, ObservationSpec
from cascade.types import Batch
from cascade.world import model
from cascade.world.model import WorldModel

SPEC = EnvSpec("example", {"vector": ObservationSpec("vector", (5,))}, ActionSpec("discrete", 3))
CONFIG = WorldConfig(deter=24, hidden=16, stoch=4, classes=5, mlp_layers=1, mlp_units=16, precision="float32")
SHAPE = 8, 6
"""Sequences of a batch, over all processes, and rows of each."""


def batch_of(step: int, join: Callable[[np.ndarray], jax.Array]) -> Batch:
    """The batch of a step, made up here; `join` takes this process's share of an array and gives the whole."""
    rng = np.random.default_rng(step)
    first = np.zeros(SHAPE, bool)
    first[:, 0] = True
    vector = rng.normal(size=(*SHAPE, 5)).astype(np.float32)
    action = rng.integers(0, 3, SHAPE).astype(np.int32)
    return Batch({"vector": join(vector)}, join(action), join(first), join(np.zeros(SHAPE, bool)))


def train(steps: int) -> dict[str, object]:
    """A few gradient steps over all devices of all processes: the losses, and a checksum of what was learned."""
    mesh = Mesh(jax.devices(), ("devices",))
    whole, divided = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("devices"))
    share = SHAPE[0] // jax.process_count()
    mine = slice(jax.process_index() * share, (jax.process_index() + 1) * share)

    def create(key):
        return Learner.create(WorldModel(SPEC, CONFIG, key=key), CONFIG.optimizer)

    def step_of(learner, batch, key):
        learner, _, metrics = model.step(learner, batch, key)
        return learner, metrics

    learner = jax.jit(create, out_shardings=whole)(jax.random.key(0))
    train_step = jax.jit(step_of, out_shardings=whole, donate_argnums=0)
    losses = []
    for step in range(steps):
        batch = batch_of(step, lambda x: jax.make_array_from_process_local_data(divided, x[mine]))
        learner, metrics = train_step(learner, batch, jax.random.key(step))
        losses.append(float(metrics["loss"]))
    digest = hashlib.blake2b(digest_size=16)
    for leaf in jax.tree.leaves(learner):
        digest.update(np.asarray(leaf.addressable_data(0)).tobytes())
    return {"devices": len(jax.devices()), "losses": losses, "model": digest.hexdigest()}


def start_here(processes: int, steps: int) -> int:
    """All processes on this machine; the worst of their exit codes."""
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, "--coordinator", f"localhost:{port}", "--processes", str(processes)]
    running = [
        subprocess.Popen(
            [*command, "--process", str(i), "--steps", str(steps)], env=os.environ | {"JAX_PLATFORMS": "cpu"}
        )
        for i in range(processes)
    ]
    return max(abs(process.wait()) for process in running)


def main() -> None:
    """One process of several, or all of them on this machine."""
    parser = argparse.ArgumentParser(description="One world model trained by several processes.")
    parser.add_argument("--coordinator", help="host:port of the first; without it, all are started here")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--process", type=int, default=0, help="number of this one")
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    if not args.coordinator:
        sys.exit(start_here(args.processes, args.steps))
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(args.coordinator, args.processes, args.process)  # before any device is used
    sys.stdout.write(json.dumps({"process": args.process, **train(args.steps)}) + "\n")
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
