"""The one way seeds are written: `3`, `0-9` or `0,2,5`."""

import re
from typing import Annotated

import tyro

from cascade.errors import SettingError


def parse_seeds(text: str) -> tuple[int, ...]:
    """`0-9` or `0,2,5` or `3`, and mixtures such as `0-2,7`, as a tuple of distinct seeds."""
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if match is None:
            raise SettingError("--seeds", text, "a number, a range or a list: 3, 0-9 or 0,2,5")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise SettingError("--seeds", text, "a range that rises, such as 0-9")
        seeds.extend(range(first, last + 1))
    if len(set(seeds)) != len(seeds):
        raise SettingError("--seeds", text, "each seed once")
    return tuple(seeds)


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
