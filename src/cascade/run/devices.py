"""Several devices of one host: seeds side by side on them, or one batch and one population divided among them.

Where the arrays lie decides it all: the compiled training phases are the same functions as on one device, and XLA
adds the sums between devices. Each phase takes as many devices as divide its seeds, or else its other axis: the
sequences of a batch for the models, the explorers for the population.

                  seeds divide      otherwise
    models        S of [S, ...]     whole on every device
    chunk         S of [S, K, B]    B of [S, K, B] for the models, whole for the explorers
    explorers     S of [S, P, ...]  P of [S, P, ...]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from cascade.config import RunConfig, require

SEEDS, POPULATION, BATCH = 0, 1, 2
"""Axes of the arrays: S of anything, P of [S, P, ...], B of [S, K, B, T, ...]."""
AXIS = "devices"


class Split(NamedTuple):
    """How one phase is divided: among how many devices, and whether by seeds."""

    devices: int
    by_seeds: bool


def split(devices: int, seeds: int, other: int) -> Split:
    """The most devices that divide the seeds, or else the `other` axis; seeds need no sums between devices."""
    for count in range(devices, 1, -1):
        for by_seeds, size in ((True, seeds), (False, other)):
            if size % count == 0:
                return Split(count, by_seeds)
    return Split(1, True)


def usable(config: RunConfig) -> int:
    """How many devices a run takes: those asked for, or all accelerators there are; one where there is none."""
    there = len(jax.local_devices())
    expected = f"0 (all accelerators) up to {there}, the devices of this machine"
    require("devices", config.devices, config.devices <= there, expected)
    return config.devices or (1 if jax.default_backend() == "cpu" else there)


class Spread:
    """Puts the arrays of the two training phases where they belong; with one device it does nothing."""

    def __init__(self, config: RunConfig, seeds: int):
        devices = usable(config)
        self.models_split = split(devices, seeds, config.sample.batch)
        self.explorers_split = split(devices, seeds, config.population)

    def for_models(self, models: Any) -> Any:
        """Before the model phase."""
        return _place(models, self.models_split, None)

    def batches(self, chunk: Any) -> Any:
        """Of the model phase, [S, K, B, T]."""
        return _place(chunk, self.models_split, BATCH)

    def for_explorers(self, explorers: Any) -> Any:
        """Before the explorers' phase."""
        return _place(explorers, self.explorers_split, POPULATION)

    def shared(self, tree: Any) -> Any:
        """What the explorers' phase only reads: the models, and its batches."""
        return _place(tree, self.explorers_split, None)

    def gathered(self, state: Any) -> Any:
        """After a phase: on the first device alone, for whatever comes next."""
        one = max(self.models_split.devices, self.explorers_split.devices) == 1
        return state if one else jax.device_put(state, jax.local_devices()[0])


def _place(tree: Any, how: Split, axis: int | None) -> Any:
    """Divided by seeds or along `axis`, or whole on every device."""
    if how.devices == 1:
        return tree
    mesh = Mesh(jax.local_devices()[: how.devices], (AXIS,))
    along = SEEDS if how.by_seeds else axis
    spec = PartitionSpec() if along is None else PartitionSpec(*(None,) * along, AXIS)
    return jax.device_put(tree, NamedSharding(mesh, spec))
