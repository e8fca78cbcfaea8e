"""`python -m cascade.envs.check ID OBSERVATION`: make a world, reset it, step once; one JSON document on stdout.

For `cascade doctor`, which runs it in a process of its own: a world that crashes takes only that process with it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Literal, cast

import numpy as np

from cascade.config import EnvConfig
from cascade.envs import gl, make
from cascade.errors import CascadeError, cause_of


def check(id: str, observation: str) -> dict[str, Any]:
    """What the world shows, or why it does not run."""
    try:
        kind = cast(Literal["auto", "grid", "image", "vector"], observation)
        world = make(EnvConfig(id, observation=kind))
        try:
            action = world.spec.action
            world.reset(0)
            step = world.step(0 if action.kind == "discrete" else np.zeros(action.size, np.float32))
        finally:
            world.close()
    except CascadeError as error:
        return {"ok": False, "error": str(error)}
    except Exception as error:
        return {"ok": False, "error": cause_of(error)}
    shown = {name: f"{part.dtype}{list(part.shape)}" for name, part in step.obs.items()}
    return {"ok": True, "observations": shown, "gl": os.environ.get(gl.VARIABLE, "")}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(check(*sys.argv[1:3])) + "\n")
