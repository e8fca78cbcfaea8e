"""What works on this machine, and for everything that does not the command that fixes it.

Whatever may crash or hang is tried in a process of its own, all of them at once.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from cascade.envs import gl
from cascade.envs.registry import SCHEMES
from cascade.report.predictions import find_ffmpeg
from cascade.run.machine import installed

SECONDS = 60.0
"""After which a process counts as hung."""
OLDEST, NEWEST = (3, 11), (3, 13)


@dataclass(frozen=True)
class World:
    """A world that stands for its family."""

    id: str
    observation: str = "auto"
    base: bool = False

    @property
    def title(self) -> str:
        return self.id if self.observation == "auto" else f"{self.id}, {self.observation}"


WORLDS = (
    World("minigrid:FourRooms-v0", "grid", base=True),
    World("minigrid:FourRooms-v0", "image", base=True),
    World("gym:CartPole-v1", base=True),
    World("atari:MontezumaRevenge"),
    World("crafter:world"),
    World("dmc:walker", "vector"),
    World("dmc:walker", "image"),
)
BASE = ("jax", "jaxlib", "equinox", "optax", "orbax-checkpoint", "numpy", "gymnasium", "minigrid", "tyro")
EXTRAS: Mapping[str, tuple[str, ...]] = {
    "atari": ("ale-py",),
    "crafter": ("crafter", "numba"),
    "dmc": ("dm_control", "mujoco"),
    "minari": ("minari", "h5py"),
    "ray": ("ray",),
    "wandb": ("wandb",),
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    group: str
    name: str
    ok: bool
    found: str
    remedy: str = ""
    """the command that fixes it"""
    base: bool = False
    """whether nothing runs without it"""


def examine(seconds: float = SECONDS) -> list[Finding]:
    """Everything, in the order in which it is shown."""
    commands = [["cascade.run.compute"], *(["cascade.envs.check", one.id, one.observation] for one in WORLDS)]
    with ThreadPoolExecutor(len(commands)) as pool:
        computed, *shown = pool.map(lambda words: attempt(words, seconds), commands)
    findings = [_python(), *packages(), *computing(computed)]
    findings += [world_finding(one, found) for one, found in zip(WORLDS, shown, strict=True)]
    drawn = next(found for one, found in zip(WORLDS, shown, strict=True) if one.title == "dmc:walker, image")
    return [*findings, renderer(drawn), _ffmpeg()]


def works(findings: Sequence[Finding]) -> bool:
    """Whether the base does."""
    return all(one.ok for one in findings if one.base)


def to_json(findings: Sequence[Finding]) -> dict[str, Any]:
    return {"works": works(findings), "findings": [asdict(one) for one in findings]}


def attempt(words: Sequence[str], seconds: float = SECONDS) -> dict[str, Any]:
    """What a module says of itself, run in a process of its own; `error` where it ends any other way."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", *words], capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return {"ok": False, "error": f"silent for {seconds:g} seconds"}
    if done.returncode < 0:
        return {"ok": False, "error": f"crashed: {signal.Signals(-done.returncode).name}"}
    try:
        document = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {"ok": False, "error": lines[-1]}
    return dict(document)


def install(extra: str) -> str:
    """The command that brings an extra."""
    return f"pip install 'cascade-rl[{extra}]'"


def _python() -> Finding:
    fits = OLDEST <= sys.version_info[:2] <= NEWEST
    remedy = "" if fits else "install Python 3.12, and make PYTHON=python3.12 setup"
    return Finding("python", "Python", fits, platform.python_version(), remedy, base=True)


def packages() -> list[Finding]:
    """What is installed: the base, then each extra."""
    missing = [name for name in BASE if installed(name) is None]
    versions = ", ".join(f"{name} {installed(name)}" for name in BASE if name not in missing)
    found = f"without {', '.join(missing)}" if missing else versions
    findings = [
        Finding("packages", "base", not missing, found, "pip install cascade-rl" if missing else "", True)
    ]
    for extra, names in EXTRAS.items():
        have = {name: version for name in names if (version := installed(name))}
        shown = ", ".join(f"{name} {version}" for name, version in have.items()) or "not installed"
        whole = len(have) == len(names)
        findings.append(Finding("packages", f"extra {extra}", whole, shown, "" if whole else install(extra)))
    return findings


def computing(found: Mapping[str, Any]) -> list[Finding]:
    """JAX, its devices and its cache."""
    if "devices" not in found:
        remedy = "JAX_PLATFORMS=cpu cascade doctor"
        return [Finding("compute", "JAX", False, str(found.get("error", "no answer")), remedy, base=True)]
    devices = found["devices"]
    right = bool(devices) and all(one["computes"] for one in devices)
    shown = ", ".join(_device(one) for one in devices)
    findings = [
        Finding("compute", "JAX", right, shown, "" if right else "pip install --force-reinstall jax", True)
    ]
    accelerated = any(one["platform"] != "cpu" for one in devices)
    idle = shutil.which("nvidia-smi") is not None and not accelerated
    remedy = ""
    if idle:
        remedy = "unset JAX_PLATFORMS" if os.environ.get("JAX_PLATFORMS") == "cpu" else install("cuda")
    words = (
        "in use" if accelerated else ("an NVIDIA driver, but JAX does not use it" if idle else "none needed")
    )
    findings.append(Finding("compute", "accelerator", not idle, words, remedy))
    cache = found["cache"]
    place = cache["folder"] or "off"
    note = place if cache["ok"] else cache["error"]
    remedy = "" if cache["ok"] else _another_cache()
    return [*findings, Finding("compute", "compilation cache", cache["ok"], note, remedy)]


def _another_cache() -> str:
    """The command after which the folder is not the one that was chosen, or none where nobody chose it."""
    chosen = [name for name in ("JAX_COMPILATION_CACHE_DIR", "XDG_CACHE_HOME") if os.environ.get(name)]
    return f"unset {chosen[0]}" if chosen else "export CASCADE_COMPILATION_CACHE=off"


def _device(one: Mapping[str, Any]) -> str:
    memory = f", {one['memory'] / 2**30:.0f} GiB for JAX" if one["memory"] else ""
    return f"{one['kind']} ({one['platform']}{memory})"


def world_finding(world: World, found: Mapping[str, Any]) -> Finding:
    """Whether a family runs."""
    if found["ok"]:
        shown = ", ".join(f"{name} {shape}" for name, shape in found["observations"].items())
        return Finding("worlds", world.title, True, shown, base=world.base)
    error = str(found["error"])
    extra = SCHEMES[world.id.partition(":")[0]].extra
    remedy = install(extra) if extra else "pip install --force-reinstall gymnasium minigrid"
    if gl.ADVICE in error or (world.title == "dmc:walker, image" and "extra" not in error):
        remedy = f"apt-get install {gl.PACKAGES}"
    return Finding(
        "worlds", world.title, False, error.removesuffix(f"; {gl.ADVICE}"), remedy, base=world.base
    )


def renderer(drawn: Mapping[str, Any]) -> Finding:
    """Which OpenGL draws MuJoCo's pictures."""
    if drawn["ok"]:
        return Finding("drawing", "OpenGL", True, f"{gl.VARIABLE}={drawn['gl'] or 'as MuJoCo chooses'}")
    return Finding(
        "drawing", "OpenGL", False, "walker's pictures cannot be drawn", f"apt-get install {gl.PACKAGES}"
    )


def _ffmpeg() -> Finding:
    program = find_ffmpeg()
    if program is None:
        return Finding(
            "drawing", "ffmpeg", False, "missing: films are .gif, not .mp4", "pip install imageio-ffmpeg"
        )
    return Finding("drawing", "ffmpeg", True, program)
