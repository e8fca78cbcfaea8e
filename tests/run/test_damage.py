"""Damaged files of a run: found before anything is computed from them, and told in one line with what to do."""

import shutil
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from run_helpers import same, tiny, weights
from transfer_helpers import TABLE, configuration, random_store

import cascade
from cascade.cli import main
from cascade.data import minari, store
from cascade.envs import spec_of
from cascade.errors import CascadeError
from cascade.run import api, snapshot, state
from cascade.run.api import Run
from cascade.run.checkpoint import Checkpoints, named_leaves
from cascade.run.folder import Folder
from cascade.run.transfer import Outcome


@pytest.fixture
def stored(tmp_path):
    """A run of three deployments whose models are not worth reading."""
    folder, config = Folder(tmp_path / "run"), configuration()
    folder.start(config, (0,), "demo", spec_of(config.env))
    data = random_store(folder.data(0), TABLE, steps=40, deployments=3)
    checkpoints = Checkpoints(folder.checkpoints((0,)))
    checkpoints.save({"weights": np.zeros(1)}, {"data": {"0": data.contents}})
    checkpoints.close()
    for deployment in range(3):
        model = folder.snapshot(0, deployment)
        model.parent.mkdir(parents=True, exist_ok=True)
        model.touch()
    return cascade.open(folder.path)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_a_run_whose_checkpoints_are_gone_comes_to_the_same_end(tmp_path):
    """Begun again at its first deployment, it does not learn from the second, which is stored already."""
    run = cascade.run(tiny(), tmp_path / "run")
    learned, records = weights(run), run.results
    shutil.rmtree(run.path / "checkpoints")
    again = cascade.run(tiny(), run.path)
    assert again.results == records
    assert same(weights(again), learned)


def test_what_a_run_left_without_its_settings_is_not_taken_over(stored):
    folder = Folder(stored.path)
    folder.about.unlink()
    with pytest.raises(
        CascadeError, match=r"holds data/seed-0/deploy-000, but no run.json .*put run.json back, or"
    ):
        cascade.run(configuration(), folder.path)
    shutil.rmtree(folder.path / "data")
    with pytest.raises(CascadeError, match=r"holds checkpoints/seeds-0/\d+, but no run.json"):
        cascade.run(configuration(), folder.path)
    assert not folder.exists


def nothing_is_trained(monkeypatch) -> None:
    def interrupted(world, store, names, config, spec, seed, k, report, stop):
        return Outcome(seed, k, {}, config.transfer, interrupted=True)

    monkeypatch.setattr(api, "transfer", interrupted)
    monkeypatch.setattr(Run, "world", lambda self, seed, k: None)


def test_a_flipped_bit_is_found_before_transfer_and_export(stored, tmp_path, monkeypatch, capsys):
    nothing_is_trained(monkeypatch)
    monkeypatch.setattr(minari, "export", pytest.fail)
    flip(stored.store().deployments[1].path / "action.npy")
    said = r"1 of 3 deployments excluded.*deploy-001: action.npy: checksum.*; restore the named files from a copy and"
    with pytest.raises(CascadeError, match=said):
        stored.transfer(["reward"])
    with pytest.raises(SystemExit):
        main(["export", str(stored.path), "--out", str(tmp_path / "out")])
    error = capsys.readouterr().err
    assert "deploy-001: action.npy: checksum" in error
    assert "the rest is used" not in error, "it is not"


def test_bytes_are_compared_once_for_the_same_data(stored, monkeypatch):
    compared = []
    monkeypatch.setattr(store, "check_bytes", lambda path, entry: compared.append(path))
    stored.store()
    assert compared == []
    stored.store(verify=True)
    assert len(compared) == len(set(compared)) > 3
    before = len(compared)
    stored.store(verify=True)
    assert len(compared) == before
    shutil.copytree(stored.path / "data/seed-0", stored.path / "data/seed-1")
    both = replace(stored, seeds=(0, 1))
    both.store(0, verify=True)
    both.store(1, verify=True)
    assert len(set(compared)) == 2 * before, "another seed has files of its own, even where they are the same"


def test_transfer_says_that_its_data_are_not_the_models(stored, tmp_path, monkeypatch):
    nothing_is_trained(monkeypatch)
    notes = []
    stored.transfer(["reward"], note=notes.append)
    assert notes == []
    stored.store().deployments[1].path.rename(tmp_path / "aside")
    stored.transfer(["reward"], deployment=0, note=notes.append)
    assert notes == [], "the model after the first deployment knew nothing of it"
    stored.transfer(["reward"], note=notes.append)
    (note,) = notes
    assert "the world model was also trained on deploy-001, which is not here any more" in note


def test_a_checkpoint_that_cannot_be_read_ends_no_transfer(stored, monkeypatch):
    """It is read only to compare what the model was trained on."""
    nothing_is_trained(monkeypatch)
    (stored.path / "checkpoints/seeds-0/0/meta/metadata").write_text("{")
    notes = []
    assert stored.transfer(["reward"], note=notes.append).interrupted
    (note,) = notes
    assert "nobody can say whether the world model was trained on these data; " in note
    assert "seeds-0/0: the checkpoint cannot be read" in note
    assert "\n" not in note


def test_results_that_cannot_be_read_are_found_before_training(stored, monkeypatch):
    monkeypatch.setattr(api, "transfer", pytest.fail)
    path = stored.path / "results.json"
    path.write_text("{")
    with pytest.raises(CascadeError, match=r"results\.json: unreadable\); restore it from a copy") as error:
        stored.transfer(["reward"])
    assert str(error.value).startswith(f"{path}: ")


def with_bits(content: bytes, place: int, bits: int) -> bytes:
    """With other bits in the table of contents at the end of a .zip."""
    place += content.index(b"PK\x01\x02")
    return content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :]


@pytest.mark.parametrize("damage", ["cut", "altered", "empty", "a later version's", "encrypted"])
def test_a_damaged_snapshot_is_one_line(damage, tmp_path):
    config, path = tiny(), tmp_path / "deploy-000.npz"
    spec, keys = spec_of(config.env), state.seed_keys((0,))
    like = jax.eval_shape(lambda: snapshot.take(state.of_seed(state.create(spec, config, keys), 0)))
    random = np.random.default_rng(0)
    arrays = {name: random.normal(size=x.shape).astype(x.dtype) for name, x in named_leaves(like).items()}
    snapshot.write_arrays(path, arrays)
    assert snapshot.read(path, spec, config).actors is not None
    with pytest.raises(
        CascadeError, match=r"it has float32.* for actors\..*, the settings ask for nothing; rest"
    ):
        snapshot.read(path, spec, replace(config, method="random"))
    content = path.read_bytes()
    middle = len(content) // 2
    damaged = {
        "cut": content[:middle],
        "altered": content[:middle] + b"\xff" * 999 + content[middle + 999 :],
        "empty": b"",
        "a later version's": with_bits(content, 6, 64),
        "encrypted": with_bits(content, 8, 1),
    }
    path.write_bytes(damaged[damage])
    with pytest.raises(CascadeError, match=r"deploy-000\.npz: no snapshot can be read here .*; restore it"):
        snapshot.read(path, spec, config)
