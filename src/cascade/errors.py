"""What the user can mend. Everything else is a bug and keeps its traceback."""

from collections.abc import Sequence


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
        hint = f" (did you mean {' or '.join(near)}?)" if near else ""
        super().__init__(f"{word} is no setting of `{command}`{hint}; `{command} --help` lists them all")


class MissingExtra(CascadeError):
    """An optional dependency is needed and not installed."""

    code = 2

    def __init__(self, purpose: str, extra: str):
        super().__init__(f"{purpose} needs the extra '{extra}': pip install 'cascade-rl[{extra}]'")
