"""Labels: what arriving at each row was worth, one array per task, kept apart from what learning reads.

Recorded rewards and labels added later are stored alike: `labels/<task>.npy`, and beside it a small record
with the checksum, written last. No manifest changes when labels are added.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np

from cascade.data.files import (
    FileEntry,
    Unusable,
    check_bytes,
    one_writer,
    open_array,
    publish,
    read_json,
    write_array,
    write_json,
)

FOLDER = "labels"
DTYPE = np.dtype(np.float32)


def label_file(deployment: Path, task: str) -> Path:
    """Where a task's labels are. The name is percent-encoded, so `my_rewards:jump` is a good one."""
    return deployment / FOLDER / f"{quote(task, safe='')}.npy"


def _record(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".npy") + ".json")


def put_labels(deployment: Path, task: str, labels: np.ndarray) -> None:
    """Store labels of one task, in place of any it had. A kill leaves the old, the new or none of them."""
    path = label_file(deployment, task)
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    with one_writer(path):
        entry = write_array(temporary, labels)
        _record(path).unlink(missing_ok=True)
        publish(temporary, path)
        record_labels(path, entry)


def record_labels(path: Path, entry: FileEntry) -> None:
    """Make a written label file count."""
    write_json(_record(path), {"file": entry.to_json()})


def open_labels(deployment: Path, task: str, rows: int, verify: bool = True) -> np.ndarray:
    """One number per row, memory-mapped; `Unusable` if the file is not what was written."""
    path = label_file(deployment, task)
    document = read_json(_record(path))
    try:
        entry = FileEntry.from_json(document["file"])
    except (KeyError, TypeError, ValueError) as error:
        raise Unusable(f"{_record(path).name}: incomplete ({error!r})") from None
    if (entry.shape, entry.dtype) != ((rows,), DTYPE.str):
        raise Unusable(f"{path.name}: {entry.dtype}{entry.shape} for {rows} rows")
    array = open_array(path, entry)
    if verify:
        check_bytes(path, entry)
    return array


def labelled_tasks(deployment: Path) -> list[str]:
    """The tasks that have labels here, by name."""
    return sorted(unquote(path.name.removesuffix(".json")) for path in (deployment / FOLDER).glob("*.json"))
