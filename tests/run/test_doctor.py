"""The doctor: crashes are contained, and for everything that is missing there is a command."""

import json

import pytest

from cascade.cli import main
from cascade.envs import gl
from cascade.envs.check import check
from cascade.errors import MissingExtra
from cascade.run import doctor
from cascade.run.compute import compute
from cascade.run.doctor import WORLDS, Finding, World, attempt, computing, packages, works, world_finding

BROKEN = {
    "crashing": ("import os\nos.abort()\n", "crashed: SIGABRT"),
    "hanging": ("import time\ntime.sleep(60)\n", "silent for 1 seconds"),
    "raising": ("raise RuntimeError('no screen')\n", "RuntimeError: no screen"),
    "silent": ("", "exit code 0"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_breaks_alone(name, tmp_path, monkeypatch):
    source, said = BROKEN[name]
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    found = attempt([name], seconds=1.0 if name == "hanging" else 30.0)
    assert found == {"ok": False, "error": said}
    assert not world_finding(World("atari:Pong"), found).ok


def test_a_world_is_made_reset_and_stepped_in_a_process():
    found = attempt(["cascade.envs.check", "minigrid:FourRooms-v0", "grid"])
    assert found["observations"] == {"grid": "uint8[7, 7, 3]"}
    assert world_finding(WORLDS[0], found).found == "grid uint8[7, 7, 3]"


def test_a_world_that_does_not_run_says_why():
    assert "did you mean" in check("atary:Pong", "auto")["error"]
    assert check("probe:chain", "auto")["ok"]


@pytest.mark.parametrize(
    ("world", "error", "remedy"),
    [
        ("atari:Pong", str(MissingExtra("env.id atari:Pong", "atari")), "pip install 'cascade-rl[atari]'"),
        ("dmc:walker", f"pictures need OpenGL; {gl.ADVICE}", f"apt-get install {gl.PACKAGES}"),
        ("crafter:world", "crashed: SIGSEGV", "pip install 'cascade-rl[crafter]'"),
    ],
)
def test_everything_missing_has_its_command(world, error, remedy):
    found = world_finding(World(world), {"ok": False, "error": error})
    assert (found.ok, found.remedy) == (False, remedy)


def test_packages_that_are_missing_are_named(monkeypatch):
    monkeypatch.setattr(doctor, "installed", lambda name: None if name in ("optax", "h5py") else "1.0")
    base, *extras = packages()
    assert (base.ok, base.found, base.base) == (False, "without optax", True)
    assert [one.remedy for one in extras if not one.ok] == ["pip install 'cascade-rl[minari]'"]


def test_jax_computes_here_and_its_cache_is_looked_at(tmp_path, monkeypatch):
    found = compute()
    assert found["devices"][0] == {"kind": "cpu", "platform": "cpu", "memory": None, "computes": True}
    assert found["cache"] == {"ok": True, "folder": None}, "tests keep no compiled programs"
    assert all(one.ok for one in computing(found))


def test_an_idle_gpu_and_a_folder_that_cannot_be_written_are_told(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: "nvidia-smi")
    monkeypatch.delenv("JAX_PLATFORMS")
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/there")
    device = {"kind": "cpu", "platform": "cpu", "memory": 2**34, "computes": True}
    cache = {"ok": False, "folder": "/there", "error": "read-only"}
    jax, accelerator, kept = computing({"devices": [device], "cache": cache})
    assert jax.found == "cpu (cpu, 16 GiB for JAX)"
    assert (accelerator.ok, accelerator.remedy) == (False, "pip install 'cascade-rl[cuda]'")
    assert (kept.ok, kept.remedy) == (False, "unset XDG_CACHE_HOME")
    monkeypatch.delenv("XDG_CACHE_HOME")
    kept = computing({"devices": [device], "cache": cache})[-1]
    assert kept.remedy == "export CASCADE_COMPILATION_CACHE=off", "not the folder that cannot be written"
    gpu = device | {"kind": "NVIDIA H200", "platform": "gpu"}
    assert computing({"devices": [gpu], "cache": cache})[1].ok
    assert not computing({"error": "silent for 60 seconds"})[0].ok


def test_a_chosen_cache_that_cannot_be_written_is_found(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.delenv("CASCADE_COMPILATION_CACHE")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "file" / "cache"))
    kept = computing(attempt(["cascade.run.compute"]))[-1]
    assert (kept.ok, kept.remedy) == (False, "unset JAX_COMPILATION_CACHE_DIR")
    assert str(tmp_path / "file") in kept.found


@pytest.mark.parametrize("fine", [True, False])
def test_only_a_broken_base_fails(fine, monkeypatch, capsys):
    extra = Finding("worlds", "atari:Pong", False, "missing", "pip install 'cascade-rl[atari]'")
    base = Finding("compute", "JAX", fine, "cpu", "" if fine else "pip install jax", base=True)
    monkeypatch.setattr(doctor, "examine", lambda: [base, extra])
    if fine:
        main(["doctor", "--json"])
    else:
        with pytest.raises(SystemExit, match="1"):
            main(["doctor", "--json"])
    captured = capsys.readouterr()
    assert json.loads(captured.out)["works"] is fine is works([base, extra])
    assert "pip install 'cascade-rl[atari]'" in captured.err
