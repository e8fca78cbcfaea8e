"""Runs: the deployment loop, its state, checkpoints, measures and records. The package itself can be called:

import cascade

cascade.run("demo", out="my-run")
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """`cascade.run` is both this package and the function that starts a run."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from cascade.run.api import run

        return run(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable
