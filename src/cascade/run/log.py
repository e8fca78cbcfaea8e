"""Every value that training tells, into metrics.jsonl and TensorBoard; into Weights & Biases if asked for.

A run that goes on after a kill repeats some steps: what metrics.jsonl had of them is taken out first, so that every
step is there once. TensorBoard's files are only added to, and have such steps twice.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from cascade.errors import MissingExtra, disk_errors
from cascade.run.state import PHASES, Position
from cascade.seeds import format_seeds

Values = Mapping[str, np.ndarray]


class Log:
    """Writes one line for each seed and moment."""

    def __init__(self, path: Path, seeds: tuple[int, ...], at: Position, wandb: str | None = None):
        self.path, self.seeds = path, seeds
        self._wandb = _wandb(wandb, path.parent, seeds) if wandb else None
        with disk_errors(path):
            forget(path, seeds, at)
            self._file = path.open("a", encoding="utf-8")
        self._board = _board(path.parent / "tb", path)

    def write(self, at: Position, values: Values) -> None:
        """`values` have a leading S; what is left of each is a number, or one number for each explorer."""
        now = round(time.time(), 3)
        with disk_errors(self.path):
            for i, seed in enumerate(self.seeds):
                own = {name: _plain(np.asarray(value)[i]) for name, value in sorted(values.items())}
                line = {
                    "time": now,
                    "phase": at.name,
                    "deployment": at.deployment,
                    "step": at.step,
                    "seed": seed,
                }
                self._file.write(json.dumps(line | {"values": own}, allow_nan=False) + "\n")
                self._publish(at, seed, own)
            self._file.flush()

    def _publish(self, at: Position, seed: int, values: Mapping[str, Any]) -> None:
        flat = {}
        for name, value in values.items():
            numbers = [x for x in (value if isinstance(value, list) else [value]) if x is not None]
            if numbers:
                flat[f"seed-{seed}/{at.name}-{at.deployment}/{name}"] = sum(numbers) / len(numbers)
        for name, value in flat.items():
            self._board.add_scalar(name, value, at.step)
        if self._wandb is not None:
            self._wandb.log(flat)

    def close(self) -> None:
        self._file.close()
        self._board.close()
        if self._wandb is not None:
            self._wandb.finish()


def _plain(value: Any) -> float | list[float | None] | None:
    """A number or a list of them; what is not finite is null, which JSON has."""
    if np.ndim(value):
        return [_number(part) for part in np.ravel(value)]
    return _number(value)


def _number(value: Any) -> float | None:
    return float(f"{float(value):.6g}") if math.isfinite(value) else None


def forget(path: Path, seeds: tuple[int, ...], at: Position) -> None:
    """Take out what these seeds logged past a position, and a last line that was cut short."""
    if not path.exists():
        return
    kept = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        logged = Position(line["deployment"], PHASES.index(line["phase"]), line["step"])
        if line["seed"] not in seeds or logged <= at:
            kept.append(text)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text("".join(text + "\n" for text in kept), encoding="utf-8")
    temporary.replace(path)


def _board(folder: Path, path: Path) -> Any:
    from tensorboardX import SummaryWriter

    with disk_errors(path):
        return SummaryWriter(str(folder))


def _wandb(project: str, folder: Path, seeds: tuple[int, ...]) -> Any:
    """A run that goes on goes on there too: its id is that of the folder and its seeds."""
    name = f"{folder.resolve().name}-seeds-{format_seeds(seeds)}"
    ident = blake2b(f"{folder.resolve()} {name}".encode(), digest_size=8).hexdigest()
    return load_wandb().init(project=project, dir=str(folder), name=name, id=ident, resume="allow")


def load_wandb() -> Any:
    """Weights & Biases, or the line that says how to install it."""
    try:
        import wandb
    except ImportError:
        raise MissingExtra("--wandb", "wandb") from None
    return wandb
