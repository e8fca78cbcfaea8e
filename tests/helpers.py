"""Small models and batches that many tests share."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cascade.config import EnvConfig, WorldConfig
from cascade.envs import gl, spec_of
from cascade.errors import CascadeError, MissingExtra
from cascade.specs import ActionSpec, EnvSpec, ObservationSpec
from cascade.types import Batch
from cascade.world.model import WorldModel

GRID = ObservationSpec("grid", (7, 7, 3), (11, 6, 4))
VECTOR = ObservationSpec("vector", (5,))
IMAGE = ObservationSpec("image", (16, 16, 3))

SMALL = WorldConfig(
    deter=24, hidden=16, stoch=4, classes=5, cnn_depth=4, mlp_layers=2, mlp_units=16, precision="float32"
)


def shown(config: EnvConfig) -> EnvSpec:
    """The spec of a world; the test is skipped where an extra or a system's package that it needs is missing."""
    try:
        return spec_of(config)
    except CascadeError as error:
        if isinstance(error, MissingExtra) or gl.ADVICE in str(error):
            pytest.skip(str(error))
        raise


def env_spec(*kinds: str, action: str = "discrete", size: int = 3) -> EnvSpec:
    """A spec with the named kinds of observation."""
    parts = {"grid": GRID, "vector": VECTOR, "image": IMAGE}
    return EnvSpec("test", {kind: parts[kind] for kind in kinds or ("vector",)}, ActionSpec(action, size))


@partial(jax.jit, static_argnums=(0, 1))
def world_model(spec: EnvSpec, config: WorldConfig = SMALL, seed: int = 0) -> WorldModel:
    """A new world model; those of one kind are compiled once."""
    return WorldModel(spec, config, key=jax.random.key(seed))


def random_batch(spec: EnvSpec, shape: tuple[int, int] = (3, 7), seed: int = 0, resets: bool = True) -> Batch:
    """Rows without structure; every sequence starts with `is_first`."""
    rng = np.random.default_rng(seed)

    def part(obs: ObservationSpec) -> np.ndarray:
        if obs.kind == "vector":
            return rng.normal(size=(*shape, *obs.shape)).astype(np.float32)
        top = np.array(obs.classes) if obs.classes else 256
        return rng.integers(0, top, size=(*shape, *obs.shape)).astype(np.uint8)

    action = (
        rng.integers(0, spec.action.size, size=shape).astype(np.int32)
        if spec.action.kind == "discrete"
        else rng.uniform(-1, 1, size=(*shape, spec.action.size)).astype(np.float32)
    )
    first = rng.random(shape) < (0.2 if resets else 0.0)
    first[:, 0] = True
    terminal = rng.random(shape) < 0.1
    obs = {name: part(spec) for name, spec in spec.observations.items()}
    return Batch(*jax.tree.map(jnp.asarray, (obs, action, first, terminal)))
