"""The one way seeds are written: `3`, `0-9` or `0,2,5`; and which there are."""

import operator
import re
from collections.abc import Iterable
from itertools import chain, islice
from typing import Annotated

import tyro

from cascade.errors import SettingError

LARGEST = 2**32 - 1
"""of what a random key is made from"""
MOST = 100_000


def parse_seeds(text: str) -> tuple[int, ...]:
    """`0-9` or `0,2,5` or `3`, and mixtures such as `0-2,7`, as a tuple of distinct seeds."""
    ranges: list[range] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,20})(?:-(\d{1,20}))?\s*", part)
        if match is None:
            raise SettingError("--seeds", text, "a number, a range or a list: 3, 0-9 or 0,2,5")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise SettingError("--seeds", text, "a range that rises, such as 0-9")
        ranges.append(range(first, last + 1))
    return check_seeds(chain(*ranges), "--seeds", text)


def check_seeds(seeds: Iterable[object], setting: str, given: object) -> tuple[int, ...]:
    """Distinct seeds that every random generator takes; the error repeats what was given."""
    try:
        chosen = tuple(operator.index(seed) for seed in islice(seeds, MOST + 1))  # type: ignore[arg-type]
    except TypeError:
        raise SettingError(setting, given, "whole numbers") from None
    if not 0 < len(chosen) <= MOST:
        raise SettingError(setting, given, f"1 to {MOST:,} seeds")
    if min(chosen) < 0 or max(chosen) > LARGEST:
        raise SettingError(setting, given, f"numbers from 0 to {LARGEST}")
    if len(set(chosen)) != len(chosen):
        raise SettingError(setting, given, "each seed once")
    return chosen


def format_seeds(seeds: tuple[int, ...]) -> str:
    """The shortest text that `parse_seeds` reads back as the same seeds."""
    runs: list[list[int]] = []
    for seed in seeds:
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


Seeds = Annotated[
    tuple[int, ...],
    tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="SEEDS",
        instance_from_str=lambda args: parse_seeds(args[0]),
        is_instance=lambda value: isinstance(value, tuple) and all(isinstance(v, int) for v in value),
        str_from_instance=lambda seeds: [format_seeds(seeds)],
    ),
]
