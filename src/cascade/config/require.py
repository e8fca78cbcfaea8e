"""How a setting that cannot be used is refused."""

from __future__ import annotations

from cascade.errors import SettingError


def require(setting: str, value: object, ok: bool, expected: str) -> None:
    """Raise the one-line error for a setting that cannot be used."""
    if not ok:
        raise SettingError(setting, value, expected)
