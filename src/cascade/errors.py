"""What the user can fix. Everything else is a bug and keeps its traceback."""

import errno
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

MORE_FILES = "allow more open files (`ulimit -n 65536`)"
_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EMFILE: MORE_FILES,
    errno.ENFILE: MORE_FILES,
}
DAMAGED = (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""What reading an .npz raises where some of its bits are others."""


class CascadeError(Exception):
    """A failure with one clear line: what happened and what to do. The command exits with `code`."""

    code = 1


class SettingError(CascadeError):
    """A setting has a value that cannot be used."""

    code = 2

    def __init__(self, setting: str, value: object, expected: str):
        super().__init__(f"{setting}: got {value!r}, expected {expected}")


class UnknownSetting(CascadeError):
    """A word on the command line that names no setting."""

    code = 2

    def __init__(self, word: str, command: str, near: Sequence[str] = ()):
        hint = did_you_mean(near)
        super().__init__(f"{word} is no setting of `{command}`{hint}; `{command} --help` lists them all")


class MissingExtra(CascadeError):
    """An optional dependency is needed and not installed."""

    code = 2

    def __init__(self, purpose: str, extra: str):
        super().__init__(f"{purpose} needs the extra '{extra}': pip install 'cascade-rl[{extra}]'")


def did_you_mean(near: Sequence[str]) -> str:
    """The end of a message, with what may have been meant; nothing if there is nothing."""
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def cause_of(error: BaseException) -> str:
    """What went wrong elsewhere, in one line: the kind of error, and the first line of what it says, if anything."""
    said = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return ": ".join(filter(None, [type(error).__name__, said]))


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a failed write under `path` into one clear line."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "make the folder writable")
        cause = error.strerror or str(error)
        raise CascadeError(
            f"{path}: cannot write ({cause}); {remedy} and run the same command again, nothing stored is lost"
        ) from error
