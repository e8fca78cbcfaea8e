"""Strictness for every test, set before anything of the project is imported."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["CASCADE_COMPILATION_CACHE"] = "off"  # tests leave nothing behind in the user's folders
# Two devices, and no time spent on optimising code that runs once: without its fusion emitters XLA compiles a
# training step for the CPU in a third of the time. Code in one part takes less work than in parts for many threads,
# which the workers of pytest-xdist would only take from each other.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    " --xla_cpu_parallel_codegen_split_count=1",
)

import jax
import jaxtyping
import pytest

jaxtyping.install_import_hook("cascade", "beartype.beartype")

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Files that take longest, in this order: begun last, one of them would keep a single worker busy at the end.
LONGEST = (
    "deploy/test_fleet.py",
    "run/test_kills.py",
    "run/test_run.py",
    "explore/test_two_rooms.py",
    "explore/test_population.py",
    "run/test_commands.py",
    "run/test_families.py",
    "test_docs.py",
    "world/test_model.py",
    "run/test_sweep.py",
    "run/test_generate.py",
    "run/test_phases.py",
    "run/test_transfer.py",
    "report/test_page.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """With `--dist loadfile`, pytest-xdist would begin with the files of most tests, not with the longest."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(autouse=True, scope="module")
def _compiled_programs() -> Iterator[None]:
    """Let go of a file's programs after it: each one holds some thirty memory maps, and the kernel's limit
    of 65,530 for a process ends in a segmentation fault inside the compiler."""
    yield
    jax.clear_caches()
    gc.collect()
