"""Looking at a model: the picture and the film of stored episodes, whatever is observed."""

import jax
import numpy as np
import pytest
from helpers import SMALL, env_spec, random_batch
from PIL import Image

from cascade.config import EnvConfig
from cascade.data.fields import Column, Fields, Spans
from cascade.envs import spec_of
from cascade.envs.minigrid import CLASSES, draw_grid
from cascade.errors import CascadeError
from cascade.run.look import by_size, drawer, look, opening_rows
from cascade.specs import ObservationSpec
from cascade.world.model import WorldModel


def fields_of(lengths):
    """Episodes of the given numbers of rows; row r observes r."""
    rows = int(sum(lengths))
    stops = np.cumsum(lengths)
    first = np.zeros(rows, bool)
    first[stops - lengths] = True
    column = lambda values: Column((values,), Spans.whole([rows]))  # noqa: E731
    obs = {"vector": column(np.arange(rows, dtype=np.float32)[:, None])}
    marks = column(np.arange(rows, dtype=np.int32)), column(first), column(np.zeros(rows, bool))
    return Fields(obs, *marks, starts=stops - lengths, ends=stops - 1)


def test_windows_are_the_first_rows_of_long_episodes():
    fields = fields_of(np.array([5, 3, 6, 4, 9]))
    batch = opening_rows(fields, length=4, count=3)
    np.testing.assert_array_equal(batch.obs["vector"][..., 0], np.array([0, 14, 18])[:, None] + np.arange(4))
    np.testing.assert_array_equal(batch.action, np.array([0, 14, 18])[:, None] + np.arange(4))
    assert np.asarray(batch.is_first).tolist() == [[True, False, False, False]] * 3
    assert opening_rows(fields, length=6, count=5).action.shape == (2, 6)
    with pytest.raises(CascadeError, match="no stored episode has 10 rows, the longest has 9"):
        opening_rows(fields, length=10, count=1)


def test_symbols_are_drawn_as_minigrid_draws_them():
    rng = np.random.default_rng(0)
    grids = rng.integers(0, 3, size=(4, 7, 7, 3)).astype(np.uint8)
    drawn = drawer(ObservationSpec("grid", (7, 7, 3), CLASSES), grids)(grids)
    np.testing.assert_array_equal(drawn, np.stack([draw_grid(grid, 56) for grid in grids]))


def test_numbers_are_shades_over_the_range_of_the_truth():
    truth = np.array([[0.0, 1.0, 2.0]], np.float32)
    drawn = drawer(ObservationSpec("vector", (3,)), truth)(np.array([[-1.0, 1.0, 9.0]], np.float32))
    assert drawn.shape == (1, 18, 54, 3)
    assert drawn[0, 0, ::18, 0].tolist() == [0, 128, 255]
    grey = np.full((2, 16, 16, 1), 7, np.uint8)
    assert drawer(ObservationSpec("image", (16, 16, 1)), grey)(grey).shape == (2, 48, 48, 3)


def test_what_is_largest_is_shown_first():
    spec = spec_of(EnvConfig("minigrid:FourRooms-v0?compass=shown"))
    assert [name for name, _ in by_size(spec)] == ["grid", "compass"]
    compass = np.full((2, 1, 1, 1), 3, np.uint8)
    assert drawer(spec.observations["compass"], compass)(compass).shape == (2, 56, 56, 3)


def test_a_picture_and_a_film_are_written(tmp_path):
    spec = env_spec("grid", "vector")
    world = jax.jit(lambda key: WorldModel(spec, SMALL, key=key))(jax.random.key(0))
    batch = random_batch(spec, (3, 8))
    picture, film = look(world, batch, spec, tmp_path / "new", context=3, count=2)
    assert (picture.name, film.name) == ("open_loop.png", "open_loop.gif")
    with Image.open(picture) as image, Image.open(film) as frames:
        assert image.width > 8 * 56
        assert image.height > 2 * 3 * 56
        assert frames.n_frames == 8
    again, _ = look(world, batch, spec, tmp_path / "again", context=3, count=2)
    assert again.read_bytes() == picture.read_bytes()
