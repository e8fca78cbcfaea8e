"""`cascade bench`: the document it promises, the table it draws, and operations counted as by hand."""

import json
import time
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from helpers import SMALL

from cascade.cli import main
from cascade.cli.bench import PRECISIONS, rows
from cascade.config import (
    ActorCriticConfig,
    DeployConfig,
    EnsembleConfig,
    EnvConfig,
    ExploreConfig,
    RunConfig,
    SampleConfig,
)
from cascade.presets import PRESETS
from cascade.run.bench import time_calls
from cascade.run.flops import Product, count_flops, products

ROOT = Path(__file__).parents[1]
TINY = RunConfig(
    env=EnvConfig("minigrid:FourRooms-v0?actions=moves"),
    deploy=DeployConfig(steps=40, lanes=4),
    sample=SampleConfig(batch=2, length=4),
    world=SMALL,
    ensemble=EnsembleConfig(members=2, layers=1, units=8),
    explore=ExploreConfig(population=2, agent=ActorCriticConfig(layers=1, units=8, horizon=2, starts=4)),
)
STEP = {
    "ms",
    "best_ms",
    "first_call_s",
    "gflop",
    "tflop_per_s",
    "steps_per_call",
    "seeds",
    "share_of_matrix_rate",
}
RATE = {"steps_per_s", "best", "repeats"}
COLLECT = RATE | {"steps", "lanes", "groups", "share"}
KEYS = {
    "environment": {
        "id": None,
        "observation": None,
        "raw": RATE,
        "adapter": RATE,
        "vectoriser": RATE | {"lanes", "groups", "workers"},
    },
    "collect": {"random": COLLECT, "population": COLLECT | {"raw_steps_per_s", "times_raw"}},
    "sampler": {
        "rows": None,
        "row_bytes": None,
        "batches_per_call": None,
        "device": {"batches_per_s", "best", "repeats"},
        "host": {"batches_per_s", "best", "repeats"},
    },
    "matrix": dict.fromkeys(f"{name}_gflop_per_s" for name in PRECISIONS),
    "world": dict.fromkeys(STEP | {"with_ensemble"}),
    "explorers": dict.fromkeys(STEP | {"population", "starts", "horizon"}),
}


@pytest.fixture(autouse=True)
def presets(monkeypatch):
    """Small enough to compile and run in seconds."""
    monkeypatch.setitem(PRESETS, "tiny", TINY)
    monkeypatch.setitem(PRESETS, "point", replace(TINY, env=EnvConfig("probe:point")))


def measured(capsys, *args: str) -> dict:
    main(["bench", "--preset", "tiny", "--seconds", "0.02", "--json", *args])
    return json.loads(capsys.readouterr().out)


def check(document: dict, what: str) -> None:
    """The keys of one measurement, and nothing but positive numbers."""
    found = document[what]
    assert found.keys() == KEYS[what].keys()
    for name, keys in KEYS[what].items():
        if keys is not None:
            assert found[name].keys() == keys
    numbers = [value for value in jax.tree.leaves(found) if not isinstance(value, str)]
    assert len(numbers) >= 2
    assert min(numbers) > 0


def test_everything_is_measured_and_written(capsys, tmp_path):
    out = tmp_path / "new" / "bench.json"
    document = measured(capsys, "--out", str(out))
    assert json.loads(out.read_text()) == document
    assert document.keys() == {"command", "machine", "preset", *KEYS}
    assert document["command"].startswith("cascade bench --preset tiny --what all --seconds 0.02 --out ")
    assert document["machine"]["cores"] >= 1
    for what in KEYS:
        check(document, what)
    assert sum(document["collect"]["population"]["share"].values()) == pytest.approx(1.0, abs=0.01)
    assert document["sampler"]["rows"] > TINY.deploy.steps
    assert [row[0] for row in rows(document)] == [
        "plain environment", "our environment", "our environments in processes",
        "collecting, random", "collecting, population", "sampler, device", "sampler, host",
        "matrix product, bfloat16", "matrix product, float32",
        "step of the world model and ensemble", "step of the explorers",
    ]  # fmt: skip
    document["world"]["with_ensemble"] = False
    assert "step of the world model" in [row[0] for row in rows(document)]


def test_one_thing_can_be_measured_alone(capsys):
    document = measured(capsys, "--what", "environment", "--preset", "point")
    assert document.keys() == {"command", "machine", "preset", "environment"}
    assert document["environment"].keys() == KEYS["environment"].keys() - {"raw"}, (
        "a probe world has no other"
    )


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["--preset", "no-such"], ["preset", "no-such", "demo"]),
        (["--seconds", "0"], ["--seconds", "0", "positive"]),
        (["--what", "weather"], ["--what", "weather", "sampler"]),
        (["--out", "README.md/x.json"], ["--out", "README.md/x.json", "can be written"]),
    ],
)
def test_refusals_come_before_the_measuring(capsys, monkeypatch, args, named):
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as stop:
        main(["bench", *args])
    assert stop.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert [word for word in named if word not in said] == []


def test_times_leave_the_first_call_out():
    calls = []

    def call():
        calls.append(None)
        time.sleep(0.05 if len(calls) == 1 else 0.001)

    times = time_calls(call, repeats=3)
    assert len(calls) == 4
    assert times.best <= times.median < 0.05 <= times.first
    time_calls(call, repeats=1, seconds=0.06)
    assert len(calls) >= 4 + 1 + 2, "one call does not fill so many seconds"


X, W = jnp.ones((5, 7)), jnp.ones((7, 3))
IMAGE, KERNEL = jnp.ones((1, 8, 8, 2)), jnp.ones((3, 3, 2, 4))


def convolve(image, kernel):
    return jax.lax.conv_general_dilated(
        image, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def grouped(image, kernel):
    """Each of the two channels has its own two outputs."""
    return jax.lax.conv_general_dilated(
        image, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=2
    )


def scanned(x):
    return jax.lax.scan(lambda carry, _: (carry @ jnp.ones((7, 7)), None), x, None, length=6)[0]


def either(x):
    return jax.lax.cond(x[0, 0] > 0, lambda x: x @ W, lambda x: x[:, :3], x)


@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        (jnp.matmul, (X, W), 2 * 5 * 7 * 3),
        (jax.jit(jnp.matmul), (X, W), 2 * 5 * 7 * 3),
        (jax.vmap(jnp.matmul, in_axes=(0, None)), (jnp.ones((4, 5, 7)), W), 4 * 2 * 5 * 7 * 3),
        (jax.vmap(jnp.matmul), (jnp.ones((4, 5, 7)), jnp.ones((4, 7, 3))), 4 * 2 * 5 * 7 * 3),
        (convolve, (IMAGE, KERNEL), 2 * (3 * 3 * 2) * (6 * 6 * 4)),
        (grouped, (IMAGE, jnp.ones((3, 3, 1, 4))), 2 * (3 * 3 * 1) * (6 * 6 * 4)),
        (scanned, (X,), 6 * 2 * 5 * 7 * 7),
        (either, (X,), 2 * 5 * 7 * 3),
        (lambda x: jnp.sin(x) + x, (X,), 0),
        (jax.grad(lambda w: (X @ w).sum()), (W,), 2 * 2 * 5 * 7 * 3),
    ],
    ids=[
        "matmul",
        "jit",
        "vmap",
        "vmap of both",
        "conv",
        "grouped conv",
        "scan",
        "cond",
        "elementwise",
        "grad: forward and one product back",
    ],
)
def test_operations_are_counted_as_by_hand(function, args, expected):
    assert count_flops(function, *args) == expected


def test_bytes_are_those_of_operands_and_result_as_often_as_they_run():
    def repeated(x, w):
        return jax.lax.scan(lambda carry, _: (carry @ w, None), x, length=6)[0]

    shapes = jax.ShapeDtypeStruct((5, 7), jnp.bfloat16), jax.ShapeDtypeStruct((7, 7), jnp.bfloat16)
    assert products(repeated, *shapes) == [Product(6, 2 * 5 * 7 * 7, 2 * (35 + 49 + 35))]
