"""Samplers: training batches from the stored rows, on the device where they fit."""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Array, Key

from cascade.config import SampleConfig
from cascade.data.device import DeviceSampler, padded
from cascade.data.fields import Fields
from cascade.data.host import HostSampler
from cascade.data.windows import Sampler

__all__ = ["Sampler", "make_sampler"]


def make_sampler(
    fields: Fields,
    config: SampleConfig,
    key: Key[Array, ""],
    capacity: int | None = None,
    marks: np.ndarray | None = None,
) -> Sampler:
    """The sampler that suits the data: on the device if it fits `sample.device-bytes`, else from the files.

    Both draw the same batches from the same key; the sampler's `reason` says which was chosen and why. `marks` are
    rows that sequences are made to contain instead of the ends of episodes.
    """
    rows = padded(fields.rows) if capacity is None else capacity
    size, budget = rows * fields.row_bytes, config.device_bytes
    sizes = f"{fields.rows} rows take {_readable(size)}, sample.device-bytes is {_readable(budget)}"
    if size <= budget:
        kind = jax.devices()[0].platform
        return DeviceSampler(fields, config, key, capacity, f"device ({kind}): {sizes}", marks)
    return HostSampler(fields, config, key, reason=f"host: {sizes}", marks=marks)


def _readable(size: int) -> str:
    """Bytes for people."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} TiB"
