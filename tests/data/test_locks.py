"""One process at a time changes a thing; only a lock that another holds is told as such."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import numpy as np
import pytest
from data_helpers import make_store

from cascade.data import labels
from cascade.data.files import one_writer, write_array
from cascade.errors import CascadeError

BUSY = "somebody is at it; wait"


@pytest.mark.parametrize("name", ["", "labels.npy"])
def test_the_second_is_told_and_comes_in_when_the_first_has_left(tmp_path: Path, name: str) -> None:
    with (
        one_writer(tmp_path / name),
        pytest.raises(CascadeError, match=BUSY),
        one_writer(tmp_path / name, BUSY),
    ):
        pass
    with one_writer(tmp_path / name, BUSY):
        pass


@pytest.mark.parametrize("busy", ["", BUSY])
def test_a_disk_without_locks_is_not_another_process(tmp_path: Path, monkeypatch, busy: str) -> None:
    def absent(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", absent)
    with (
        pytest.raises(CascadeError, match=r"cannot be locked \(Function not implemented\); choose"),
        one_writer(tmp_path, busy),
    ):
        pass


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CascadeError, match="cannot write"), one_writer(tmp_path / "absent" / "file"):
        pass


def test_labels_are_written_by_one_at_a_time(tmp_path: Path, monkeypatch) -> None:
    """Their two files belong together: those of two writers would not."""
    store = make_store(tmp_path, [3, 4])
    path = labels.label_file(store.deployments[0].path, "new")
    refused = []

    def written(temporary: Path, array: np.ndarray) -> object:
        with pytest.raises(CascadeError, match=BUSY), one_writer(path, BUSY):
            pass
        refused.append(temporary)
        return write_array(temporary, array)

    monkeypatch.setattr(labels, "write_array", written)
    store.add_labels("new", [np.zeros(store.rows)])
    assert len(refused) == 1
    assert store.tasks == ["reward", "other", "new"]
