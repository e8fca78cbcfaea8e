"""Gymnasium's spaces and our specs: what a spec is as a space, and how a space's values become a spec's.

Everything here is for whole episodes at once: arrays with one entry per row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import numpy as np
from gymnasium import spaces

from cascade.envs.gymnasium_env import resize
from cascade.specs import ActionSpec, EnvSpec, ObservationSpec

Leaves = dict[str, spaces.Space]
Convert = Callable[[np.ndarray], np.ndarray]
"""Rows of a dataset to rows of ours."""


class Unfit(ValueError):
    """A space whose values cannot become those of a spec; says why."""


def key_of(name: str) -> str:
    """A part's name as a key of a dataset: slashes would make folders of it."""
    return quote(name, safe="")


def observation_space(spec: EnvSpec) -> spaces.Space:
    """The space of one part, or a Dict of all."""
    parts = {key_of(name): _part_space(part) for name, part in spec.observations.items()}
    return next(iter(parts.values())) if len(parts) == 1 else spaces.Dict(parts)


def _part_space(part: ObservationSpec) -> spaces.Box:
    if part.kind == "vector":
        return spaces.Box(-np.inf, np.inf, part.shape, np.float32)
    if part.kind == "image":
        return spaces.Box(0, 255, part.shape, np.uint8)
    high = np.broadcast_to(np.array(part.classes, np.uint8) - 1, part.shape)
    return spaces.Box(np.zeros(part.shape, np.uint8), high.astype(np.uint8), dtype=np.uint8)


def action_space(action: ActionSpec) -> spaces.Space:
    """All indices, or [-1, 1] in every dimension."""
    if action.kind == "discrete":
        return spaces.Discrete(action.size)
    return spaces.Box(-1.0, 1.0, action.shape, np.float32)


def flatten(space: spaces.Space, name: str = "") -> Leaves:
    """The parts of a space by name: 'a' and 'a.b' in a Dict, '0' in a Tuple, nothing for one that is alone."""
    if not isinstance(space, (spaces.Dict, spaces.Tuple)):
        return {name: space}
    children = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
    leaves: Leaves = {}
    for key, child in children:
        leaves |= flatten(child, f"{name}.{key}" if name else str(key))
    return leaves


def leaf_values(values: Any, name: str = "") -> dict[str, Any]:
    """The values that belong to the parts of `flatten`."""
    if not isinstance(values, (Mapping, tuple)):
        return {name: values}
    children = values.items() if isinstance(values, Mapping) else enumerate(values)
    found: dict[str, Any] = {}
    for key, child in children:
        found |= leaf_values(child, f"{name}.{key}" if name else str(key))
    return found


def observation_converters(space: spaces.Space, spec: EnvSpec) -> dict[str, tuple[str, Convert]]:
    """For every part of the spec the part of the space it is read from, and how.

    A part of the same name is meant; without one, the only part that fits.
    """
    leaves = flatten(space)
    found = {}
    for name, part in spec.observations.items():
        named = [leaf for leaf in (name, key_of(name)) if leaf in leaves]
        if named:
            found[name] = named[0], converter(leaves[named[0]], part)
            continue
        fitting = [leaf for leaf in leaves if _fits(leaves[leaf], part)]
        if len(fitting) != 1:
            raise Unfit(
                f"{len(fitting)} parts of its observations {space} can be {name!r}, {part.kind}{part.shape}"
            )
        found[name] = fitting[0], converter(leaves[fitting[0]], part)
    return found


def _fits(space: spaces.Space, part: ObservationSpec) -> bool:
    try:
        converter(space, part)
    except Unfit:
        return False
    return True


def converter(space: spaces.Space, part: ObservationSpec) -> Convert:
    """How rows of a space become rows of a part."""
    makers = {"image": _image, "grid": _grid, "vector": _vector}
    convert = makers[part.kind](space, part)
    if convert is None:
        raise Unfit(f"{space} cannot be {part.kind}{part.shape}")
    return convert


def _image(space: spaces.Space, part: ObservationSpec) -> Convert | None:
    """As it is, or resized; grey pictures may lack the axis of their channel."""
    if not isinstance(space, spaces.Box) or space.dtype != np.uint8 or len(space.shape) not in (2, 3):
        return None
    channels = 1 if len(space.shape) == 2 else space.shape[2]
    if channels != part.shape[2]:
        return None
    if space.shape[:2] == part.shape[:2]:
        return lambda rows: rows.reshape(len(rows), *part.shape)
    if min(space.shape[:2]) < 8:  # symbols rather than a picture
        return None
    return lambda rows: np.stack([resize(row, part.shape[0]) for row in rows])


def _grid(space: spaces.Space, part: ObservationSpec) -> Convert | None:
    if not isinstance(space, spaces.Box) or space.dtype.kind not in "iu" or space.shape != part.shape:
        return None
    limits = np.array(part.classes)

    def convert(rows: np.ndarray) -> np.ndarray:
        if (rows < 0).any() or (rows >= limits).any():
            raise Unfit(f"symbols outside of {part.classes} classes")
        return rows.astype(np.uint8)

    return convert


def _vector(space: spaces.Space, part: ObservationSpec) -> Convert | None:
    """Numbers as they are, one row after another; indices one-hot."""
    size = part.shape[0]
    if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        sizes, starts = (
            (np.array([space.n]), np.array([space.start]))
            if isinstance(space, spaces.Discrete)
            else (space.nvec.ravel(), space.start.ravel())
        )
        return _one_hot(sizes, starts) if sizes.sum() == size else None
    if isinstance(space, (spaces.Box, spaces.MultiBinary)) and np.prod(space.shape, dtype=int) == size:
        return lambda rows: rows.reshape(len(rows), size).astype(np.float32)
    return None


def _one_hot(sizes: np.ndarray, starts: np.ndarray) -> Convert:
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]) - starts

    def convert(rows: np.ndarray) -> np.ndarray:
        places = rows.reshape(len(rows), len(sizes)).astype(np.int64) + offsets
        vectors = np.zeros((len(rows), int(sizes.sum())), np.float32)
        vectors[np.arange(len(rows))[:, None], places] = 1.0
        return vectors

    return convert


def action_converter(space: spaces.Space, action: ActionSpec) -> Convert:
    """How actions of a space become ours: indices from 0, numbers from the space's bounds to [-1, 1]."""
    if action.kind == "discrete" and isinstance(space, spaces.Discrete) and space.n == action.size:
        start = int(space.start)
        return lambda rows: (rows.reshape(len(rows)).astype(np.int64) - start).astype(np.int32)
    floats = isinstance(space, spaces.Box) and space.dtype.kind == "f"
    if action.kind == "continuous" and floats and np.prod(space.shape, dtype=int) == action.size:
        low, high = (bound.astype(np.float64).reshape(-1) for bound in (space.low, space.high))
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise Unfit(f"its actions {space} have no finite bounds")
        return _rescaled(low, high)
    raise Unfit(f"its actions {space} cannot be {action.kind} of size {action.size}")


def _rescaled(low: np.ndarray, high: np.ndarray) -> Convert:
    """To [-1, 1]; numbers that lie there already keep every bit."""
    if (low == -1.0).all() and (high == 1.0).all():
        return lambda rows: rows.reshape(len(rows), -1).astype(np.float32)
    width = np.where(high > low, high - low, 1.0)

    def convert(rows: np.ndarray) -> np.ndarray:
        unit = 2.0 * (rows.reshape(len(rows), -1).astype(np.float64) - low) / width - 1.0
        return np.where(high > low, np.clip(unit, -1.0, 1.0), 0.0).astype(np.float32)

    return convert
