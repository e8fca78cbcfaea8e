"""Compiled programs are kept in the user's own cache folder, by whatever compiles some."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache

SECONDS = 0.5
"""Programs that compile quicker are not kept."""


def keep_compiled_programs(note: Callable[[str], None] = warnings.warn) -> None:
    """Keep them from here on, unless a folder was chosen before; `note` is told why where none can be kept.

    They are trusted code, so they lie nowhere that is shared.
    """
    chosen = getattr(jax.config, "jax_compilation_cache_dir", None)
    if chosen or os.environ.get("CASCADE_COMPILATION_CACHE") == "off":
        return
    try:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        folder = Path(home) / "cascade" / "jax"
        try_to_write(folder)
    except (OSError, RuntimeError) as error:  # of which the second means that nobody knows a home
        note(
            f"compiled programs cannot be kept ({error}), so every command compiles anew; make the folder writable "
            "or choose another by XDG_CACHE_HOME, or set CASCADE_COMPILATION_CACHE=off to do without"
        )
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SECONDS)
    compilation_cache.reset_cache()  # JAX asks for the folder at its first program only, which may have been before


def try_to_write(folder: Path) -> None:
    """Make the folder, for its owner alone, and a file in it; an OSError says why that cannot be."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryFile(dir=folder):
        pass
