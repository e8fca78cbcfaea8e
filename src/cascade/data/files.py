"""Arrays and JSON on disk: streamed, checksummed, flushed to the disk, never pickled.

Everything that counts is written beside its place and renamed into it, so that a kill at any moment leaves
either nothing or all of it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from cascade.errors import MORE_FILES, CascadeError, disk_errors

CHUNK = 8 << 20
LOCK = ".lock"
"""In a folder that one process writes at a time; of a file it is beside it, with the file's name before."""


class Unusable(CascadeError):
    """A file that cannot be trusted: missing, cut short, altered, or not a plain array."""


@contextmanager
def one_writer(path: Path, busy: str = "") -> Iterator[None]:
    """Let other processes that would change what is at `path` wait meanwhile, or end with the line `busy`."""
    lock = path / LOCK if path.is_dir() else path.with_name(f".{path.name}{LOCK}")
    with disk_errors(lock.parent):
        handle = lock.open("w")
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
        except OSError as error:
            if busy and error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise CascadeError(busy) from None
            raise CascadeError(
                f"{lock}: cannot be locked ({error.strerror}); choose a folder on a file system that has locks"
            ) from None
        yield


def sync(path: Path) -> None:
    """Flush a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    """Remove a folder that is no longer needed; what cannot be removed does no harm."""
    shutil.rmtree(path, ignore_errors=True)


def publish(temporary: Path, final: Path) -> None:
    """Rename into place, durably. The content of `temporary` has been flushed already."""
    sync(temporary)
    temporary.rename(final)
    sync(final.parent)


@dataclass(frozen=True)
class FileEntry:
    """What one `.npy` file must be."""

    shape: tuple[int, ...]
    dtype: str | list[list[str]]
    """as in the `.npy` header: a string such as '<f4', or a list of fields for a table"""
    bytes: int
    crc32: str

    def to_json(self) -> dict[str, Any]:
        return {"shape": list(self.shape), "dtype": self.dtype, "bytes": self.bytes, "crc32": self.crc32}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> FileEntry:
        return cls(tuple(value["shape"]), value["dtype"], int(value["bytes"]), str(value["crc32"]))


def dtype_name(dtype: np.dtype[Any]) -> str | list[list[str]]:
    """A dtype as it stands in a `.npy` header, in JSON's types."""
    descr: Any = np.lib.format.dtype_to_descr(dtype)
    return descr if isinstance(descr, str) else [list(part) for part in descr]


class ArrayWriter:
    """Writes one `.npy` of known shape piece by piece, and its checksum on the way."""

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]):
        if dtype.hasobject:
            raise CascadeError(f"{path}: arrays of Python objects are not stored; use numbers or booleans")
        self.path, self.shape, self.dtype = path, shape, dtype
        self._crc = self._bytes = self._rows = 0
        self._file = path.open("wb", buffering=1 << 20)

    def __enter__(self) -> ArrayWriter:
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False}
        np.lib.format.write_array_header_1_0(self, {**header, "shape": self.shape})
        return self

    def write(self, data: bytes | memoryview) -> int:
        self._crc = zlib.crc32(data, self._crc)
        self._bytes += len(data)
        return self._file.write(data)

    def append(self, rows: np.ndarray) -> None:
        """The next rows, of the declared shape and type."""
        if rows.dtype != self.dtype or rows.shape[1:] != self.shape[1:]:
            raise ValueError(f"{self.path}: {rows.dtype}{rows.shape} does not fit {self.dtype}{self.shape}")
        self._rows += len(rows)
        if rows.size:
            self.write(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._file:
            if error is None:
                self._file.flush()
                os.fsync(self._file.fileno())
        if error is None and self._rows != self.shape[0]:
            raise ValueError(f"{self.path}: {self._rows} rows written, {self.shape[0]} declared")

    @property
    def entry(self) -> FileEntry:
        return FileEntry(self.shape, dtype_name(self.dtype), self._bytes, f"{self._crc:08x}")


def write_array(path: Path, array: np.ndarray) -> FileEntry:
    """One whole `.npy`, flushed."""
    with ArrayWriter(path, array.shape, array.dtype) as writer:
        writer.append(array)
    return writer.entry


def open_array(path: Path, entry: FileEntry | None = None) -> np.ndarray:
    """A `.npy` as a read-only memory map, checked against what it must be. Nothing is ever unpickled."""
    try:
        if entry is not None and (found := path.stat().st_size) != entry.bytes:
            raise Unusable(f"{path.name}: {found} bytes, expected {entry.bytes}")
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise _unread(path, error) from None
    except (ValueError, EOFError, SyntaxError) as error:
        raise Unusable(f"{path.name}: not a plain .npy array ({str(error).splitlines()[0]})") from None
    if entry is not None:
        dtype = dtype_name(array.dtype)
        if (array.shape, dtype) != (entry.shape, entry.dtype):
            raise Unusable(f"{path.name}: {dtype}{array.shape}, expected {entry.dtype}{entry.shape}")
    return array


def _unread(path: Path, error: OSError) -> CascadeError:
    """Why a file was not read. A process with too many open files says nothing about this one."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return CascadeError(f"{path}: {error.strerror}; {MORE_FILES} and run the same command again")
    return Unusable(f"{path.name}: {'missing' if error.errno == errno.ENOENT else error.strerror or error}")


def check_bytes(path: Path, entry: FileEntry) -> None:
    """Read the whole file and compare its checksum."""
    crc = 0
    try:
        with path.open("rb", buffering=0) as file:
            while data := file.read(CHUNK):
                crc = zlib.crc32(data, crc)
    except OSError as error:
        raise _unread(path, error) from None
    if f"{crc:08x}" != entry.crc32:
        raise Unusable(f"{path.name}: checksum {crc:08x}, expected {entry.crc32}")


def write_json(path: Path, document: dict[str, Any]) -> None:
    """A JSON document, put in place at once, with a checksum of itself."""
    text = json.dumps({**document, "crc32": _document_crc(document)}, indent=1, allow_nan=False)
    write_bytes(path, f"{text}\n".encode())


def write_bytes(path: Path, content: bytes) -> None:
    """A whole file, put in place at once."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    publish(temporary, path)


def read_json(path: Path) -> dict[str, Any]:
    """A document written by `write_json`, unaltered."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unread(path, error) from None
    except (ValueError, RecursionError):
        raise Unusable(f"{path.name}: unreadable") from None
    if not isinstance(document, dict) or document.pop("crc32", None) != _document_crc(document):
        raise Unusable(f"{path.name}: altered after it was written")
    return document


def _document_crc(document: dict[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"{zlib.crc32(text.encode()):08x}"
