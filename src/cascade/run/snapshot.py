"""Snapshots: what was learned by the end of each deployment, without optimisers, as plain named arrays.

Checkpoints are for going on, and only the last are kept. Snapshots are for looking back: transfer and films after any
deployment.
"""

from __future__ import annotations

import io
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

from cascade.config import RunConfig
from cascade.data.files import write_bytes
from cascade.errors import DAMAGED, CascadeError, disk_errors
from cascade.explore.actor import Actor
from cascade.run import state
from cascade.run.checkpoint import misfit, named_leaves
from cascade.run.state import State
from cascade.specs import EnvSpec
from cascade.world.model import WorldModel


class Snapshot(eqx.Module):
    """One seed's world model, and its explorers' actors stacked along P; no actors for the method without."""

    world: WorldModel
    actors: Actor | None


def take(saved: State) -> Snapshot:
    """Of one seed's state."""
    actors = None if saved.explorers is None else saved.explorers.agents.actor.model
    return Snapshot(saved.models.world.model, actors)


def write(path: Path, snapshot: Snapshot) -> None:
    """Put the file in place at once."""
    write_arrays(path, {name: np.asarray(leaf) for name, leaf in named_leaves(snapshot).items()})


def read(path: Path, spec: EnvSpec, config: RunConfig) -> Snapshot:
    """The snapshot of a run with these settings."""
    keys = state.seed_keys((0,))
    like = jax.eval_shape(lambda: take(state.of_seed(state.create(spec, config, keys), 0)))
    wanted = named_leaves(like)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (*DAMAGED, KeyError) as error:
        raise CascadeError(
            f"{path}: no snapshot can be read here ({error}); restore it from a copy, or choose another --deployment"
        ) from None
    if difference := misfit(arrays, wanted):
        raise CascadeError(
            f"{path}: does not fit the settings of its run: it has {difference}; restore it and run.json from a "
            "copy, or choose another --deployment"
        )
    leaves = [jax.numpy.asarray(arrays[name]) for name in wanted]
    snapshot: Snapshot = jax.tree.unflatten(jax.tree.structure(like), leaves)
    return snapshot


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """An .npz, put in place at once."""
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
        write_bytes(path, buffer.getvalue())
