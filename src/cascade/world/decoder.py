"""Features back to observations, and the log-likelihood of what was really seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, Shaped, UInt8

from cascade.config import WorldConfig
from cascade.nn.distributions import categorical_log_prob, squared_error
from cascade.nn.layers import MLP, ConvTranspose, LayerNorm, Linear, elu
from cascade.specs import ObservationSpec
from cascade.world.encoder import DECODER_KERNELS


class ImageDecoder(eqx.Module):
    """Transposed convolutions from one pixel to the image; the mean of a Gaussian of unit variance."""

    project: Linear
    layers: tuple[ConvTranspose, ...]
    norms: tuple[LayerNorm, ...]

    def __init__(self, features: int, spec: ObservationSpec, config: WorldConfig, *, key: PRNGKeyArray):
        kernels = DECODER_KERNELS[spec.shape[0]]
        first, *keys = jax.random.split(key, len(kernels) + 1)
        wide = 32 * config.cnn_depth
        outputs = [config.cnn_depth * 2**i for i in reversed(range(len(kernels) - 1))] + [spec.shape[-1]]
        inputs = [wide, *outputs[:-1]]
        self.project = Linear(features, wide, key=first)
        self.layers = tuple(
            ConvTranspose(i, o, size, key=k)
            for i, o, size, k in zip(inputs, outputs, kernels, keys, strict=True)
        )
        self.norms = tuple(LayerNorm(depth) for depth in outputs[:-1]) if config.layer_norm else ()

    def __call__(self, feature: Float[Array, "*B F"]) -> Float[Array, "*B H W C"]:
        x = self.project(feature)[..., None, None, :]
        for index, layer in enumerate(self.layers):
            x = layer(x)
            if index < len(self.layers) - 1:
                x = elu(self.norms[index](x) if self.norms else x)
        return x.astype(jnp.float32)

    @staticmethod
    def loss(prediction: Float[Array, "*B H W C"], image: UInt8[Array, "*B H W C"]) -> Float[Array, "*B"]:
        return squared_error(prediction, image.astype(jnp.float32) / 255.0 - 0.5).sum((-3, -2, -1))

    @staticmethod
    def mode(prediction: Float[Array, "*B H W C"]) -> UInt8[Array, "*B H W C"]:
        return (jnp.clip(prediction + 0.5, 0.0, 1.0) * 255.0).round().astype(jnp.uint8)


class GridDecoder(eqx.Module):
    """A categorical for each channel of each cell."""

    mlp: MLP
    shape: tuple[int, ...] = eqx.field(static=True)
    classes: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, features: int, spec: ObservationSpec, config: WorldConfig, *, key: PRNGKeyArray):
        self.shape, self.classes = spec.shape, spec.classes
        outputs = spec.shape[0] * spec.shape[1] * sum(spec.classes)
        self.mlp = MLP(
            features, outputs, config.mlp_layers, config.mlp_units, key=key, norm=config.layer_norm
        )

    def __call__(self, feature: Float[Array, "*B F"]) -> Float[Array, "*B H W K"]:
        return self.mlp(feature).astype(jnp.float32).reshape(*feature.shape[:-1], *self.shape[:2], -1)

    def channels(self, logits: Float[Array, "*B H W K"]) -> list[Float[Array, "*B H W _"]]:
        """The logits of each channel's classes."""
        ends = [sum(self.classes[: i + 1]) for i in range(len(self.classes) - 1)]
        return jnp.split(logits, ends, -1)

    def loss(self, logits: Float[Array, "*B H W K"], grid: UInt8[Array, "*B H W C"]) -> Float[Array, "*B"]:
        index = grid.astype(jnp.int32)
        parts = [categorical_log_prob(part, index[..., i]) for i, part in enumerate(self.channels(logits))]
        return -jnp.stack([part.sum((-2, -1)) for part in parts]).sum(0)

    def mode(self, logits: Float[Array, "*B H W K"]) -> UInt8[Array, "*B H W C"]:
        return jnp.stack([part.argmax(-1) for part in self.channels(logits)], -1).astype(jnp.uint8)


class VectorDecoder(eqx.Module):
    """The mean of a Gaussian of unit variance."""

    mlp: MLP

    def __init__(self, features: int, spec: ObservationSpec, config: WorldConfig, *, key: PRNGKeyArray):
        self.mlp = MLP(
            features, spec.shape[0], config.mlp_layers, config.mlp_units, key=key, norm=config.layer_norm
        )

    def __call__(self, feature: Float[Array, "*B F"]) -> Float[Array, "*B V"]:
        return self.mlp(feature).astype(jnp.float32)

    @staticmethod
    def loss(prediction: Float[Array, "*B V"], vector: Float[Array, "*B V"]) -> Float[Array, "*B"]:
        return squared_error(prediction, vector).sum(-1)

    @staticmethod
    def mode(prediction: Float[Array, "*B V"]) -> Float[Array, "*B V"]:
        return prediction


DECODERS: dict[str, Any] = {"image": ImageDecoder, "grid": GridDecoder, "vector": VectorDecoder}


class Decoder(eqx.Module):
    """One decoder for each named part of the observation."""

    parts: dict[str, Any]

    def __init__(
        self, features: int, specs: Mapping[str, ObservationSpec], config: WorldConfig, *, key: PRNGKeyArray
    ):
        keys = jax.random.split(key, len(specs))
        self.parts = {
            name: DECODERS[specs[name].kind](features, specs[name], config, key=k)
            for name, k in zip(sorted(specs), keys, strict=True)
        }

    def __call__(self, feature: Float[Array, "*B F"]) -> dict[str, Float[Array, "..."]]:
        return {name: part(feature) for name, part in self.parts.items()}

    def loss(
        self, feature: Float[Array, "*B F"], obs: Mapping[str, Shaped[Array, "..."]]
    ) -> dict[str, Float[Array, "*B"]]:
        """-log p(observation | feature) of each part."""
        return {name: part.loss(part(feature), obs[name]) for name, part in self.parts.items()}

    def mode(self, feature: Float[Array, "*B F"]) -> dict[str, Shaped[Array, "..."]]:
        """The most likely observation."""
        return {name: part.mode(part(feature)) for name, part in self.parts.items()}
