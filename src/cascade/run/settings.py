"""Settings as plain documents: written with a run, read back, and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

from cascade.config import RunConfig
from cascade.errors import CascadeError

Config = TypeVar("Config")


def to_document(config: RunConfig) -> dict[str, Any]:
    """Every setting, nested as the dataclasses are."""
    return asdict(config)


def from_document(document: Mapping[str, Any]) -> RunConfig:
    """The settings that were written with a run. A setting that is unknown here says so."""
    return _read(RunConfig, document, "")


def _read(kind: type[Config], document: Mapping[str, Any], prefix: str) -> Config:
    hints = get_type_hints(kind)
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(document) - known):
        raise CascadeError(
            f"setting {prefix}{unknown[0].replace('_', '-')} is unknown to this version of cascade; "
            "open the run with the version that wrote it, which its run.json names"
        )
    values = {}
    for name, value in document.items():
        inner = hints[name]
        if isinstance(inner, type) and is_dataclass(inner):
            value = _read(inner, value, f"{prefix}{name.replace('_', '-')}.")
        values[name] = value
    return kind(**values)


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """One line for each setting that differs: `deploy.steps: was 200, now 300`."""
    lines = []
    for name in dict.fromkeys([*old, *new]):
        label = f"{prefix}{name.replace('_', '-')}"
        before, after = old.get(name), new.get(name)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            lines += differences(before, after, f"{label}.")
        elif before != after:
            lines.append(f"{label}: was {before!r}, now {after!r}")
    return lines
