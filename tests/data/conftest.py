"""Flushing to the disk is what a power cut needs: without it tests are quicker. One of `test_journal` checks it."""

import os

import pytest


@pytest.fixture(autouse=True)
def no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)
