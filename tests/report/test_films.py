"""Films side by side: same speed, labels under them, and the short ones wait."""

import numpy as np
import pytest

from cascade.report.films import GAP, LABEL, SIDE, grid


def film(length, shade, size=(20, 20)):
    """Frames that grow brighter from `shade` on."""
    return np.stack([np.full((*size, 3), shade + t, np.uint8) for t in range(length)])


def test_all_run_at_one_speed_and_the_short_ones_wait():
    whole = grid([film(10, 100), film(4, 0)], ["long", "short"])
    assert len(whole) == 10
    left, right = whole[:, GAP + 5, GAP + 5, 0], whole[:, GAP + 5, whole.shape[2] - GAP - 20, 0]
    assert left.tolist() == list(range(100, 110))
    assert right.tolist() == [0, 1, 2, 3, 3, 3, 3, 3, 3, 3]


def test_long_films_are_shown_in_time_lapse_from_first_to_last():
    whole = grid([film(120, 0)], ["x"], most=7)
    assert whole[:, GAP + 5, GAP + 5, 0].tolist() == [0, 20, 40, 60, 79, 99, 119]


def test_every_film_has_its_place_and_its_label():
    films = [film(2, 10 * i, (30, 40)) for i in range(5)]
    whole = grid(films, [f"explorer {i}" for i in range(5)])
    width, height = 120, 90  # 40 x 30, each pixel three times
    assert whole.shape == (2, GAP + 2 * (height + LABEL + GAP), GAP + 3 * (width + GAP), 3)
    for i in range(5):
        line, column = divmod(i, 3)
        top, left = GAP + line * (height + LABEL + GAP), GAP + column * (width + GAP)
        assert (whole[0, top : top + height, left : left + width] == 10 * i).all()
        under = whole[0, top + height : top + height + LABEL, left : left + width]
        assert under.min() < 128 < under.max(), "dark letters on white"
    empty = whole[0, -LABEL - height :, -width:]
    assert (empty == 255).all()


def test_large_pictures_are_made_smaller():
    assert grid([film(1, 0, (400, 200))], ["x"]).shape[1:3] == (GAP + SIDE + LABEL + GAP, 2 * GAP + SIDE // 2)


def test_films_and_labels_are_as_many():
    with pytest.raises(ValueError, match="1 films and 2 labels"):
        grid([film(1, 0)], ["a", "b"])
