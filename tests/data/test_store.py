"""Committed deployments: what goes in comes out, labels stay apart, damage is found and named."""

from __future__ import annotations

import dataclasses
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from data_helpers import CONTINUOUS, SPEC, contents, make_episode, make_episodes, make_store

from cascade.data.fields import Fields, split
from cascade.data.files import open_array, write_array, write_json
from cascade.data.journal import Journal
from cascade.data.store import Store
from cascade.errors import CascadeError
from cascade.types import Batch

LENGTHS = ([5, 8, 3, 7, 2], [9, 4], [6, 6, 1])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "data", *LENGTHS)


def test_round_trip(store: Store) -> None:
    fields, cells, labels = store.fields(), store.info("cell"), store.labels("other")
    expected = [
        episode for lengths in LENGTHS for episode in sorted(make_episodes(lengths), key=lambda e: e.key)
    ]
    assert store.problems == ()
    assert store.message == ""
    assert store.spec == SPEC
    assert store.steps == sum(map(len, expected))
    assert fields.rows == store.rows == store.steps + len(expected)
    for episode, start, end in zip(expected, fields.starts, fields.ends, strict=True):
        stop = int(end) + 1
        assert stop - start == len(episode) + 1
        for name, values in episode.obs.items():
            np.testing.assert_array_equal(fields.obs[name].read(int(start), stop), values)
        np.testing.assert_array_equal(fields.action.read(int(start), stop), episode.action)
        np.testing.assert_array_equal(cells.read(int(start), stop), episode.info["cell"])
        np.testing.assert_array_equal(labels.read(int(start), stop), episode.labels["other"])
        first, terminal = fields.is_first.read(int(start), stop), fields.is_terminal.read(int(start), stop)
        assert first[0]
        assert not first[1:].any()
        assert terminal[-1] == episode.terminated
        assert not terminal[:-1].any()


def test_manifest_counts(store: Store) -> None:
    manifest = store.deployments[0].manifest
    by_explorer = {0: 5 + 3 + 2, 1: 8 + 7}
    assert (manifest.steps, manifest.rows, manifest.episodes) == (25, 30, 5)
    assert manifest.explorers == by_explorer
    assert store.digest != Store(store.path, store.deployments[:2], ()).digest
    table = store.deployments[0].episodes
    assert [tuple(record)[:3] for record in table.tolist()] == [
        (0, 0, 0),
        (0, 0, 1),
        (0, 1, 0),
        (1, 0, 0),
        (1, 1, 0),
    ]


def test_metadata_is_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0, SPEC)
    journal.append(make_episode((0, 0, 0), 4))
    journal.commit({"failures": 2, "why": ["hung"]})
    assert Store.open(tmp_path).deployments[0].manifest.metadata == {"failures": 2, "why": ["hung"]}


def test_continuous_actions_and_one_task(tmp_path: Path) -> None:
    store = make_store(tmp_path, [4, 6], spec=CONTINUOUS)
    assert store.fields().action.shape == (12, 2)
    assert store.fields().action.dtype == np.float32
    assert store.tasks == ["reward"]


def test_no_store_is_an_empty_store(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "none")
    assert store.rows == 0
    assert not (tmp_path / "none").exists()
    with pytest.raises(CascadeError, match="nothing is stored here; collect a deployment first"):
        store.fields()


# Damage: one clear message, the rest usable.


def truncate(folder: Path) -> None:
    path = folder / "obs.image.npy"
    path.write_bytes(path.read_bytes()[:-7])


def flip(folder: Path, name: str = "obs.image.npy", at: int = -20) -> None:
    data = bytearray((folder / name).read_bytes())
    data[at] ^= 1
    (folder / name).write_bytes(bytes(data))


def drop_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def alter_manifest(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"steps": 13', '"steps": 14'))


def garble_manifest(folder: Path) -> None:
    (folder / "manifest.json").write_bytes(b"\xff\xfe{not json")


def drop_file(folder: Path) -> None:
    (folder / "action.npy").unlink()


def plant_pickle(folder: Path) -> None:
    (folder / "action.npy").write_bytes(pickle.dumps({"action": 1}))


DAMAGE = [
    (truncate, r"obs\.image\.npy: \d+ bytes, expected \d+"),
    (flip, r"obs\.image\.npy: checksum [0-9a-f]{8}, expected"),
    (lambda folder: flip(folder, "episodes.npy"), r"episodes\.npy: "),
    (lambda folder: flip(folder, "is_first.npy", 20), r"is_first\.npy: "),
    (drop_manifest, r"manifest\.json: missing"),
    (alter_manifest, r"manifest\.json: altered"),
    (garble_manifest, r"manifest\.json: unreadable"),
    (drop_file, r"action\.npy: missing"),
    (plant_pickle, r"action\.npy: "),
]


@pytest.mark.parametrize(("damage", "reason"), DAMAGE)
def test_damage_is_named_and_the_rest_is_used(store: Store, damage, reason: str) -> None:
    folder = store.deployments[1].path
    before = contents(store.deployments[0].path)
    damage(folder)
    opened = Store.open(store.path)
    assert [deployment.index for deployment in opened.deployments] == [0, 2]
    assert len(opened.problems) == 1
    assert opened.message.count("\n") == 0
    assert "1 of 3 deployments excluded" in opened.message
    assert (
        opened.message
        == f"{opened.trouble}; the rest is used, restore the named files from a copy or collect again"
    )
    assert re.search(rf"deploy-001: {reason}", opened.message)
    assert opened.fields().rows == 30 + 16
    opened.fields().obs["image"].read()
    assert folder.exists(), "opening moves nothing"
    assert contents(store.deployments[0].path) == before


def test_a_truncated_file_is_found_without_checksums(store: Store) -> None:
    truncate(store.deployments[1].path)
    assert len(Store.open(store.path, verify=False).deployments) == 2


def test_quarantine_moves_the_damaged_aside_and_frees_its_number(store: Store) -> None:
    flip(store.deployments[1].path)
    damaged = contents(store.deployments[1].path)
    [moved] = Store.open(store.path).quarantine()
    assert moved.parent == store.path / "quarantine"
    assert moved.name.startswith("deploy-001-obs.image.npy-checksum")
    assert contents(moved) == damaged
    assert Store.open(store.path).problems == ()
    journal = Journal(store.path, 1, SPEC)
    journal.append(make_episode((0, 0, 0), 4))
    journal.commit()
    assert len(Store.open(store.path).deployments) == 3


def test_a_read_only_folder_can_be_opened(store: Store) -> None:
    flip(store.deployments[1].path)
    folders = [store.path, *(path for path in store.path.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        opened = Store.open(store.path)
        assert len(opened.deployments) == 2
        opened.labels("reward").read()
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_another_environment_is_not_mixed_in(tmp_path: Path) -> None:
    make_store(tmp_path, [3], [4])
    other = make_store(tmp_path / "elsewhere", [3], [4], spec=CONTINUOUS)
    (tmp_path / "deploy-001").rename(tmp_path / "old")
    other.deployments[1].path.rename(tmp_path / "deploy-001")
    assert "deploy-001: another environment than deploy-000's" in Store.open(tmp_path).message


def test_an_unknown_version_is_named(store: Store) -> None:
    path = store.deployments[0].path / "manifest.json"
    document = json.loads(path.read_text())
    del document["crc32"]
    write_json(path, document | {"version": 99})
    assert "version 99, this release reads 'cascade-deployment' version 1" in Store.open(store.path).message


# No pickle.


def test_object_arrays_are_refused_on_writing(tmp_path: Path) -> None:
    with pytest.raises(CascadeError, match="Python objects are not stored"):
        write_array(tmp_path / "a.npy", np.array([{}], dtype=object))


def test_a_pickled_npy_is_refused_on_reading(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "executed",))

    np.save(tmp_path / "a.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(CascadeError, match=r"a\.npy: not a plain \.npy array"):
        open_array(tmp_path / "a.npy")
    assert not (tmp_path / "executed").exists()


# Labels.


def test_what_learning_reads_has_no_labels() -> None:
    assert {part.name for part in dataclasses.fields(Fields)} == {
        *("obs", "action", "is_first", "is_terminal"),
        *("starts", "ends"),
    }
    assert {part.name for part in dataclasses.fields(Batch)} == {"obs", "action", "is_first", "is_terminal"}


def test_scrambled_rewards_change_no_field(tmp_path: Path) -> None:
    episodes = make_episodes([5, 8, 3])
    scrambled = [
        dataclasses.replace(e, labels={task: -values[::-1] for task, values in e.labels.items()})
        for e in episodes
    ]
    for root, stored in (("plain", episodes), ("scrambled", scrambled)):
        journal = Journal(tmp_path / root, 0, SPEC)
        for episode in stored:
            journal.append(episode)
        journal.commit()
    plain, other = (contents(tmp_path / root / "deploy-000") for root in ("plain", "scrambled"))
    digests = {Store.open(tmp_path / root).digest for root in ("plain", "scrambled")}
    assert len(digests) == 1
    differing = {name for name in plain if plain[name] != other[name]}
    assert differing == {f"labels/{task}.{end}" for task in SPEC.tasks for end in ("npy", "json")}


def test_added_labels_stand_beside(store: Store) -> None:
    before = contents(store.path)
    task = "my_rewards:jump/high"
    arrays = [np.arange(d.manifest.rows) for d in store.deployments]
    store.add_labels(task, arrays)
    after = contents(store.path)
    assert {name: after[name] for name in before} == before
    opened = Store.open(store.path)
    assert opened.tasks == ["reward", "other", task]
    np.testing.assert_array_equal(opened.labels(task).read(), np.concatenate(arrays))
    store.add_labels(task, [-values for values in arrays])
    np.testing.assert_array_equal(Store.open(store.path).labels(task).read(), -np.concatenate(arrays))


def test_labels_that_do_not_fit_are_refused(store: Store) -> None:
    rows = [deployment.manifest.rows for deployment in store.deployments]
    with pytest.raises(CascadeError, match="not recorded"):
        store.add_labels("reward", [np.zeros(n) for n in rows])
    with pytest.raises(CascadeError, match=r"deploy-001: got float64\(16,\), expected one number for each"):
        store.add_labels("new", [np.zeros(rows[0]), np.zeros(rows[1] + 1), np.zeros(rows[2])])
    with pytest.raises(CascadeError, match="object"):
        store.add_labels("new", [np.full(n, None) for n in rows])


def test_damaged_labels_leave_the_fields_usable(store: Store) -> None:
    flip(store.deployments[1].path / "labels", "reward.npy")
    opened = Store.open(store.path)
    assert len(opened.deployments) == 3
    assert "deploy-001: labels of task 'reward': reward.npy: checksum" in opened.message
    opened.fields()
    opened.labels("other")
    with pytest.raises(CascadeError, match="no usable labels for task 'reward'"):
        opened.labels("reward")
    with pytest.raises(CascadeError, match=r"for task 'never'.*there is \['reward', 'other'\]"):
        opened.labels("never")


# Choosing episodes.


def test_select_keeps_whole_episodes_in_order(store: Store) -> None:
    fields = store.fields()
    mask = np.arange(fields.episodes) % 3 != 1
    chosen = fields.select(mask)
    for column, part in zip(fields.columns().values(), chosen.columns().values(), strict=True):
        rows = [
            column.read(int(s), int(e) + 1)
            for s, e in zip(fields.starts[mask], fields.ends[mask], strict=True)
        ]
        np.testing.assert_array_equal(part.read(), np.concatenate(rows))
    np.testing.assert_array_equal(np.flatnonzero(chosen.is_first.read()), chosen.starts)
    labels = chosen.align(store.labels("reward"))
    assert len(labels) == chosen.rows
    again = chosen.select(np.ones(chosen.episodes, bool))
    np.testing.assert_array_equal(again.obs["image"].read(), chosen.obs["image"].read())


def test_split_is_a_partition_that_later_data_does_not_change(tmp_path: Path) -> None:
    small = make_store(tmp_path, [2] * 23).fields()
    for index in (1, 2):
        journal = Journal(tmp_path, index, SPEC)
        for episode in make_episodes([3] * 20):
            journal.append(episode)
        journal.commit()
    large = Store.open(tmp_path).fields()
    train, held_out = split(large, every=7)
    assert train.episodes + held_out.episodes == large.episodes
    assert held_out.episodes == 9
    first = split(small, every=7)[1]
    np.testing.assert_array_equal(held_out.action.read(0, first.rows), first.action.read())
    with pytest.raises(CascadeError, match="every=1"):
        split(large, every=1)
