"""Strips and films of predictions: every image is where it should be, and the mark is where seeing ends."""

import re
import sys

import numpy as np
import pytest
from PIL import Image

from cascade.errors import CascadeError
from cascade.report.predictions import (
    GAP,
    HEADER,
    HUE,
    MARGIN,
    MARK,
    enlarge,
    find_ffmpeg,
    frames,
    stack,
    strip,
    write_video,
)

T, SIDE, CONTEXT = 6, 16, 2


def images(seed):
    return np.random.default_rng(seed).integers(0, 256, size=(T, SIDE, SIDE, 3)).astype(np.uint8)


def tile(picture, row, t):
    top = HEADER + row * (SIDE + GAP)
    left = MARGIN + t * (SIDE + GAP) + (MARK if t >= CONTEXT else 0)
    return picture[top : top + SIDE, left : left + SIDE]


def test_a_strip_shows_truth_model_and_difference():
    truth, predicted = images(0), images(1)
    picture = strip(truth, predicted, CONTEXT)
    for t in range(T):
        np.testing.assert_array_equal(tile(picture, 0, t), truth[t])
        np.testing.assert_array_equal(tile(picture, 1, t), predicted[t])
        difference = np.abs(truth[t].astype(int) - predicted[t])
        np.testing.assert_array_equal(tile(picture, 2, t), difference)


def test_the_mark_stands_between_what_is_seen_and_what_is_imagined():
    black = np.zeros((T, SIDE, SIDE, 3), np.uint8)
    picture = strip(black, black, CONTEXT)
    hue = np.array([int(HUE[i : i + 2], 16) for i in (1, 3, 5)])
    marked = np.flatnonzero((picture[HEADER:] == hue).all(-1).all(0))
    end_of_seen = MARGIN + CONTEXT * (SIDE + GAP) - GAP
    assert len(marked) == 3
    assert end_of_seen <= marked.min()
    assert marked.max() < end_of_seen + GAP + MARK
    assert not (strip(black, black, T)[HEADER:] == hue).all(-1).any()


def test_times_that_are_not_valid_are_blank():
    truth, predicted = images(0), images(1)
    valid = np.arange(T) < 4
    picture, film = strip(truth, predicted, CONTEXT, valid), frames(truth, predicted, CONTEXT, valid)
    np.testing.assert_array_equal(tile(picture, 0, 5), truth[5])
    assert (tile(picture, 1, 5) == 255).all()
    assert (tile(picture, 2, 5) == 255).all()
    np.testing.assert_array_equal(tile(picture, 1, 3), predicted[3])
    np.testing.assert_array_equal(film[:4], frames(truth, predicted, CONTEXT)[:4])
    assert (film[4:] != frames(truth, predicted, CONTEXT)[4:]).any()


def test_images_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match=re.escape("expected [T, height, width, 3]")):
        strip(images(0), images(1)[1:], CONTEXT)


def test_stacking_and_enlarging_keep_every_pixel():
    small = images(0)[0]
    large = enlarge(small, 40)
    assert large.shape == (32, 32, 3)
    np.testing.assert_array_equal(large[::2, ::2], small)
    both = stack([small, large], gap=3)
    assert both.shape == (16 + 3 + 32, 32, 3)
    np.testing.assert_array_equal(both[:16, :16], small)
    np.testing.assert_array_equal(both[19:], large)
    assert (both[:16, 16:] == 255).all()


def test_a_gif_has_a_frame_for_each_time_and_runs_at_its_speed(tmp_path):
    film = frames(images(0), images(1), CONTEXT)
    path = write_video(tmp_path / "film.gif", film, fps=5)
    with Image.open(path) as found:
        assert found.n_frames == T
        assert found.info["duration"] == 200
        assert found.size == (film.shape[2], film.shape[1])


def test_an_mp4_is_raw_frames_through_ffmpeg(tmp_path, monkeypatch):
    """A stand-in for ffmpeg writes down what it was given."""
    program = tmp_path / "ffmpeg"
    keep = "import pathlib, sys; pathlib.Path(sys.argv[-1]).write_bytes(sys.stdin.buffer.read())"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{keep}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_ffmpeg() == str(program)
    film = frames(images(0), images(1), CONTEXT)
    assert write_video(tmp_path / "film.mp4", film).read_bytes() == film.tobytes()
    program.write_text("#!/bin/sh\necho 'no such codec' >&2\nexit 1\n", encoding="utf-8")
    with pytest.raises(CascadeError, match=r"film\.mp4: ffmpeg failed: "):
        write_video(tmp_path / "film.mp4", film)


def test_without_ffmpeg_one_line_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(
        CascadeError, match=r"needs ffmpeg; install ffmpeg or imageio-ffmpeg, or write a \.gif"
    ):
        write_video(tmp_path / "film.mp4", images(0))
    with pytest.raises(CascadeError, match=r"written as \.gif or \.mp4"):
        write_video(tmp_path / "film.avi", images(0))
