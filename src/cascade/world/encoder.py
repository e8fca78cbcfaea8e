"""Observations to embeddings: convolutions for images, an MLP for vectors and for grids of symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped, UInt8

from cascade.config import WorldConfig
from cascade.errors import SettingError
from cascade.nn.layers import MLP, Conv, LayerNorm, elu
from cascade.specs import ObservationSpec

# Kernels of the decoder's transposed convolutions that end at each image size, from a single pixel.
DECODER_KERNELS: dict[int, tuple[int, ...]] = {16: (6, 6), 32: (5, 6, 6), 64: (5, 5, 6, 6)}


def one_hot_grid(grid: UInt8[Array, "*B H W C"], classes: tuple[int, ...]) -> Float[Array, "*B K"]:
    """A grid of class indices as one long vector of one-hot codes."""
    channels = [jax.nn.one_hot(grid[..., i], count) for i, count in enumerate(classes)]
    return jnp.concatenate(channels, -1).reshape(*grid.shape[:-3], -1)


class ImageEncoder(eqx.Module):
    """Convolutions 4x4 of stride 2, doubling the channels, until about two pixels are left."""

    layers: tuple[Conv, ...]
    norms: tuple[LayerNorm, ...]
    size: int = eqx.field(static=True)

    def __init__(self, spec: ObservationSpec, config: WorldConfig, *, key: PRNGKeyArray):
        height, width, channels = spec.shape
        if height != width or height not in DECODER_KERNELS:
            expected = f"square images of one of the sizes {sorted(DECODER_KERNELS)}"
            raise SettingError("env.image-size", (height, width), expected)
        count = len(DECODER_KERNELS[height])
        depths = [channels] + [config.cnn_depth * 2**i for i in range(count)]
        keys = jax.random.split(key, count)
        self.layers = tuple(Conv(depths[i], depths[i + 1], key=keys[i]) for i in range(count))
        self.norms = tuple(LayerNorm(depth) for depth in depths[1:]) if config.layer_norm else ()
        for _ in range(count):
            height = (height - 4) // 2 + 1
        self.size = height * height * depths[-1]

    def __call__(self, image: UInt8[Array, "*B H W C"]) -> Float[Array, "*B X"]:
        x = image.astype(self.layers[0].kernel.dtype) / 255.0 - 0.5
        for index, layer in enumerate(self.layers):
            x = layer(x)
            x = elu(self.norms[index](x) if self.norms else x)
        return x.reshape(*x.shape[:-3], -1)


class FlatEncoder(eqx.Module):
    """An MLP over a vector, or over the one-hot codes of a grid."""

    mlp: MLP
    classes: tuple[int, ...] = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __init__(self, spec: ObservationSpec, config: WorldConfig, *, key: PRNGKeyArray):
        self.classes = spec.classes
        inputs = spec.shape[0] * spec.shape[1] * sum(spec.classes) if spec.kind == "grid" else spec.shape[0]
        self.size = config.mlp_units
        self.mlp = MLP(
            inputs, self.size, config.mlp_layers - 1, config.mlp_units, key=key, norm=config.layer_norm
        )

    def __call__(self, value: Shaped[Array, "..."]) -> Float[Array, "*B X"]:
        x = one_hot_grid(value, self.classes) if self.classes else value
        return elu(self.mlp(x))


class Encoder(eqx.Module):
    """One encoder for each named part of the observation; their outputs side by side."""

    parts: dict[str, Any]

    def __init__(self, specs: Mapping[str, ObservationSpec], config: WorldConfig, *, key: PRNGKeyArray):
        keys = jax.random.split(key, len(specs))
        self.parts = {
            name: (ImageEncoder if specs[name].kind == "image" else FlatEncoder)(specs[name], config, key=k)
            for name, k in zip(sorted(specs), keys, strict=True)
        }

    @property
    def size(self) -> int:
        """Length of the embedding."""
        return sum(part.size for part in self.parts.values())

    def __call__(self, obs: Mapping[str, Shaped[Array, "..."]]) -> Float[Array, "*B X"]:
        return jnp.concatenate([self.parts[name](obs[name]) for name in sorted(self.parts)], -1)
