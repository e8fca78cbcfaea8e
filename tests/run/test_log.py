"""What is logged elsewhere than in the run's own files."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from cascade.errors import MissingExtra
from cascade.run.log import Log
from cascade.run.state import Position


class Fake:
    """Weights & Biases as far as it is used here."""

    def __init__(self):
        self.begun, self.logged, self.ended = [], [], 0

    def init(self, **about):
        self.begun.append(about)
        return SimpleNamespace(log=self.logged.append, finish=self._finish)

    def _finish(self):
        self.ended += 1


def test_a_run_that_goes_on_goes_on_in_wandb(tmp_path, monkeypatch):
    fake = Fake()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    for seeds in ((0, 1), (0, 1), (2,)):
        log = Log(tmp_path / "metrics.jsonl", seeds, Position(), "project")
        log.write(Position(0, 1, 5), {"loss": np.arange(1.0, 1 + len(seeds))})
        log.close()
    idents = [about["id"] for about in fake.begun]
    assert idents[0] == idents[1] != idents[2], "one for each group of seeds, the same every time"
    assert {about["project"] for about in fake.begun} == {"project"}
    assert fake.logged[:2] == [{"seed-0/model-0/loss": 1.0}, {"seed-1/model-0/loss": 2.0}]
    assert fake.ended == 3


def test_without_wandb_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtra, match=r"--wandb needs the extra 'wandb': pip install"):
        Log(tmp_path / "metrics.jsonl", (0,), Position(), "project")
