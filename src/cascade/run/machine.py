"""Where a result was made: versions, hardware and commit, for every file that carries numbers."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "minigrid")


def describe() -> dict[str, Any]:
    """Versions, devices and commit, without any name of a machine or a person."""
    import jax

    from cascade import __version__

    return {
        "cascade": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := installed(name))},
        "platform": platform.system(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "devices": [device.device_kind for device in jax.devices()],
    }


def installed(package: str) -> str | None:
    """The version of a package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def commit() -> str | None:
    """The commit of the source this runs from, with + where files differ from it; None outside a checkout."""
    root = Path(__file__).resolve().parents[3]

    def git(*args: str) -> str:
        return subprocess.run(
            ["git", "-C", str(root), *args], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()

    try:
        dirty = "+" if git("status", "--porcelain", "--untracked-files=no") else ""
        return git("rev-parse", "--short=12", "HEAD") + dirty
    except (OSError, subprocess.SubprocessError):
        return None
