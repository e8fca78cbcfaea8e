"""Helpers of this folder can be imported by its tests; flushing to the disk is checked elsewhere."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="session")
def no_flushing() -> None:
    os.fsync = lambda handle: None  # what a power cut needs; without it these tests are quicker
