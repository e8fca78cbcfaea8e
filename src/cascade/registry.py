"""Named choices that a user can extend: one small file and one line, or `module:function` from anywhere."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from cascade.errors import SettingError, did_you_mean


class Registry(dict[str, Callable[..., Any]]):
    """Functions by name. `@registry.add("name")` adds one."""

    def __init__(self, setting: str):
        super().__init__()
        self.setting = setting

    def add(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self[name] = function
            return function

        return register

    def find(self, name: str) -> Callable[..., Any]:
        """The function of this name, or the one that `module:function` points to."""
        if name in self:
            return self[name]
        if ":" in name:
            return load(self.setting, name)
        hint = did_you_mean(get_close_matches(name, self, n=1))
        raise SettingError(self.setting, name, f"one of {', '.join(self)}, or module:function{hint}")


def load(setting: str, path: str) -> Callable[..., Any]:
    """The callable at `module:name`, importable from where the command runs."""
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SettingError(setting, path, f"an importable module:function ({error})") from error
    if not callable(found):
        raise SettingError(setting, path, "a function")
    return found
