"""Sweeps: which runs there are, and running them on a Ray cluster."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from run_helpers import same, tiny, weights

import cascade
from cascade.deploy import fleet
from cascade.errors import CascadeError, SettingError
from cascade.run import sweep
from cascade.run.api import Run, open_run
from cascade.run.results import record
from cascade.run.sweep import Cell, cells, last_logged, on_ray, on_this_machine, transfer_cell

ray = pytest.importorskip("ray", reason="the extra 'ray' is not installed")

CONFIG = tiny(model_steps=8, deployments=1)


def test_a_method_is_one_run_or_one_for_each_group_of_seeds():
    whole = cells(("cascade", "random"), (0, 1, 2), Path("out"))
    assert [(cell.method, cell.seeds, str(cell.path)) for cell in whole] == [
        ("cascade", (0, 1, 2), "out/cascade"),
        ("random", (0, 1, 2), "out/random"),
    ]
    parts = cells(("random",), (0, 1, 2), Path("out"), group=2)
    assert [(cell.seeds, str(cell.path)) for cell in parts] == [
        ((0, 1), "out/random/seeds-0-1"),
        ((2,), "out/random/seeds-2"),
    ]
    with pytest.raises(SettingError, match="each once"):
        cells(("random", "random"), (0,), Path("out"))


def test_a_run_that_fails_does_not_stop_the_others(tmp_path):
    good, bad = cells(("random",), (0, 1), tmp_path, group=1)

    def work(cell: Cell) -> Run:
        if cell is bad:
            raise CascadeError("no space left")
        return Run(cell.path, CONFIG, cell.seeds, "tiny")

    done, failed = on_this_machine([bad, good], work)
    assert list(done) == [good]
    assert failed == {bad: "no space left"}


def test_cells_on_a_cluster_end_as_they_do_here(tmp_path, monkeypatch):
    init = ray.init
    monkeypatch.setattr(ray, "init", lambda *a, **k: init(*a, num_cpus=2, object_store_memory=100 << 20, **k))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    fleet.connect("")
    try:
        todo = cells(("random",), (0, 1), tmp_path / "there", group=1)
        bad = cells(("random",), (7,), tmp_path / "bad")
        bad[0].path.mkdir(parents=True)
        (bad[0].path / "run.json").write_text("not a run")
        seen: list[set[str]] = []
        monkeypatch.setattr(
            sweep, "open_run", lambda path, note: note(f"opened {path.name}") or open_run(path)
        )
        notes: list[str] = []
        done, failed = on_ray(
            [*todo, *bad],
            CONFIG,
            "tiny",
            look=lambda now: seen.append(set(now.values())),
            note=notes.append,
        )
    finally:
        ray.shutdown()
    assert set(done) == set(todo)
    assert sorted(notes) == ["opened seeds-0", "opened seeds-1"]
    assert "not a run of cascade" in failed[bad[0]]
    assert "done" in seen[-1]
    here = cascade.run(CONFIG, tmp_path / "here", seeds=1, method="random")
    there = done[todo[1]]
    assert [d.digest for d in there.store(1).deployments] == [d.digest for d in here.store(1).deployments]
    one, other = weights(there, 1), weights(here, 1)
    assert same({name: one[name].shape for name in one}, {name: other[name].shape for name in other})
    for name in one:  # the cluster's processes compile with other flags than these tests
        np.testing.assert_allclose(one[name], other[name], rtol=1e-3, atol=1e-4, err_msg=name)
    assert last_logged(there.path / "metrics.jsonl") == "deployment 1, model step 8"


def cluster(*gpus: float, error: Exception | None = None) -> SimpleNamespace:
    """What a sweep asks of Ray: machines with so many GPUs, and tasks that end in this error."""

    def get(reference: object) -> None:
        raise error

    return SimpleNamespace(
        nodes=lambda: [{"Alive": True, "Resources": {"CPU": 2.0} | ({"GPU": n} if n else {})} for n in gpus],
        remote=lambda **options: lambda function: SimpleNamespace(remote=lambda *given: object()),
        wait=lambda references, timeout: (references, []),
        get=get,
        exceptions=ray.exceptions,
    )


def test_gpus_that_no_machine_has_are_refused(monkeypatch):
    """In a cluster of our own Ray would wait for them for ever."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    todo = cells(("random",), (0,), Path("out"))
    for asked, machines, most in [(1.0, (0,), 0), (2.0, (1,), 1), (0.5, (), 0)]:
        monkeypatch.setattr(sweep, "connect", lambda address, machines=machines: cluster(*machines))
        with pytest.raises(SettingError, match=f"--gpus: got {asked}, expected at most {most}, what"):
            on_ray(todo, CONFIG, "tiny", gpus=asked)


def test_gpus_that_a_cluster_may_still_get_are_waited_for(monkeypatch):
    """Its machines may be started when they are asked for. Two with one each have no room for a run with two."""
    monkeypatch.setattr(
        sweep, "connect", lambda address: cluster(1, 1, error=ray.exceptions.RayError("there"))
    )
    (cell,) = cells(("random",), (0,), Path("out"))
    notes = []
    on_ray([cell], CONFIG, "tiny", address="head:6379", gpus=1.0, note=notes.append)
    assert notes == []
    on_ray([cell], CONFIG, "tiny", address="head:6379", gpus=2.0, note=notes.append)
    (note,) = notes
    assert note.startswith("--gpus: got 2, and the cluster's largest machine has 1; the runs wait")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyError("speed"), "KeyError: 'speed'"),
        (RuntimeError("\x1b[31mout of memory\x1b[0m\nand more"), "RuntimeError: out of memory"),
        (None, "The task's local raylet died."),
    ],
)
def test_what_a_task_raised_is_told_in_one_line(monkeypatch, error, told):
    if error is None:
        ended = ray.exceptions.RayError(f"{told}\nMore about it.")
    else:
        trace = f"Traceback (most recent call last):\n  File x\n{error!r}"
        ended = ray.exceptions.RayTaskError(
            "_work", trace, error, "ray::_work", 7, "here"
        ).as_instanceof_cause()
    monkeypatch.setattr(sweep, "connect", lambda address: cluster(0, error=ended))
    (cell,) = cells(("random",), (0,), Path("out"))
    assert on_ray([cell], CONFIG, "tiny") == ({}, {cell: told})


def test_tasks_that_were_transferred_are_not_again():
    asked = []

    class Done(Run):
        """A run of two seeds and two tasks, one of four transfers done."""

        spec = SimpleNamespace(tasks=("stand", "walk"))
        results = (record(0, 2, "success", 0.5, "walk"), record(1, 1, "success", 0.5, "walk"))

        def resolve(self, deployment):
            return 2

        def transfer(self, tasks, seed, deployment, *, note, **_):
            note(f"seed {seed}")
            asked.append((seed, tasks, deployment))

    notes = []
    transfer_cell(Done(Path("run"), CONFIG, (0, 1), "tiny"), note=notes.append)
    assert notes == ["seed 0", "seed 1"]
    assert asked == [(0, ["stand"], 2), (1, ["stand", "walk"], 2)]
