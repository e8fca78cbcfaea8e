"""`cascade bench`: what this machine does, measured."""

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.table import Table

from cascade.cli.output import console, print_json, say
from cascade.errors import SettingError

if TYPE_CHECKING:
    from cascade.config import RunConfig

Document = dict[str, Any]
Row = tuple[str, str, str, str]
PRECISIONS = ("bfloat16", "float32")


@dataclass(frozen=True)
class Bench:
    """Measure this machine: environments, collection, samplers, and the training steps of a preset."""

    preset: str = "demo"
    """Whose sizes are measured."""
    what: Literal["all", "environment", "collect", "sampler", "matrix", "world", "explorers"] = "all"
    """Measure one thing only."""
    seconds: float = 3.0
    """Time for each measurement, at least; compilation comes on top."""
    json: bool = False
    """Print one JSON document on stdout."""
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: not written)")
    ] = None
    """File for the same document."""

    def run(self) -> None:
        """Measure, and report."""
        from cascade.presets import preset
        from cascade.run.cache import keep_compiled_programs
        from cascade.run.machine import describe

        if not self.seconds > 0:
            raise SettingError("--seconds", self.seconds, "a positive number")
        config = preset(self.preset)
        if self.out is not None:
            _try_to_write(self.out)
        keep_compiled_programs(say)
        document = {"command": self._command(), "machine": describe(), "preset": self.preset}
        document |= self._measure(config)
        say(_table(document))
        if self.out is not None:
            self.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
            say(f"wrote {self.out}")
        if self.json:
            print_json(document)

    def _measure(self, config: "RunConfig") -> Document:
        from cascade.envs import spec_of
        from cascade.run import bench, bench_collect
        from cascade.run.train import steps_per_call

        spec = spec_of(config.env)
        seconds, per_call = self.seconds, steps_per_call(spec, config.model_steps)

        def matrix() -> Document:
            rates = {name: bench.matrix_rate(name, seconds / 2) / 1e9 for name in PRECISIONS}
            return {f"{name}_gflop_per_s": bench.rounded(value) for name, value in rates.items()}

        measures: dict[str, Callable[[], Document]] = {
            "environment": lambda: bench_collect.environment(config, seconds),
            "collect": lambda: bench_collect.collection(config, seconds),
            "sampler": lambda: bench_collect.samplers(config, seconds, per_call),
            "matrix": matrix,
            "world": lambda: bench.world_model_step(spec, config, per_call=per_call, seconds=seconds),
            "explorers": lambda: bench.explorers_step(spec, config, per_call=per_call, seconds=seconds),
        }
        wanted = list(measures) if self.what == "all" else [self.what]
        if self.what in ("world", "explorers"):
            wanted.insert(0, "matrix")  # what their share is taken of
        found: Document = {}
        for name in wanted:
            with console.status(f"measuring: {name}"):
                found[name] = measures[name]()
        for name in {"world", "explorers"} & found.keys():
            peak = found["matrix"][f"{config.world.precision}_gflop_per_s"]
            found[name]["share_of_matrix_rate"] = bench.rounded(1e3 * found[name]["tflop_per_s"] / peak)
        return found

    def _command(self) -> str:
        """The command line that makes this document."""
        words = [
            "cascade",
            "bench",
            "--preset",
            self.preset,
            "--what",
            self.what,
            "--seconds",
            f"{self.seconds:g}",
        ]
        return shlex.join([*words, *(["--out", str(self.out)] if self.out is not None else [])])


def _try_to_write(path: Path) -> None:
    """Find out before measuring for minutes."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise SettingError("--out", str(path), f"a file that can be written ({error.strerror})") from error


def _table(document: Document) -> Table:
    machine = document["machine"]
    where = f"{machine['cores']} cores, {', '.join(machine['devices'])}, JAX {machine['packages']['jax']}"
    table = Table(title=f"Preset {document['preset']} on {where}")
    table.add_column("what")
    table.add_column("median", justify="right")
    table.add_column("best", justify="right")
    table.add_column("notes")
    for row in rows(document):
        table.add_row(*row)
    return table


def rows(document: Document) -> list[Row]:
    """The measurements for people: what, median, best, notes."""
    return [*_environment_rows(document), *_collect_rows(document), *_compute_rows(document)]


def _environment_rows(document: Document) -> Iterator[Row]:
    found = document.get("environment", {})
    for name, text in (
        ("raw", "plain environment"),
        ("adapter", "our environment"),
        ("vectoriser", "our environments in processes"),
    ):
        if result := found.get(name):
            note = f"lanes: {result['lanes']}, workers: {result['workers']}" if "lanes" in result else "one"
            yield text, f"{result['steps_per_s']:,} steps/s", f"{result['best']:,}", note


def _collect_rows(document: Document) -> Iterator[Row]:
    for name, result in document.get("collect", {}).items():
        note = ", ".join(f"{share:.0%} {part}" for part, share in result["share"].items())
        if "times_raw" in result:
            note = f"{result['times_raw']:.2f} times the plain environment; {note}"
        yield f"collecting, {name}", f"{result['steps_per_s']:,} steps/s", f"{result['best']:,}", note
    sampler = document.get("sampler", {})
    for name in ("device", "host"):
        if result := sampler.get(name):
            note = f"{sampler['batches_per_call']} batches to a call"
            yield f"sampler, {name}", f"{result['batches_per_s']:,} batches/s", f"{result['best']:,}", note


def _compute_rows(document: Document) -> Iterator[Row]:
    for name in PRECISIONS:
        if rate := document.get("matrix", {}).get(f"{name}_gflop_per_s"):
            yield f"matrix product, {name}", "", f"{rate:,.0f} GFLOP/s", "large and square"
    trained = (
        "world model and ensemble" if document.get("world", {}).get("with_ensemble", True) else "world model"
    )
    for name, text in (("world", trained), ("explorers", "explorers")):
        if result := document.get(name):
            together = result["steps_per_call"]
            note = (
                f"{result['gflop']:g} GFLOP, {result['share_of_matrix_rate']:.0%} of the matrix rate; "
                f"{together} step{'s' * (together > 1)} to a call; first call {result['first_call_s']:g} s"
            )
            yield f"step of the {text}", f"{result['ms']:.2f} ms", f"{result['best_ms']:.2f}", note
