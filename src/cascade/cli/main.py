"""Parse, run the chosen command, and turn what the user can fix into one line."""

import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from typing import Any

import tyro
from rich.text import Text
from tyro.extras import subcommand_cli_from_dict

from cascade.cli import run, sweep, transfer
from cascade.cli.bench import Bench
from cascade.cli.dataset import Dataset
from cascade.cli.doctor import Doctor
from cascade.cli.export import Export
from cascade.cli.output import console, keep_stdout_free, redirections
from cascade.cli.presets import Presets
from cascade.cli.refusals import BadWords, in_one_line
from cascade.cli.report import Report
from cascade.cli.run import Run, chosen, prepare
from cascade.cli.sweep import Sweep
from cascade.cli.tabular import Tabular
from cascade.cli.transfer import Transfer
from cascade.cli.watch import Watch
from cascade.errors import CascadeError, UnknownSetting, did_you_mean

DESCRIPTION = """\
Learn one general world model from a handful of reward-free deployments of a diverse population of
explorers, then solve tasks nobody named beforehand.

Every command takes --json: one JSON document on stdout, everything else on stderr.
Seeds are written 3, 0-9 or 0,2,5 everywhere.
"""

COMMANDS: dict[str, Callable[..., Any]] = {
    "run": Run,
    "transfer": Transfer,
    "sweep": Sweep,
    "report": Report,
    "watch": Watch,
    "export": Export,
    "dataset": Dataset,
    "presets": Presets,
    "doctor": Doctor,
    "bench": Bench,
    "tabular": Tabular,
}


def main(args: Sequence[str] | None = None) -> None:
    """Entry point of the `cascade` command."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # where `module:function` may be
    # A GPU is shared: take its memory as it is needed, not three quarters of it at once.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        command = parse(sys.argv[1:] if args is None else args)
        with redirections:
            if command.json:
                keep_stdout_free()
            command.run()
    except CascadeError as error:
        _complain(str(error))
        sys.exit(error.code)
    except KeyboardInterrupt:  # where nobody listens for it, or for the second time
        _complain("interrupted; what was finished before is kept")
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:  # whoever read our words has heard enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _complain(message: str) -> None:
    console.print(Text.assemble(("cascade:", "bold red"), " ", message), soft_wrap=True)


def parse(args: Sequence[str]) -> Any:
    """The command that the words ask for. Where defaults are a preset's or a run's, it is read in two steps."""
    name = args[0] if args else ""
    if name == "run":
        default, rest = prepare(args[1:])
        return _read(Run, rest, default, run.USAGE)
    if name == "sweep":
        preset, config, rest = chosen(args[1:], {"--env": "--env.id"})
        return _read(Sweep, rest, Sweep(config=config, preset=preset), sweep.USAGE)
    if name == "transfer":
        return _read(Transfer, args[1:], transfer.prepare(args[1:]), transfer.USAGE)
    if name in COMMANDS:
        return _read(COMMANDS[name], args[1:])
    if name and not name.startswith("-"):
        near = did_you_mean(get_close_matches(name, COMMANDS))
        raise BadWords(f"{name} is no command of cascade{near}; there are {', '.join(COMMANDS)}")
    return subcommand_cli_from_dict(COMMANDS, prog="cascade", description=DESCRIPTION, args=args)


def _read(kind: Any, args: Sequence[str], default: Any = None, usage: str = "") -> Any:
    """The command with these words; settings that are not named keep their defaults."""
    prog, words = f"cascade {kind.__name__.lower()}", f"{inspect.getdoc(kind)}\n{usage}".rstrip()
    given = {} if default is None else {"default": default}
    command, unknown = in_one_line(
        prog,
        lambda: tyro.cli(kind, prog=prog, description=words, args=args, return_unknown_args=True, **given),
    )
    if unknown:
        word = unknown[0].partition("=")[0]
        raise _switch(word, args) or UnknownSetting(word, prog, _near(word, list(_names(asdict(command)))))
    return command


def _switch(word: str, args: Sequence[str]) -> BadWords | None:
    """What to write instead of `--a.b true`: settings that are on or off take no value. None for other words."""
    plain = ["", *(part for arg in args for part in arg.split("="))]
    name = plain[plain.index(word) - 1].replace(".no-", ".").replace("--no-", "--") if word in plain else ""
    if word.lower() not in ("true", "false") or not name.startswith("--"):
        return None
    group, _, last = name.rpartition(".")
    off = f"{group}.no-{last}" if group else f"--no-{last.removeprefix('--')}"
    return BadWords(f"{name} takes no value, got {word}; write {name} for true, {off} for false")


def _names(document: Mapping[str, Any], prefix: str = "--") -> Iterator[str]:
    """Every setting as it is written on the command line."""
    for name, value in document.items():
        if name == "preset":  # it comes first, and is no option
            continue
        inner = prefix if name == "config" else f"{prefix}{name.replace('_', '-')}."
        yield from _names(value, inner) if isinstance(value, Mapping) else (inner[:-1],)


def _near(word: str, names: Sequence[str]) -> list[str]:
    """Settings that end much as this word does, whatever they belong to."""

    def end(name: str) -> str:
        return name.lstrip("-").rpartition(".")[2]

    def likeness(name: str) -> float:
        return SequenceMatcher(None, end(name), end(word)).ratio()

    return [name for name in sorted(names, key=likeness, reverse=True)[:3] if likeness(name) > 0.75]
