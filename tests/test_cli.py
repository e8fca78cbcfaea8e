"""The `cascade` command as a whole: help, refusals, and what goes where."""

import ast
import dataclasses
import json
import os
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import get_type_hints

import pytest
import tyro

from cascade.cli import main
from cascade.cli.main import COMMANDS, parse
from cascade.cli.output import say
from cascade.cli.progress import Quiet
from cascade.cli.refusals import BadWords
from cascade.cli.tables import by_deployment
from cascade.errors import CascadeError
from cascade.run.signals import Interrupted

PACKAGE = Path(__file__).parents[1] / "src" / "cascade"
SETTINGS = [*sorted(PACKAGE.glob("config/*.py")), *sorted(PACKAGE.glob("cli/*.py"))]


def stopped(capsys, *args: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that does not return."""
    with pytest.raises(SystemExit) as stop:
        main(list(args))
    captured = capsys.readouterr()
    code = stop.value.code
    return (0 if code is None else int(code)), captured.out, captured.err


def fresh(code: str) -> str:
    """What a fresh interpreter prints, without this one's imports and hooks."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout


def test_help_lists_every_command_with_a_sentence(capsys):
    code, out, _ = stopped(capsys, "--help")
    assert code == 0
    assert "reward-free" in out
    assert "--json" in out
    text = " ".join(word for word in out.split() if word != "│")
    for name, command in COMMANDS.items():
        first = " ".join((command.__doc__ or "").split())[:40]
        assert f"{name} {first}" in text


def test_ctrl_c_where_nobody_listens_is_one_line(capsys, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(COMMANDS["report"], "run", interrupted)
    code, _, said = stopped(capsys, "report", "somewhere")
    assert (code, said) == (130, "cascade: interrupted; what was finished before is kept\n")


def test_notes_are_told_as_they_are(capsys):
    Quiet().note("give it a render() that returns uint8 [height, width, 3]")
    assert "uint8 [height, width, 3]" in capsys.readouterr().err


def test_whatever_is_printed_meanwhile_the_document_is_alone_on_stdout(monkeypatch):
    """Also what waits in a buffer until the command ends."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    noisy = """
import ctypes, os, sys
from cascade.cli.main import COMMANDS, main
run, earlier = COMMANDS["presets"].run, sys.stdout
def noisy(self):
    print("a world")
    os.system("echo its process")
    earlier.write("a library that kept stdout\\n")
    ctypes.CDLL(None).printf(b"compiled code\\n")
    run(self)
COMMANDS["presets"].run = noisy
main(["presets", "--json"])
print("after")
"""
    document, _, rest = fresh(noisy).rpartition("}\n")
    assert "demo" in json.loads(document + "}")
    assert rest == "after\n"


def settings_without_help(source: Path) -> list[str]:
    """Fields of dataclasses that no string follows; tyro shows that string as their help."""
    missing = []
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef) and "dataclass" in ast.unparse(ast.List(node.decorator_list)):
            for field, after in pairwise([*node.body, ast.Pass()]):
                text = ast.unparse(after) if isinstance(after, ast.Expr) else ""
                shown = isinstance(field, ast.AnnAssign) and not _is_hidden(ast.unparse(field.annotation))
                if shown and len(text) < 8:
                    missing.append(f"{node.name}.{ast.unparse(field.target)}")
    return missing


def _is_hidden(annotation: str) -> bool:
    """Fields that are no settings of their own: left out, or a group whose settings are shown one by one."""
    return "Suppress" in annotation or "name=''" in annotation


@pytest.mark.parametrize("source", SETTINGS, ids=lambda path: path.stem)
def test_every_setting_has_a_line_of_help(source):
    assert settings_without_help(source) == []


def test_a_setting_without_help_is_found(tmp_path):
    source = tmp_path / "bad.py"
    source.write_text("@dataclass\nclass A:\n    x: int = 1\n    y: int = 2\n    'what it does'\n")
    assert settings_without_help(source) == ["A.x"]


def flag(name: str, hint: object) -> str:
    """How help names a setting: what stands without a flag has its capitals, such as RUN."""
    marks = getattr(hint, "__metadata__", ())
    if tyro.conf.Suppress in marks or any(getattr(mark, "name", None) == "" for mark in marks):
        return ""
    if tyro.conf.Positional in marks:
        return next(mark.metavar.split()[0] for mark in marks if getattr(mark, "metavar", None))
    return f"--{name.replace('_', '-')}"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_shows_every_setting(capsys, name):
    code, out, _ = stopped(capsys, name, "--help")
    assert code == 0
    hints = get_type_hints(COMMANDS[name], include_extras=True)
    assert [shown for field in dataclasses.fields(COMMANDS[name])
            if (shown := flag(field.name, hints[field.name])) not in out] == []  # fmt: skip


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ([], ["tabular"]),
        (["dance"], ["dance is no command", "tabular"]),
        (["rum"], ["rum is no command", "did you mean run?"]),
        (["run", "--out", "typo"], ["typo: there is no run to go on with", "cascade run demo --out typo"]),
        (["run", "demo", "--deploy.steps", "abc"], ["--deploy.steps: got 'abc', expected INT"]),
        (["run", "demo", "--method", "foo"], ["'foo'", "--method", "'pp2e'"]),
        (["run", "demo", "--explore.weight"], ["--explore.weight", "cascade run --help"]),
        (["dataset"], ["Missing from cascade dataset: RUN, --task NAME, --out DIR"]),
        (["tabular", "--hight", "3"], ["--hight is no setting", "--height?"]),
        (["tabular", "leftover"], ["leftover is no setting", "cascade tabular --help"]),
        (["transfer", "runs/any", "--quiet"], ["--quiet is no setting", "cascade transfer --help"]),
        (["report", "runs/any", "--output=page"], ["--output is no setting", "cascade report --help"]),
        (["tabular", "--height"], ["--height"]),
        (["tabular", "--height", "abc"], ["--height", "abc", "INT"]),
        (["tabular", "--population", "2.5"], ["--population", "2.5", "INT"]),
        (["tabular", "--epsilon", "small"], ["--epsilon", "small", "FLOAT"]),
        (["tabular", "--side", "wide"], ["--side", "wide", "INT"]),
        (["tabular", "--seeds", "one"], ["--seeds", "one", "0-9"]),
        (["tabular", "--world", "ocean"], ["--world", "ocean", "tree, stochastic, grid"]),
        (["tabular", "--height", "-3"], ["--height", "-3", "from 1 to 12"]),
        (["run", "demo", "--populaton", "3"], ["--populaton", "--explore.population?", "cascade run --help"]),
        (["run", "demo", "--deploy.step=3"], ["--deploy.step is", "--deploy.steps"]),
        (["run", "demo", "7"], ["7 is no setting", "cascade run --help"]),
        (["sweep", "demo", "--sedes", "0-3"], ["--sedes", "--seeds?", "cascade sweep --help"]),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else None,
)
def test_a_refusal_names_setting_value_and_what_is_accepted(capsys, args, named):
    code, out, err = stopped(capsys, *args)
    assert code == 2
    assert out == ""
    assert [word for word in named if word not in err] == []
    assert err.count("\n") == 1 or not args


def test_json_is_one_document_and_alone_on_stdout(capsys):
    main(["tabular", "--height", "2", "--population", "2", "--seeds", "0-3", "--json"])
    captured = capsys.readouterr()
    document, end = json.JSONDecoder().raw_decode(captured.out)
    assert captured.out[end:] == "\n"
    assert document["settings"]["seeds"] == [0, 1, 2, 3]
    assert "sequential" in captured.err


@pytest.mark.parametrize("how", [["-c", "from cascade.cli import main; main()"], ["-m", "cascade"]])
def test_the_installed_command_exits_as_the_function_does(how):
    """Through a real process: exit code 2, one line on stderr, nothing on stdout."""
    words = [sys.executable, *how, "tabular", "--population", "0"]
    found = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode == 2
    assert found.stdout == ""
    assert found.stderr.count("\n") == 1
    assert "--population: got 0" in found.stderr


def test_modules_beside_the_caller_are_found_by_the_installed_command(tmp_path):
    """An entry point has its own folder on the path, not the one it is called in."""
    (tmp_path / "beside.py").write_text("")
    words = ["run", "demo", "--smoke", "--out", "run", "--explore.diversity", "beside:absent"]
    command = [Path(sys.executable).with_name("cascade"), *words]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert found.returncode == 2
    assert "module 'beside' has no attribute 'absent'" in " ".join(found.stderr.split())


@pytest.mark.parametrize(
    ("words", "name", "off"),
    [
        ("--ensemble.beside false", "--ensemble.beside", "--ensemble.no-beside"),
        ("--world.no-layer-norm=True", "--world.layer-norm", "--world.no-layer-norm"),
        ("--smoke true", "--smoke", "--no-smoke"),
    ],
)
def test_settings_that_are_on_or_off_take_no_value_and_say_so(words, name, off):
    with pytest.raises(
        BadWords, match=rf"^{name} takes no value, got \w+; write {name} for true, {off} for false"
    ):
        parse(["run", "demo", *words.split()])
    with pytest.raises(CascadeError, match="true is no setting of"):
        parse(["run", "demo", "--out", "x", "true"])


AWKWARD = "runs/[/x] [bold]b :smile: " + "long " * 40 + "end"


def test_a_line_is_printed_as_it_is(capsys):
    say(AWKWARD)
    assert capsys.readouterr().err == AWKWARD + "\n"


def test_names_in_a_table_are_printed_as_they_are(capsys):
    say(by_deployment({"[/x] [bold]b :smile:": [{"deployment": 0, "metric": "coverage", "value": 1.0}]}))
    assert "[/x] [bold]b :smile:" in capsys.readouterr().err


def test_a_mistake_is_printed_as_it_is(capsys):
    with pytest.raises(SystemExit):
        main(["report", AWKWARD])
    err = capsys.readouterr().err
    assert f"cascade: {AWKWARD}" in err
    assert err.count("\n") == 1


def test_the_command_to_go_on_with_can_be_copied(capsys, monkeypatch):
    def stop(*_: object, **__: object) -> None:
        raise Interrupted("stopped")

    monkeypatch.setattr("cascade.run.api.run", stop)
    with pytest.raises(SystemExit):
        main(["run", "demo", "--quiet", "--out", AWKWARD])
    words = shlex.split(capsys.readouterr().err.partition("go on with: ")[2])
    assert words == ["cascade", "run", "--out", AWKWARD]


@pytest.mark.parametrize(("asked", "given"), [(None, "false"), ("true", "true")])
def test_a_gpu_is_shared_unless_asked_otherwise(monkeypatch, capsys, asked, given):
    """JAX alone would reserve most of its memory, and a second run beside this one would find none."""
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", asked or "")
    if asked is None:
        monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE")
    main(["presets", "--json"])
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == given
    assert capsys.readouterr().out


def test_startup_loads_nothing_heavy():
    """`cascade --help` must answer at once: arrays and plots are loaded by the commands that need them."""
    heavy = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "matplotlib", "gymnasium", "pandas")
    code = f"import sys, cascade.__main__; print([name for name in {heavy} if name in sys.modules])"
    assert fresh(code).strip() == "[]"


def test_worlds_and_specs_load_no_jax():
    """Worker processes step environments; JAX would cost each of them seconds and memory."""
    code = (
        "import sys, cascade.envs, cascade.envs.minigrid, cascade.envs.probe, cascade.envs.worker; "
        "print([name for name in ('jax', 'jaxlib', 'equinox', 'optax') if name in sys.modules])"
    )
    assert fresh(code).strip() == "[]"
