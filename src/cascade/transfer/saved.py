"""A trained actor and the world model it sees through, as a folder: `weights-CHECKSUM.npz` and `behaviour.json`.

Both are plain: arrays by name and settings as JSON. Loading executes nothing.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from cascade.config import ActorCriticConfig, OptimizerConfig, WorldConfig
from cascade.errors import CascadeError
from cascade.explore.actor import Actor
from cascade.explore.player import Player
from cascade.explore.policy import PopulationPolicy
from cascade.specs import ActionSpec, EnvSpec, ObservationSpec
from cascade.transfer import lookahead
from cascade.transfer.lookahead import Lookahead
from cascade.world.model import WorldModel
from cascade.world.rssm import feature_size

FORMAT, WITH_LOOKAHEAD = 1, 2
SETTINGS, WEIGHTS = "behaviour.json", "weights.npz"
"""The weights as they were called before they had their checksum in the name; such folders are still read."""


@dataclass(frozen=True, eq=False)
class Behaviour:
    """What acts: a world model, for its belief, one actor, and what it looks ahead with, if it does (no P axis)."""

    world: WorldModel
    actor: Actor
    spec: EnvSpec
    task: str
    greedy: bool = False
    lookahead: Lookahead | None = None

    def policy(self) -> PopulationPolicy:
        """For many lanes at once."""
        actors, advice = jax.tree.map(lambda x: x[None], (self.actor, self.lookahead))
        return PopulationPolicy(self.world, actors, self.greedy, advice=advice)

    def player(self, seed: int = 0) -> Player:
        """For one environment, in a plain loop."""
        return Player(self.policy(), self.spec.observations, self.spec.action, seed)

    def save(self, folder: Path | str) -> Path:
        """Write both files, in place of what may be there: one rename, of the settings that name their weights."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        written, settings = folder / "new.npz", folder / f"new-{SETTINGS}"
        np.savez(written, allow_pickle=False, **_named(_models(self.world, self.actor, self.lookahead)))
        digest = checksum(written)
        weights = written.replace(folder / f"weights-{digest}.npz")
        document = {
            "format": WITH_LOOKAHEAD if self.lookahead else FORMAT,
            "task": self.task,
            "greedy": self.greedy,
            "environment": {
                "name": self.spec.name,
                "observations": {name: asdict(part) for name, part in self.spec.observations.items()},
                "action": asdict(self.spec.action),
            },
            "world": asdict(self.world.config),
            "actor": {
                "layers": len(self.actor.mlp.hidden),
                "units": int(self.actor.mlp.hidden[0].weight.shape[-1]),
            },
            "weights": weights.name,
            "checksum": digest,
        }
        if self.lookahead:
            document["lookahead"] = lookahead.settings(self.lookahead.config)
        settings.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        settings.replace(folder / SETTINGS)
        for old in folder.glob("weights*.npz"):
            if old != weights:
                old.unlink()
        return folder

    @classmethod
    def load(cls, folder: Path | str) -> Behaviour:
        """The behaviour saved at `folder`; it acts as it did, bit for bit."""
        folder = Path(folder)
        try:
            try:
                return _read(folder)
            except FileNotFoundError:  # another was saved meanwhile, and the settings name its weights
                return _read(folder)
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            raise CascadeError(f"{folder}: no saved behaviour can be read here ({error})") from error


def load_policy(folder: Path | str, seed: int = 0) -> Player:
    """A saved behaviour as a plain callable: `action = policy(obs, first=True)`."""
    return Behaviour.load(folder).player(seed)


def _models(world: WorldModel, actor: Actor, look: Lookahead | None) -> tuple[Any, ...]:
    """What has arrays; without a lookahead they are named as before there was one."""
    return (world, actor) if look is None else (world, actor, look)


def _named(tree: Any) -> dict[str, Any]:
    """Every array by its place in the models."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {_name(path): np.asarray(leaf) for path, leaf in leaves}


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def checksum(path: Path) -> str:
    """Of a file's bytes."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def _read(folder: Path) -> Behaviour:
    """What the settings describe, with the weights that they name."""
    document = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    if document["format"] not in (FORMAT, WITH_LOOKAHEAD):
        raise ValueError(f"format {document['format']}, expected {FORMAT} or {WITH_LOOKAHEAD}")
    weights = folder / document.get("weights", WEIGHTS)
    if document["checksum"] != checksum(weights):
        raise ValueError(f"{weights.name} is not the file that was saved")
    return _build(document, weights)


def _build(document: Mapping[str, Any], weights: Path) -> Behaviour:
    """Models of the saved shape with the saved arrays in them."""
    environment = document["environment"]
    observations = {
        name: ObservationSpec(part["kind"], tuple(part["shape"]), tuple(part["classes"]))
        for name, part in environment["observations"].items()
    }
    spec = EnvSpec(environment["name"], observations, ActionSpec(**environment["action"]))
    settings = dict(document["world"])
    config = WorldConfig(**settings | {"optimizer": OptimizerConfig(**settings["optimizer"])})
    agent = ActorCriticConfig(**document["actor"])
    ahead = lookahead.restored(document["lookahead"]) if "lookahead" in document else None

    def create(key: jax.Array) -> tuple[Any, ...]:
        actor = Actor(feature_size(config), spec.action, agent, config.precision, key=key)
        look = None if ahead is None else Lookahead.blank(config, ahead, key=key)
        return _models(WorldModel(spec, config, key=key), actor, look)

    shapes, structure = jax.tree_util.tree_flatten_with_path(jax.eval_shape(create, jax.random.key(0)))
    with np.load(weights, allow_pickle=False) as stored:
        leaves = [jax.numpy.asarray(stored[_name(path)]) for path, _ in shapes]
    if [(x.shape, x.dtype) for x in leaves] != [(x.shape, x.dtype) for _, x in shapes]:
        raise ValueError(f"{weights.name} does not fit the settings beside it")
    world, actor, *look = jax.tree.unflatten(structure, leaves)
    return Behaviour(world, actor, spec, document["task"], document["greedy"], *look)
