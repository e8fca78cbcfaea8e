"""CASCADE: one general world model from a handful of reward-free deployments.

cascade.run("demo", out="my-run")       start a run, or go on with it
cascade.open("my-run")                  a stored run: its settings, data, explorers and results
cascade.smoke("demo")                   the settings of a preset, shrunk to seconds
cascade.load_policy("my-run/...")       a saved behaviour as a plain callable: action = policy(obs, first=True)
"""

from typing import Any

__version__ = "0.1.0"
__all__ = ["__version__", "load_policy", "open", "run", "smoke"]


def __getattr__(name: str) -> Any:
    """Loaded when first asked for: worlds run in processes that must not load JAX."""
    import importlib

    if name == "run":
        return importlib.import_module("cascade.run")
    if name == "open":
        return importlib.import_module("cascade.run.api").open_run
    if name == "smoke":
        return importlib.import_module("cascade.presets.smoke").smoke
    if name == "load_policy":
        return importlib.import_module("cascade.transfer.saved").load_policy
    raise AttributeError(f"module 'cascade' has no attribute {name!r}")
