"""Where compiled programs are kept, and that a command does without where they cannot be."""

from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache
from run_helpers import tiny

import cascade
from cascade.cli import main
from cascade.cli.bench import Bench
from cascade.cli.tabular import Tabular
from cascade.envs import spec_of
from cascade.run import api, cache
from cascade.run.cache import keep_compiled_programs
from cascade.run.folder import Folder


@pytest.fixture
def undecided(monkeypatch):
    """Nobody has said anything about a cache, as for most users; at the end there is none again."""
    monkeypatch.delenv("CASCADE_COMPILATION_CACHE")
    yield monkeypatch
    jax.config.update("jax_compilation_cache_dir", None)
    compilation_cache.reset_cache()


def kept_in() -> str | None:
    return jax.config.jax_compilation_cache_dir


def test_programs_are_kept_even_if_some_were_compiled_before(undecided, tmp_path):
    undecided.setenv("XDG_CACHE_HOME", str(tmp_path))
    undecided.setattr(cache, "SECONDS", 0.0)
    jax.jit(lambda x: x + 1)(1.0)
    keep_compiled_programs(pytest.fail)
    assert kept_in() == str(tmp_path / "cascade" / "jax")
    jax.jit(lambda x: x * 3 + 2)(1.0).block_until_ready()
    assert list((tmp_path / "cascade" / "jax").iterdir())


def no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.parametrize("why", ["a file is there", "no home"])
def test_a_folder_that_cannot_be_made_is_noted_and_done_without(why, undecided, tmp_path):
    if why == "no home":
        undecided.delenv("XDG_CACHE_HOME", raising=False)
        undecided.setattr(Path, "home", no_home)
    else:
        (tmp_path / "file").touch()
        undecided.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    notes = []
    keep_compiled_programs(notes.append)
    assert kept_in() is None
    assert len(notes) == 1
    assert "CASCADE_COMPILATION_CACHE=off" in notes[0]
    assert "\n" not in notes[0]


def test_whatever_compiles_asks_for_it(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(cache, "keep_compiled_programs", lambda note: asked.append("command"))
    monkeypatch.setattr(api, "keep_compiled_programs", lambda note: asked.append("stored run"))
    monkeypatch.setattr(Bench, "_measure", lambda self, config: {})
    monkeypatch.setattr(Tabular, "_run_rounds", lambda self: None)
    config = tiny()
    Folder(tmp_path).start(config, (0,), "demo", spec_of(config.env))
    cascade.open(tmp_path)
    main(["bench"])
    main(["tabular"])
    assert asked == ["stored run", "command", "command"]
