"""`python -m cascade.run.compute`: what JAX computes on here, and where compiled programs are kept; JSON on stdout.

For `cascade doctor`, which runs it in a process of its own: a driver that crashes or hangs stops only that one.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def compute() -> dict[str, Any]:
    """Devices that have computed something, with their memory, and the folder of the compilation cache."""
    import jax
    import jax.numpy as jnp

    devices = []
    for device in jax.devices():
        values = jax.device_put(jnp.ones((64, 64)), device)
        right = float((values @ values)[0, 0]) == 64.0
        stats = device.memory_stats() or {}
        memory = stats.get("bytes_limit")
        devices.append(
            {"kind": device.device_kind, "platform": device.platform, "memory": memory, "computes": right}
        )
    return {"devices": devices, "cache": cache()}


def cache() -> dict[str, Any]:
    """Whether compiled programs can be kept, and where."""
    import jax

    from cascade.run.cache import keep_compiled_programs, try_to_write

    if os.environ.get("CASCADE_COMPILATION_CACHE") == "off":
        return {"ok": True, "folder": None}
    notes: list[str] = []
    keep_compiled_programs(notes.append)
    folder = getattr(jax.config, "jax_compilation_cache_dir", None)
    if folder and "://" not in folder:  # JAX takes a chosen one as it is, also a bucket
        try:
            try_to_write(Path(folder))
        except OSError as error:
            notes.append(f"compiled programs cannot be kept ({error})")
    return {"ok": not notes, "folder": folder} | ({"error": notes[0]} if notes else {})


if __name__ == "__main__":
    sys.stdout.write(json.dumps(compute()) + "\n")
