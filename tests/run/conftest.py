"""Helpers of this folder can be imported by its tests; flushing to the disk is checked in `data/test_journal.py`."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="module")
def no_flushing() -> Iterator[None]:
    """It is what a power cut needs; without it these tests are quicker."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield
