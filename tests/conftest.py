"""Strictness for every test, set before anything of the project is imported."""

import gc
import os
from collections.abc import Iterator

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["CASCADE_COMPILATION_CACHE"] = "off"  # tests leave nothing behind in the user's folders
# Two devices, and no time spent on optimising code that runs once: without its fusion emitters XLA compiles a
# training step for the CPU in a third of the time.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false",
)

import jax
import jaxtyping
import pytest

jaxtyping.install_import_hook("cascade", "beartype.beartype")

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(autouse=True, scope="module")
def _compiled_programs() -> Iterator[None]:
    """Let go of a file's programs after it: each one holds some thirty memory maps, and the kernel's limit
    of 65,530 for a process ends in a segmentation fault inside the compiler."""
    yield
    jax.clear_caches()
    gc.collect()
