"""Strictness for every test, set before anything of the project is imported."""

import atexit
import os
import shutil
import tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["CASCADE_COMPILATION_CACHE"] = "off"  # tests leave nothing behind in the user's folders
# Many tests compile the same tiny programs: all processes of one test run share them, and they are removed after.
if "CASCADE_TESTS_COMPILED" not in os.environ:
    os.environ["CASCADE_TESTS_COMPILED"] = tempfile.mkdtemp(prefix="cascade-tests-")
    atexit.register(shutil.rmtree, os.environ["CASCADE_TESTS_COMPILED"], ignore_errors=True)
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", os.environ["CASCADE_TESTS_COMPILED"])
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
# Two devices, and no time spent on optimising code that runs once.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"
)

import jax
import jaxtyping

jaxtyping.install_import_hook("cascade", "beartype.beartype")

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
