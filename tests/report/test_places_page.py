"""The chapter of places and skills: there where a world tells them, and nowhere else."""

import csv

import numpy as np
import pytest

from cascade.report.files import Files
from cascade.report.load import Run
from cascade.report.places import places_section, rooms_figure, skills_figure


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path / "run", {"method": "cascade"}, [], [], [], [])


def put(run, seed, deployment, **arrays):
    file = run.path / f"measures/seed-{seed}/deploy-{deployment:03d}.npz"
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez(file, **arrays)


def rooms():
    """Two explorers: one stays in room 1, one walks into room 2."""
    positions = np.full((2, 1, 4, 3), -1, np.int16)
    positions[:, 0, :3] = [[10, 20, 1], [12, 20, 1], [14, 20, 1]]
    positions[1, 0, 2, 2] = 2
    return {
        "positions": positions,
        "rooms": np.array([1, 2]),
        "room_pictures": np.zeros((2, 21, 16, 3), np.uint8),
    }


def test_rooms_have_a_figure_and_their_numbers(run, tmp_path):
    put(run, 0, 0, **rooms())
    title, html = places_section(run, "one", Files(tmp_path, "figures"))
    assert title == "Places"
    assert "Rooms seen in all: 2" in html
    assert "data:image/png;base64," in html
    with (tmp_path / "figures/rooms.csv").open() as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["seed", "deployment", "explorer", "start", "time", "column", "row", "room"]
    assert rows[-1] == ["0", "1", "1", "0", "2", "14", "20", "2"]
    assert len(rows) == 1 + 6


def test_a_way_is_drawn_only_in_the_room_it_is_in():
    arrays = rooms()
    figure = rooms_figure(arrays["positions"], arrays["rooms"], arrays["room_pictures"])
    drawn = [[np.isfinite(line.get_xdata()).sum() for line in axes.lines] for axes in figure.axes[:2]]
    assert drawn == [[3, 2], [0, 1]]


def test_skills_are_means_over_seeds_after_the_last_deployment(run, tmp_path):
    names = np.array(["collect_wood", "place_table"])
    for seed, values in enumerate([[80.0, 10.0], [60.0, 0.0]]):
        put(run, seed, 0, skills=np.zeros(2, np.float32), skill_names=names)
        put(run, seed, 1, skills=np.array(values, np.float32), skill_names=names)
    _, html = places_section(run, "one", Files(tmp_path, "figures"))
    assert 'alt="Success rate of 2 skills."' in html
    with (tmp_path / "figures/skills.csv").open() as stream:
        assert ["1", "2", "collect_wood", "60.0"] in list(csv.reader(stream))
    figure = skills_figure(np.array([[80.0, 10.0], [60.0, 0.0]]), names.tolist(), "black")
    assert [bar.get_width() for bar in figure.axes[0].patches] == [70.0, 5.0]


@pytest.mark.parametrize(
    "arrays",
    [
        {"distance": np.zeros((2, 2))},
        {"positions": np.zeros((2, 1, 4, 2))},
        rooms() | {"rooms": np.array([1])},
        {"skills": np.zeros(3), "skill_names": np.array(["a"])},
        {"skills": np.zeros(3)},
    ],
    ids=["others", "no rooms", "pictures missing", "names missing", "no names"],
)
def test_what_is_not_whole_is_left_out(run, tmp_path, arrays):
    put(run, 0, 0, **arrays)
    assert places_section(run, "one", Files(tmp_path, "figures")) is None
