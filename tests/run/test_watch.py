"""`cascade watch`: every kind of film, of the right length, and which file was written."""

import json

import numpy as np
import pytest
from PIL import Image
from run_helpers import one_action, tiny
from transfer_helpers import random_store

import cascade
from cascade.cli import main
from cascade.envs import spec_of
from cascade.errors import CascadeError, SettingError
from cascade.report import predictions
from cascade.run import films, snapshot, state
from cascade.run.folder import Folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on the chain that has learned nothing, with a policy that always goes right."""
    config = tiny()
    spec, folder = spec_of(config.env), Folder(tmp_path_factory.mktemp("runs") / "run")
    folder.start(config, (0,), "demo", spec)
    random_store(folder.data(0), config.env.id, steps=40)
    fresh = state.create(spec, config, state.seed_keys((0,)))
    snapshot.write(folder.snapshot(0, 0), snapshot.take(state.of_seed(fresh, 0)))
    one_action(spec, config, 1).save(folder.path / "transfer/reward/deploy-000/seed-0")
    return cascade.open(folder.path)


def frames(path):
    with Image.open(path) as image:
        return image.n_frames


def test_explorers_side_by_side(run, capsys):
    main(["watch", str(run.path), "--format", "gif", "--steps", "6", "--json"])
    captured = capsys.readouterr()
    (written,) = json.loads(captured.out)["files"]
    assert written.endswith("films/explorers-deploy-000-seed-0.gif")
    assert "wrote" in captured.err
    assert 2 <= frames(written) <= 7, "one frame before the first action, and one after each"


def test_a_transferred_policy_and_what_it_earned(run, tmp_path, monkeypatch):
    labels = []
    grid = films.films.grid
    monkeypatch.setattr(films.films, "grid", lambda shown, names: labels.extend(names) or grid(shown, names))
    (written,) = films.make_films(run, "transfer", folder=tmp_path, kind="gif")
    assert written.name == "transfer-reward-deploy-000-seed-0.gif"
    # The chain has six states: five steps to the right pay 1.
    assert labels == ["return 1, 5 steps"] * films.EPISODES
    assert frames(written) == 6


def test_imagination_beside_the_truth(run, tmp_path):
    picture, film = films.make_films(run, "imagination", folder=tmp_path, kind="gif")
    assert (picture.suffix, film.suffix) == (".png", ".gif")
    assert films.CONTEXT < frames(film) <= 9
    assert np.asarray(Image.open(picture)).ndim in (2, 3)


def test_mp4_where_ffmpeg_is_and_gif_elsewhere(monkeypatch):
    monkeypatch.setattr(predictions, "find_ffmpeg", lambda: None)
    assert films.best_format() == "gif"
    monkeypatch.setattr(predictions, "find_ffmpeg", lambda: "ffmpeg")
    assert films.best_format() == "mp4"


def test_mistakes_are_one_line(run, tmp_path, monkeypatch):
    with pytest.raises(SettingError, match="seed: got 7, expected one of the run's: 0"):
        films.make_films(run, "explorers", seed=7)
    with pytest.raises(SettingError, match="deployment: got 5, expected one of 0"):
        films.make_films(run, "explorers", deployment=5)
    with pytest.raises(
        CascadeError, match="no policy for the task dance of seed 0 is saved here; make one first"
    ):
        films.make_films(run, "transfer", tasks=["dance"])
    monkeypatch.setattr(predictions, "find_ffmpeg", lambda: None)
    with pytest.raises(CascadeError, match=r"\.mp4 needs ffmpeg; install ffmpeg or imageio-ffmpeg"):
        films.make_films(run, "explorers", folder=tmp_path, kind="mp4", steps=2)
    with pytest.raises(SystemExit):
        main(["watch", str(run.path), "--task", "reward"])
