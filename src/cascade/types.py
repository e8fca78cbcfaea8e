"""Boundary types with their shapes.

Axis letters, fixed everywhere:

    B batch of sequences    T time in a sequence     H imagination horizon    N imagination starts
    P population            E ensemble members       S seeds                  L lanes (environments at once)
    A action size           F feature size, [h, z]   R rows of the store      Z numbers of z
    G parts of z            D any other width, as of h, of a summary Φ or of a layer; D2 is twice D

The time alignment of stored rows, and the specs of environments, are in `cascade.specs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Key, PyTree, Shaped


class Batch(eqx.Module):
    """What learning sees: B sequences of T stored rows. There is no reward in it, by construction."""

    obs: dict[str, Shaped[Array, "*B T ..."]]
    action: Shaped[Array, "*B T ..."]
    is_first: Bool[Array, "*B T"]
    is_terminal: Bool[Array, "*B T"]


@runtime_checkable
class Policy(Protocol):
    """Acts in L lanes at once; frozen while deployed. Lanes are explorer-major: lane = explorer * n + i."""

    def initial(self, lanes: int) -> PyTree:
        """The recurrent state before any observation."""

    def act(
        self,
        carry: PyTree,
        obs: Mapping[str, Shaped[np.ndarray, "L ..."]],
        is_first: Bool[np.ndarray, " L"],
        keys: Key[Array, " L"],
    ) -> tuple[PyTree, np.ndarray]:
        """The next recurrent state and one action per lane; each lane draws from its own key alone."""
