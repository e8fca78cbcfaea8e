"""Strictness for every test, set before anything of the project is imported."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["CASCADE_COMPILATION_CACHE"] = "off"  # tests leave nothing behind in the user's folders
# Two devices, and no time spent on optimising code that runs once.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_force_host_platform_device_count=2 --xla_backend_optimization_level=0"
)

import jax
import jaxtyping

jaxtyping.install_import_hook("cascade", "beartype.beartype")

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
