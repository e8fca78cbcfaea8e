"""Does the world-model step slow down as the dataset grows? Draws and trains with few and with many stored rows.

python benchmarks/gpu_rows.py --rows 200000 3000000 --out benchmarks/gpu_rows.json
"""

import argparse
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from cascade.config import RunConfig, SampleConfig
from cascade.data.device import DeviceRows, _draw_chunk
from cascade.data.windows import Landmarks
from cascade.run.bench import median_seconds
from cascade.run.machine import describe
from cascade.run.phases import create_models, model_phase
from cascade.specs import ActionSpec, EnvSpec, ObservationSpec

SPEC = EnvSpec("pixels", {"image": ObservationSpec("image", (64, 64, 3))}, ActionSpec("discrete", 18))
EPISODE = 500


def stored(rows: int, side: int) -> DeviceRows:
    """Rows made on the device: byte j of the image of row i is (i + j) mod 251, so that a wrong row shows."""

    def images(start: jax.Array) -> jax.Array:
        pixel = jnp.arange(side * side * 3, dtype=jnp.int32)
        row = start + jnp.arange(1000, dtype=jnp.int32)
        return ((row[:, None] + pixel[None]) % 251).astype(jnp.uint8).reshape(1000, side, side, 3)

    fill = jax.jit(
        lambda target, i: jax.lax.dynamic_update_slice_in_dim(target, images(i), i, 0), donate_argnums=0
    )
    image = jnp.zeros((rows, side, side, 3), jnp.uint8)
    for start in range(0, rows, 1000):
        image = fill(image, jnp.int32(start))
    index = jnp.arange(rows, dtype=jnp.int32)
    columns = {
        "obs.image": image,
        "action": index % 18,
        "is_first": index % EPISODE == 0,
        "is_terminal": index % EPISODE == EPISODE - 1,
    }
    starts = np.arange(0, rows, EPISODE)
    landmarks = Landmarks.of(starts, starts + EPISODE - 1)
    return DeviceRows(columns, jnp.int32(rows), landmarks)


def check(batch: jax.Array) -> int:
    """Each drawn row must be whole and follow the one before it (modulo 251); returns the windows looked at."""
    images = np.asarray(batch).reshape(-1, batch.shape[2], np.prod(batch.shape[3:]))
    first = images[:, :, 0].astype(np.int64)
    pixel = np.arange(images.shape[-1])
    assert ((first[..., None] + pixel) % 251 == images).all(), "a row's bytes are not those of one row"
    assert ((np.diff(first, axis=1) - 1) % 251 == 0).all(), "rows of a window are not consecutive"
    return len(images)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 3_000_000])
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--small", action="store_true", help="a tiny model, to try the script itself")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    config = RunConfig(sample=SampleConfig(batch=16, length=50))
    world = replace(config.world, unroll=5)
    if args.small:
        world = replace(world, deter=32, hidden=32, stoch=4, classes=4, cnn_depth=2, precision="float32")
    config = replace(config, world=world)
    spec = replace(SPEC, observations={"image": ObservationSpec("image", (args.side, args.side, 3))})
    key, per_call = jax.random.key(0), 2 if args.small else 20
    run = jax.jit(lambda models, chunk: model_phase(models, chunk, jnp.int32(0), key), donate_argnums=0)
    results: dict = {"machine": describe(), "rows": {}}
    for rows in args.rows:
        state = [jax.jit(lambda key: create_models(spec, config, key=key))(jax.random.key(0))]
        data = stored(rows, args.side)
        windows = check(_draw_chunk(data, {}, key, jnp.int32(0), 2, config.sample)[0].obs["image"])

        def call(data=data, state=state):
            chunk, _ = _draw_chunk(data, {}, key, jnp.int32(0), per_call, config.sample)
            state[0], metrics = run(state[0], chunk)
            return metrics

        seconds, _ = median_seconds(call)
        draw = partial(_draw_chunk, data, {}, key, jnp.int32(0), per_call, config.sample)
        drawing, _ = median_seconds(draw)
        gigabytes = sum(column.nbytes for column in data.columns.values()) / 1e9
        results["rows"][rows] = {
            "step_ms": round(1e3 * seconds / per_call, 3),
            "draw_ms": round(1e3 * drawing / per_call, 3),
            "gigabytes": round(gigabytes, 2),
            "windows_checked": windows,
        }
        print(rows, results["rows"][rows], flush=True)
        del data, draw, call
    args.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
