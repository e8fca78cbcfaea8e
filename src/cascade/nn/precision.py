"""Which arithmetic a network runs in: parameters are float32, compute may be bfloat16."""

from typing import TypeVar

import jax
import jax.numpy as jnp

Tree = TypeVar("Tree")


def cast(tree: Tree, precision: str) -> Tree:
    """The same tree with its floating leaves in another dtype; gradients flow back to the originals.

    Done once, outside any loop, so that no loop body casts weights again.
    """
    dtype = jnp.dtype(precision)

    def leaf(x: object) -> object:
        return x.astype(dtype) if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jnp.floating) else x

    return jax.tree.map(leaf, tree)
