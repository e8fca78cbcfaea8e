"""Checkpoints: one commit holds the weights, optimisers, normalisers, keys, the position and the data they saw.

Orbax writes each beside its place and renames it, so a kill leaves the one before. The last two are kept.
"""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from cascade.errors import CascadeError, cause_of, disk_errors

KEEP = 2
logging.getLogger("absl").setLevel(
    logging.CRITICAL
)  # Orbax tells of every step it takes, and we of its failures
logging.getLogger("asyncio").setLevel(
    logging.CRITICAL
)  # in which it writes arrays: one failure is not told per array


class Checkpoints:
    """The checkpoints of one group of seeds, in one folder."""

    def __init__(self, folder: Path, *, read_only: bool = False):
        self.folder = folder
        options = ocp.CheckpointManagerOptions(
            max_to_keep=None if read_only else KEEP,
            enable_async_checkpointing=False,
            cleanup_tmp_directories=not read_only,
            create=not read_only,
            read_only=read_only,
        )
        with disk_errors(folder):
            if not read_only:
                folder.mkdir(parents=True, exist_ok=True)
            handlers = {"arrays": ocp.PyTreeCheckpointHandler(), "meta": ocp.JsonCheckpointHandler()}
            self._manager = ocp.CheckpointManager(folder.resolve(), options=options, item_handlers=handlers)

    @property
    def latest(self) -> int | None:
        """The number of the newest commit."""
        found = self._manager.latest_step()
        return None if found is None else int(found)

    def save(self, tree: Any, meta: dict[str, Any]) -> None:
        """Commit a tree of arrays and a document beside it. What was there before stays if this fails."""
        number = -1 if self.latest is None else self.latest
        arrays = {name: np.asarray(leaf) for name, leaf in named_leaves(tree).items()}
        args = ocp.args.Composite(arrays=ocp.args.PyTreeSave(arrays), meta=ocp.args.JsonSave(meta))
        try:
            with disk_errors(self.folder):
                self._manager.save(number + 1, args=args)
        except CascadeError:
            raise
        except Exception as error:  # a full disk comes out of the array writer as one of many kinds
            full = os.strerror(errno.ENOSPC)
            cause = full if full in str(error) else cause_of(error)[:200]
            raise CascadeError(
                f"{self.folder}: cannot write a checkpoint ({cause}); free some space and run the same command "
                "again, the last checkpoint is intact"
            ) from error

    def meta(self, number: int | None = None) -> dict[str, Any]:
        """The document of a commit, by default the newest."""
        number = self.latest if number is None else number
        document: dict[str, Any] = self._read(number, {"meta": ocp.args.JsonRestore()})["meta"]
        return document

    def restore(self, like: Any, number: int | None = None) -> Any:
        """The tree of a commit, like `like`: the same leaves, shapes and types, or an error that names one."""
        stored = self.check(like, number)
        leaves = [jax.numpy.asarray(stored[name]) for name in named_leaves(like)]
        return jax.tree.unflatten(jax.tree.structure(like), leaves)

    def check(self, like: Any, number: int | None = None) -> dict[str, np.ndarray]:
        """The arrays of a commit by name, once they are known to be those of `like`."""
        number = self.latest if number is None else number
        stored: dict[str, np.ndarray] = self._read(number, {"arrays": ocp.args.PyTreeRestore()})["arrays"]
        if difference := misfit(stored, named_leaves(like)):
            raise CascadeError(
                f"{self.folder}: the checkpoint has {difference}; go on with the settings that it was written with"
            )
        return stored

    def close(self) -> None:
        self._manager.close()

    def _read(self, number: int | None, items: dict[str, Any]) -> Any:
        if number is None:
            raise CascadeError(f"{self.folder}: there is no checkpoint yet; run the same command again")
        try:
            return self._manager.restore(number, args=ocp.args.Composite(**items))
        except Exception as error:
            cause = cause_of(error)[:200]
            raise CascadeError(
                f"{self.folder / str(number)}: the checkpoint cannot be read ({cause}); remove that folder to go on "
                "from the one before it"
            ) from error


def trained_on(folder: Path, seed: int) -> list[str]:
    """The stored data that the newest commit was trained on, as `Store.contents` names them; empty without one."""
    if not folder.exists():
        return []
    checkpoints = Checkpoints(folder, read_only=True)
    try:
        return [] if checkpoints.latest is None else list(checkpoints.meta()["data"][str(seed)])
    finally:
        checkpoints.close()


def misfit(stored: dict[str, Any], wanted: dict[str, Any]) -> str:
    """How the first stored array that does not fit differs from what is wanted; empty where all do."""
    for name in wanted | stored:
        has, asked = (
            f"{tree[name].dtype}{tree[name].shape}" if name in tree else "nothing"
            for tree in (stored, wanted)
        )
        if has != asked:
            return f"{has} for {name}, the settings ask for {asked}"
    return ""


def named_leaves(tree: Any) -> dict[str, Any]:
    """Every leaf under the path that leads to it."""
    flat, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in flat}
