"""Collection in progress: a kill loses little, nothing is stored twice, the result is the same."""

from __future__ import annotations

import dataclasses
import errno
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from data_helpers import CONTINUOUS, SPEC, contents, make_episode, make_episodes

from cascade.data import files
from cascade.data import journal as journal_module
from cascade.data.journal import FEWEST_OPEN, Journal
from cascade.data.shards import Shard, shard_files
from cascade.data.store import Store
from cascade.errors import CascadeError
from cascade.specs import EpisodeKey

LENGTHS = [5, 8, 3, 7, 2, 9, 4, 6, 6, 1, 12, 3]
EPISODES = make_episodes(LENGTHS)


@pytest.fixture
def reference(tmp_path: Path) -> dict[str, bytes]:
    journal = Journal(tmp_path / "reference", 0, SPEC)
    for episode in EPISODES:
        journal.append(episode)
    journal.commit({"note": 1})
    return contents(tmp_path / "reference" / "deploy-000")


@pytest.mark.parametrize("flush_bytes", [1, 700, 1 << 20])
@pytest.mark.parametrize("seed", [0, 1])
def test_bytes_do_not_depend_on_arrival_or_shards(
    tmp_path: Path, reference: dict[str, bytes], flush_bytes: int, seed: int
) -> None:
    order = list(EPISODES)
    random.Random(seed).shuffle(order)
    journal = Journal(tmp_path / "run", 0, SPEC, flush_bytes=flush_bytes)
    for episode in order:
        assert journal.append(episode)
    journal.commit({"note": 1})
    assert contents(tmp_path / "run" / "deploy-000") == reference
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["deploy-000"]


def test_a_key_is_stored_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0, SPEC)
    assert journal.append(EPISODES[0])
    assert not journal.append(make_episode(EPISODES[0].key, 30))
    journal.flush()
    assert not journal.append(EPISODES[0])
    assert journal.finished() == {EPISODES[0].key: 5}
    assert journal.steps == 5


def test_flushes_by_bytes_and_by_time(tmp_path: Path) -> None:
    def shards(journal: Journal) -> int:
        return len(list(journal.path.glob("shard-*")))

    patient = Journal(tmp_path / "a", 0, SPEC, flush_bytes=1000, flush_seconds=1e9)
    patient.append(make_episode((0, 0, 0), 2))
    assert shards(patient) == 0
    patient.append(make_episode((0, 0, 1), 20))
    assert shards(patient) == 1
    hasty = Journal(tmp_path / "b", 0, SPEC, flush_bytes=1 << 30, flush_seconds=0.0)
    hasty.append(make_episode((0, 0, 0), 2))
    assert shards(hasty) == 1


def test_resumes_exactly_after_a_kill(tmp_path: Path, reference: dict[str, bytes]) -> None:
    """A real `kill -9`, with episodes on disk, in memory, a half-written shard and a half-made commit."""
    root = tmp_path / "run"
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from data_helpers import SPEC, make_episodes\n"
        "from cascade.data.journal import Journal\n"
        "journal = Journal(sys.argv[1], 0, SPEC)\n"
        f"for i, episode in enumerate(make_episodes({LENGTHS})):\n"
        "    if i == 7:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    journal.append(episode)\n"
        "    if i in (2, 4):\n"
        "        journal.flush()\n"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    ended = subprocess.run([sys.executable, "-c", program, str(root)], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    (root / "deploy-000.tmp" / "labels").mkdir(parents=True)
    (root / "deploy-000.tmp" / "action.npy").write_bytes(b"half")
    (root / "deploy-000.journal" / "shard-00002.tmp").mkdir()
    assert Store.open(root).rows == 0
    assert Store.open(root).problems == ()
    journal = Journal(root, 0, SPEC)
    assert journal.finished() == {episode.key: len(episode) for episode in EPISODES[:5]}
    assert journal.problems == []
    for episode in EPISODES:
        journal.append(episode)
    journal.commit({"note": 1})
    assert contents(root / "deploy-000") == reference


def tear_file(shard: Path) -> None:
    path = shard / "obs.image.npy"
    path.write_bytes(path.read_bytes()[:-100])


def tear_record(shard: Path) -> None:
    (shard / "shard.json").unlink()


def tear_bytes(shard: Path) -> None:
    data = bytearray((shard / "action.npy").read_bytes())
    data[-1] ^= 4
    (shard / "action.npy").write_bytes(bytes(data))


@pytest.mark.parametrize("tear", [tear_file, tear_record, tear_bytes])
def test_a_torn_shard_is_dropped_counted_and_collected_again(
    tmp_path: Path, reference: dict[str, bytes], tear
) -> None:
    journal = Journal(tmp_path / "run", 0, SPEC)
    for episode in EPISODES[:4]:
        journal.append(episode)
        journal.flush()
    tear(journal.path / "shard-00003")
    resumed = Journal(tmp_path / "run", 0, SPEC)
    assert len(resumed.problems) == 1
    assert "torn shard dropped" in resumed.problems[0]
    assert list(resumed.finished()) == [episode.key for episode in EPISODES[:3]]
    for episode in EPISODES:
        resumed.append(episode)
    resumed.commit({"note": 1})
    assert contents(tmp_path / "run" / "deploy-000") == reference


def test_a_disk_that_tears_the_same_shard_twice_stops_nothing(
    tmp_path: Path, reference: dict[str, bytes]
) -> None:
    for _ in range(2):
        journal = Journal(tmp_path / "run", 0, SPEC)
        journal.append(EPISODES[0])
        journal.flush()
        tear_bytes(max(folder for folder in journal.path.glob("shard-*") if folder.suffix != ".torn"))
    resumed = Journal(tmp_path / "run", 0, SPEC)
    assert not list(resumed.finished())
    assert len(list(resumed.path.glob("shard-*.torn"))) == 2
    for episode in EPISODES:
        resumed.append(episode)
    resumed.commit({"note": 1})
    assert contents(tmp_path / "run" / "deploy-000") == reference


@pytest.mark.parametrize("survivor", ["rename", "removal"])
def test_a_kill_around_the_commit_leaves_nothing_or_all(
    tmp_path: Path, reference: dict[str, bytes], survivor: str
) -> None:
    """Killed before the rename: the journal is complete. Killed after it: the deployment is."""
    root = tmp_path / "run"
    journal = Journal(root, 0, SPEC)
    for episode in EPISODES:
        journal.append(episode)
    journal.flush()
    shutil.copytree(journal.path, tmp_path / "saved")
    journal.commit({"note": 1})
    shutil.copytree(tmp_path / "saved", journal.path)
    if survivor == "rename":
        (root / "deploy-000").rename(root / "deploy-000.tmp")
        again = Journal(root, 0, SPEC)
        assert len(again.finished()) == len(EPISODES)
        again.commit({"note": 1})
    else:
        Journal(root, 1, SPEC)
        assert not journal.path.exists(), "what is committed needs no journal"
    assert contents(root / "deploy-000") == reference


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path, 0, SPEC)
    for episode in EPISODES[:3]:
        journal.append(episode)
    journal.flush()
    journal.append(EPISODES[3])

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for attempt in (journal.flush, journal.commit):
        with monkeypatch.context() as patch:
            patch.setattr(files.ArrayWriter, "append", full)
            with pytest.raises(CascadeError, match=r"No space left on device.*free some space") as caught:
                attempt()
        assert "\n" not in str(caught.value)
        assert str(tmp_path) in str(caught.value)
        assert not list(tmp_path.rglob("*.tmp"))
    assert len(Journal(tmp_path, 0, SPEC).finished()) == 3
    assert len(journal.finished()) == 4
    journal.commit()
    assert Store.open(tmp_path).steps == 5 + 8 + 3 + 7


@contextmanager
def few_files(spare: int) -> Iterator[None]:
    """Meanwhile this process may open only so many more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/dev/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + spare, hard))
    taken = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for _ in range(spare):
            os.close(taken.pop())
        yield
    finally:
        for handle in taken:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_shards_than_a_process_may_open_are_committed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(journal_module, "shards_kept_open", lambda: 4)
    lengths = [1] * 40
    journal = Journal(tmp_path, 0, CONTINUOUS, flush_bytes=1)
    for episode in make_episodes(lengths, CONTINUOUS):
        journal.append(episode)
    with few_files(12):
        stored = journal.commit()
    assert stored.manifest.steps == sum(lengths)


def test_a_shard_is_opened_once_for_each_of_its_files(tmp_path: Path, monkeypatch) -> None:
    """Every lane has an episode in every shard, and lanes are stored one after the other."""
    journal, shards = Journal(tmp_path, 0, CONTINUOUS), FEWEST_OPEN + 6
    for number in range(shards):
        for lane in range(2):
            journal.append(make_episode((0, lane, number), 1, CONTINUOUS))
        journal.flush()
    opened = []
    array = Shard.array

    def counted(shard: Shard, name: str) -> np.ndarray:
        opened.append((shard.path, name))
        return array(shard, name)

    monkeypatch.setattr(Shard, "array", counted)
    journal.commit()
    assert len(opened) == len(set(opened)) == shards * len(shard_files(CONTINUOUS))


def test_too_many_open_files_are_no_fault_of_a_shard(tmp_path: Path) -> None:
    """One is enough to look for shards, and too few to open them."""
    journal = Journal(tmp_path, 0, SPEC)
    journal.append(EPISODES[0])
    journal.flush()
    wanted = r"shard-00000.*: Too many open files; allow more.*ulimit -n"
    with few_files(1), pytest.raises(CascadeError, match=wanted) as caught:
        Journal(tmp_path, 0, SPEC)
    assert not isinstance(caught.value, files.Unusable)
    assert [path.name for path in journal.path.iterdir()] == ["shard-00000"], "none is put aside"
    assert Journal(tmp_path, 0, SPEC).finished() == {EPISODES[0].key: len(EPISODES[0])}


def test_a_stored_deployment_is_not_collected_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0, SPEC)
    journal.append(EPISODES[0])
    journal.commit()
    with pytest.raises(CascadeError, match="deployment 0 is stored already; collect the next"):
        Journal(tmp_path, 0, SPEC)


def test_an_empty_journal_has_nothing_to_commit(tmp_path: Path) -> None:
    with pytest.raises(CascadeError, match="no episode was collected"):
        Journal(tmp_path, 0, SPEC).commit()


def test_resuming_with_another_environment_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0, SPEC)
    journal.append(EPISODES[0])
    journal.flush()
    with pytest.raises(CascadeError, match="resume with the settings it was started with"):
        Journal(tmp_path, 0, CONTINUOUS)


def test_episodes_that_do_not_fit_the_spec_are_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 0, SPEC)
    good = make_episode((0, 0, 0), 4)
    wrong = [
        ({"obs": {"image": good.obs["image"]}}, r"differ in \['obs\.joint%2Fangles\.npy'\]"),
        ({"obs": good.obs | {"image": good.obs["image"].astype(np.float32)}}, r"is float32\(5, 4, 3, 3\)"),
        ({"action": good.action[:-1]}, r"expected uint8\(4, 4, 3, 3\)"),
        ({"action": good.action.astype(object)}, r"is object\(5,\)"),
        ({"labels": {}}, r"label\.other\.npy"),
        ({"info": {"cell": good.info["cell"][1:]}}, r"info\.cell\.npy.*int16\(4, 2\)"),
    ]
    for change, message in wrong:
        with pytest.raises(CascadeError, match=message):
            journal.append(dataclasses.replace(good, **change))
    with pytest.raises(CascadeError, match="has no step"):
        journal.append(make_episode((0, 0, 1), 0))
    assert journal.finished() == {}
    assert journal.append(good)
    assert journal.finished() == {EpisodeKey(0, 0, 0): 4}


def test_a_deployment_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch) -> None:
    """Every file is flushed, and its folder too, before the rename that makes the deployment count."""
    events: list[tuple[str, str]] = []
    rename = Path.rename

    def flushed(handle: int) -> None:
        events.append(("flush", Path(f"/proc/self/fd/{handle}").readlink().name))

    def renamed(path: Path, target: Path) -> Path:
        events.append(("rename", Path(target).name))
        return rename(path, target)

    journal = Journal(tmp_path, 0, SPEC)
    for episode in make_episodes([3, 4]):
        journal.append(episode)
    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(Path, "rename", renamed)
    journal.commit()
    named = events.index(("rename", "deploy-000"))
    before = {name for what, name in events[:named] if what == "flush"}
    stored = {path.name for path in (tmp_path / "deploy-000").rglob("*") if path.suffix in (".npy", ".json")}
    missing = {name for name in stored if not any(name in other for other in before)}
    assert len(stored) > 8
    assert missing == set()
    assert ("flush", tmp_path.name) in events[named:], "the new name itself"
