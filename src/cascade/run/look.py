"""Look at a world model: stored episodes beside what it predicts of them, as a picture and as a film."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from cascade.data.fields import Fields
from cascade.data.windows import to_batch
from cascade.errors import CascadeError
from cascade.report import predictions
from cascade.specs import EnvSpec, Episode, ObservationSpec
from cascade.types import Batch
from cascade.world.model import WorldModel
from cascade.world.predict import open_loop

Draw = Callable[[np.ndarray], np.ndarray]
"""Observations [T, ...] as images uint8 [T, height, width, 3]."""
SIDE = 56


def look(
    world: WorldModel,
    data: Fields | Batch,
    spec: EnvSpec,
    folder: Path,
    *,
    key: PRNGKeyArray | None = None,
    context: int = 5,
    horizon: int = 15,
    count: int = 3,
    name: str = "open_loop",
    ending: str = "gif",
) -> list[Path]:
    """Write `open_loop.png` and `open_loop.gif`: what the model predicts of `count` episodes, beside them.

    Other names and another ending (mp4) can be given. Of stored data the first `context + horizon` rows of episodes
    are taken; a batch is shown as it is.
    """
    batch = data if isinstance(data, Batch) else opening_rows(data, context + horizon, count)
    key = jax.random.key(0) if key is None else key
    strips, films = _compare(world, batch, spec, key, context, count)
    folder.mkdir(parents=True, exist_ok=True)
    film = np.stack([predictions.stack([film[t] for film in films]) for t in range(len(films[0]))])
    return [
        predictions.write_image(folder / f"{name}.png", predictions.stack(strips)),
        predictions.write_video(folder / f"{name}.{ending}", film),
    ]


def open_loop_picture(
    world: WorldModel, episodes: Sequence[Episode], spec: EnvSpec, *, context: int = 5, horizon: int = 10
) -> np.ndarray | None:
    """The first of these episodes that are long enough, beside what the model predicts of them; None if none is."""
    length = context + horizon
    chosen = [episode for episode in episodes if len(episode) + 1 >= length][:2]
    if not chosen:
        return None
    batch = first_rows(chosen, spec, length)
    strips, _ = _compare(world, batch, spec, jax.random.key(0), context, len(chosen))
    return predictions.stack(strips)


def first_rows(episodes: Sequence[Episode], spec: EnvSpec, length: int) -> Batch:
    """The first `length` rows of episodes that have as many."""
    columns = {f"obs.{name}": [e.obs[name] for e in episodes] for name in spec.observations}
    columns["action"] = [e.action for e in episodes]
    first = np.arange(length) == 0
    stacked = {name: jnp.stack([jnp.asarray(x[:length]) for x in parts]) for name, parts in columns.items()}
    stacked["is_first"] = jnp.stack([jnp.asarray(first)] * len(episodes))
    stacked["is_terminal"] = jnp.zeros((len(episodes), length), bool)
    return to_batch(stacked)


_open_loop = jax.jit(open_loop, static_argnames="context")


def _compare(
    world: WorldModel, batch: Batch, spec: EnvSpec, key: PRNGKeyArray, context: int, count: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """A strip and a film for each part of each sequence, the largest part first: it is what one looks at."""
    predicted = _open_loop(world, batch, key, context=context)
    valid = np.asarray(predicted.valid)
    strips, films = [], []
    for name, part in by_size(spec):
        truth, guess = np.asarray(batch.obs[name]), np.asarray(predicted.obs[name])
        draw = drawer(part, truth)
        for b in range(min(count, len(truth))):
            pair = draw(truth[b]), draw(guess[b])
            strips.append(predictions.strip(*pair, context, valid[b]))
            films.append(predictions.frames(*pair, context, valid[b]))
    return strips, films


def by_size(spec: EnvSpec) -> list[tuple[str, ObservationSpec]]:
    """The parts of an observation, the largest first."""
    return sorted(spec.observations.items(), key=lambda item: (-prod(item[1].shape), item[0]))


def opening_rows(fields: Fields, length: int, count: int) -> Batch:
    """The first `length` rows of up to `count` episodes that have as many, spread evenly over the data."""
    lengths = fields.ends - fields.starts + 1
    enough = np.flatnonzero(lengths >= length)
    if not len(enough):
        raise CascadeError(
            f"no stored episode has {length} rows, the longest has {lengths.max(initial=0)}; look at fewer"
        )
    chosen = enough[np.unique(np.linspace(0, len(enough) - 1, count).round().astype(int))]
    starts = fields.starts[chosen].tolist()
    columns = {
        name: jnp.stack([jnp.asarray(column.read(start, start + length)) for start in starts])
        for name, column in fields.columns().items()
    }
    return to_batch(columns)


def drawer(spec: ObservationSpec, truth: np.ndarray) -> Draw:
    """How one part of an observation is drawn: images as they are, MiniGrid's symbols as MiniGrid draws
    them, anything else in shades of grey over the range of the truth."""
    if spec.kind == "image":
        return lambda images: predictions.enlarge(_coloured(images), SIDE)
    if spec.kind == "grid" and len(spec.classes) == 3:
        from cascade.envs import minigrid  # only where it is needed: it takes a while to load

        if spec.classes == minigrid.CLASSES:
            return lambda grids: np.stack([minigrid.draw_grid(grid, SIDE) for grid in grids])
    low, high = float(truth.min()), float(truth.max())
    return lambda values: predictions.enlarge(_shaded(values, low, high), SIDE)


def _coloured(images: np.ndarray) -> np.ndarray:
    """Three channels: grey ones are repeated, and of stacked ones the last three are shown."""
    return np.repeat(images, 3, axis=-1) if images.shape[-1] < 3 else images[..., -3:]


def _shaded(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Grids [T, x, y, channel] by their first channel, vectors [T, size] as rows of eight."""
    if values.ndim == 2:
        columns = min(8, values.shape[1])
        padded = np.pad(values.astype(np.float32), [(0, 0), (0, -values.shape[1] % columns)], "edge")
        plane = padded.reshape(len(values), -1, columns)
    else:
        plane = values[..., 0].astype(np.float32)
    grey = np.clip((plane - low) / max(high - low, 1e-6), 0.0, 1.0) * 255.0
    return np.repeat(grey.round().astype(np.uint8)[..., None], 3, axis=-1)
