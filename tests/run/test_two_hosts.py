"""examples/two_hosts.py: two processes train one world model, and it is the one that a single process trains."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_two_processes_end_with_one_model(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = os.environ | {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
    found = subprocess.run(
        [sys.executable, EXAMPLES / "two_hosts.py"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    lines = [json.loads(line) for line in found.stdout.splitlines() if line.startswith("{")]
    first, second = sorted(lines, key=lambda line: line.pop("process"))
    assert first == second
    assert first["devices"] == 2
    monkeypatch.syspath_prepend(EXAMPLES)
    alone = importlib.import_module("two_hosts").train(steps=2)
    np.testing.assert_allclose(first["losses"], alone["losses"], rtol=1e-4)
    assert first["losses"][1] < first["losses"][0]
