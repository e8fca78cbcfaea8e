"""The house in order: nothing of one machine in the tree, no pickles, pinned versions, small files."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import cascade

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
OUTPUTS = {"runs", "site", "dist", "build", "__pycache__"}  # what commands leave behind; not part of the tree
MAX_FILE, MAX_FUNCTION = 320, 80


def tree() -> Iterator[Path]:
    """Every file of the project, without asking git: hidden folders (but .ci) and outputs are skipped."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(
            name
            for name in folders
            if name not in OUTPUTS
            and not name.endswith(".egg-info")
            and (not name.startswith(".") or name == ".ci")
        )
        yield from (Path(folder) / name for name in sorted(files))


def texts() -> dict[str, str]:
    """Files that are text, by their path from the root; this one, which spells out what is forbidden, is not."""
    found = {}
    for path in tree():
        content = path.read_bytes()
        if b"\0" not in content and path != Path(__file__):
            found[str(path.relative_to(ROOT))] = content.decode("utf-8")
    return found


TEXTS = texts()
SOURCES = {name: text for name, text in TEXTS.items() if name.startswith("src/") and name.endswith(".py")}

FORBIDDEN = {
    "a package registry": r"pypi\.org|pythonhosted\.org|anaconda\.(?:org|com)|index-url|find-links|file:///",
    "a path of one machine": r"(?<![\w.~])/(?:root|home|Users|work|workspace|mnt|opt)/\w|[A-Z]:\\\\?Users",
    "an address of a machine": r"\blocalhost:\d|\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}:\d",
    "the loading of a pickle": r"\bpickle\.loads?\b|allow_pickle\s*=\s*True|\bdill\b|Unpickler",
}


def test_the_walk_finds_the_project():
    """The checks below are not empty by accident, and stay out of what is not the project's."""
    for name in (
        "README.md",
        "Makefile",
        "constraints.txt",
        "src/cascade/cli/main.py",
        ".ci/run",
        "docs/index.md",
    ):
        assert name in TEXTS
    assert len(SOURCES) > 50
    assert not any(name.startswith((".venv", ".git/", "site/", "runs/")) for name in TEXTS)


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_has(what):
    pattern = re.compile(FORBIDDEN[what])
    found = [
        f"{name}:{number}: {line.strip()[:80]}"
        for name, text in TEXTS.items()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line) and not _proves_refusal(name, line)
    ]
    assert found == []


def _proves_refusal(name: str, line: str) -> bool:
    """Tests of the store make pickled files, to see them refused; they save and never load."""
    return name.startswith("tests/") and "np.save" in line


@pytest.mark.parametrize("what", FORBIDDEN)
def test_the_patterns_would_find_it(what):
    examples = {
        "a package registry": "pip install --index-url x",
        "a path of one machine": 'open("/home/ada/data")',
        "an address of a machine": "tcp 10.0.0.7:6379",
        "the loading of a pickle": "np.load(path, allow_pickle=True)",
    }
    assert re.search(FORBIDDEN[what], examples[what])


def test_sources_do_not_import_pickle():
    assert [
        name for name, text in SOURCES.items() if re.search(r"\b(?:import|from) _?c?pickle\b", text)
    ] == []


def constraint_lines() -> list[str]:
    text = TEXTS["constraints.txt"]
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def test_constraints_pin_versions_and_name_no_address():
    assert "://" not in TEXTS["constraints.txt"]
    pin = re.compile(r"[a-z0-9][a-z0-9.-]*==[^\s;,*<>~!=]+(?: ; [^;@/]+)?")
    assert [line for line in constraint_lines() if not pin.fullmatch(line)] == []


def test_constraints_pin_each_dependency_once_per_python():
    names = [(line.split("==")[0], line.partition(";")[2]) for line in constraint_lines()]
    assert len(names) == len(set(names))
    pinned = {name for name, _ in names}
    needed = [*PROJECT["project"]["dependencies"], *(item for items in EXTRAS.values() for item in items)]
    wanted = {re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~ ;]", item)[0]).lower() for item in needed}
    assert sorted(wanted - pinned - {"cascade-rl"}) == []


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_is_documented(extra):
    assert f"| `{extra}` |" in TEXTS["README.md"]


def test_all_holds_every_extra_for_users():
    inside = set(re.fullmatch(r"cascade-rl\[(.*)\]", EXTRAS["all"][0])[1].split(","))
    assert inside == set(EXTRAS) - {"all", "dev", "cuda"}


def test_versions_agree():
    assert cascade.__version__ == PROJECT["project"]["version"]
    assert "## [Unreleased]" in TEXTS["CHANGELOG.md"]


@pytest.mark.parametrize("name", SOURCES)
def test_files_and_functions_are_small(name):
    text = SOURCES[name]
    assert len(text.splitlines()) <= MAX_FILE
    long = [
        f"{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION
    ]
    assert long == []


@pytest.mark.parametrize("name", [name for name in SOURCES if SOURCES[name].strip()])
def test_modules_say_what_they_are(name):
    assert ast.get_docstring(ast.parse(SOURCES[name]))


PLANTED = {
    "world reads explore": ("world/planted.py", "import cascade.explore.disagreement"),
    "exploration opens the store": ("explore/planted.py", "import cascade.data.store"),
    "transfer opens the store": ("transfer/planted.py", "import cascade.data.store"),
    "collection knows the model": ("data/planted.py", "import cascade.world.model"),
    "a world loads JAX": ("envs/planted.py", "import jax"),
    "theory trains a network": ("tabular/planted.py", "import cascade.nn.layers"),
    "figures open the store": ("report/planted.py", "import cascade.data.store"),
    "a room without a place": ("attic.py", ""),
}


def contracts_hold(folder: Path) -> bool:
    """Whether import-linter is content with the package under `folder`."""
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    found = subprocess.run(
        [sys.executable, "-c", command, "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "Contracts:" in found.stdout, found.stdout + found.stderr
    return found.returncode == 0


def copy_sources(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(TEXTS["pyproject.toml"], encoding="utf-8")
    for name, text in SOURCES.items():
        path = folder / Path(name).relative_to("src")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_import_contracts_hold(tmp_path):
    copy_sources(tmp_path)
    assert contracts_hold(tmp_path)


@pytest.mark.parametrize("what", PLANTED)
def test_import_contracts_catch(what, tmp_path):
    """Each contract is broken on purpose, in a copy: one that cannot fail would hold nothing."""
    name, line = PLANTED[what]
    copy_sources(tmp_path)
    (tmp_path / "cascade" / name).write_text(f"{line}\n", encoding="utf-8")
    assert not contracts_hold(tmp_path)
