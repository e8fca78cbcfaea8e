"""Samplers: the same batches from the device and from the files, whatever the chunks and resume points."""

from __future__ import annotations

import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from data_helpers import CONTINUOUS, SPEC, commit, make_episodes, make_store
from hypothesis import given, settings
from hypothesis import strategies as st

from cascade.config import SampleConfig
from cascade.data import device, host
from cascade.data.device import DeviceSampler, draw, padded
from cascade.data.fields import Column, Fields, Spans, split
from cascade.data.host import HostSampler
from cascade.data.sampler import make_sampler
from cascade.data.store import Store
from cascade.data.windows import Landmarks, window_starts
from cascade.errors import CascadeError
from cascade.types import Batch

KEY = jax.random.key(7)
LENGTHS = ([5, 8, 3, 7, 2], [9, 4], [6, 6, 1, 17])
CONFIGS = [
    SampleConfig(batch=3, length=4),
    SampleConfig(batch=5, length=11, prioritize_ends=0.5),
    SampleConfig(batch=1, length=2, prioritize_ends=1.0),
    SampleConfig(batch=4, length=78),
    SampleConfig(batch=6, length=5, prioritize_ends=0.3, prioritize_starts=0.5),
]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "data", *LENGTHS)


@pytest.fixture
def fields(store: Store) -> Fields:
    return store.fields()


def same(one: object, other: object) -> None:
    """Equal leaf for leaf, bit for bit, in type too."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def landmarks(ends: np.ndarray, capacity: int = 0) -> Landmarks:
    """Of episodes that lie back to back, the marks being their ends."""
    return Landmarks.of(np.concatenate([[0], ends[:-1] + 1]), ends, lambda count: max(count, capacity))


def steps_of(batch: Batch, start: int, stop: int) -> Batch:
    return jax.tree.map(lambda leaf: leaf[start:stop], batch)


@pytest.mark.parametrize(("config", "selected"), [*((c, False) for c in CONFIGS), (CONFIGS[1], True)])
def test_device_and_host_draw_the_same(fields: Fields, config: SampleConfig, selected: bool) -> None:
    if selected:
        fields = split(fields, every=4)[0]
    reader = HostSampler(fields, config, KEY)
    resident = DeviceSampler(fields, config, KEY)
    for step, count in ((0, 3), (3, 3), (17, 3)):
        same(resident.chunk(step, count), reader.chunk(step, count))
    reader.close()


def test_batches_are_rows_of_the_store(fields: Fields) -> None:
    config = SampleConfig(batch=3, length=6, prioritize_ends=0.3)
    batch = DeviceSampler(fields, config, KEY).chunk(11, 2)
    for i in range(2):
        starts = window_starts(KEY, 11 + i, fields.rows, landmarks(fields.ends), config)
        for b, start in enumerate(starts.tolist()):
            for name, column in fields.obs.items():
                np.testing.assert_array_equal(batch.obs[name][i, b], column.read(start, start + 6))
            np.testing.assert_array_equal(batch.action[i, b], fields.action.read(start, start + 6))
            np.testing.assert_array_equal(batch.is_terminal[i, b], fields.is_terminal.read(start, start + 6))
            np.testing.assert_array_equal(
                batch.is_first[i, b, 1:], fields.is_first.read(start + 1, start + 6)
            )
    assert batch.obs["image"].dtype == jnp.uint8
    assert batch.obs["image"].shape == (2, 3, 6, 4, 3, 3)


def test_several_readers_read_the_same(fields: Fields, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "SMALL", 0)
    reader = HostSampler(fields, CONFIGS[1], KEY, readers=3)
    same(reader.chunk(0, 3), DeviceSampler(fields, CONFIGS[1], KEY).chunk(0, 3))
    reader.close()


@pytest.mark.parametrize("kind", [DeviceSampler, HostSampler])
def test_chunk_sizes_and_resume_points_change_nothing(fields: Fields, kind: type) -> None:
    sampler = kind(fields, CONFIGS[1], KEY)
    whole = sampler.chunk(100, 6)
    same(sampler.chunk(101, 3), steps_of(whole, 1, 4))
    same(sampler.chunk(103, 3), steps_of(whole, 3, 6))
    same(kind(fields, CONFIGS[1], KEY).chunk(105, 1), steps_of(whole, 5, 6))
    sampler.close()


def test_every_window_starts_anew(fields: Fields) -> None:
    for kind in (DeviceSampler, HostSampler):
        sampler = kind(fields, CONFIGS[0], KEY)
        assert bool(sampler.chunk(0, 3).is_first[:, :, 0].all())
        sampler.close()


@settings(deadline=None, max_examples=60)
@given(
    lengths=st.lists(st.integers(2, 30), min_size=1, max_size=20),
    length=st.integers(2, 30),
    ends_share=st.sampled_from([0.0, 0.4, 1.0]),
    step=st.integers(0, 2**31 - 1),
)
def test_windows_stay_in_bounds_and_reach_ends(
    lengths: list[int], length: int, ends_share: float, step: int
) -> None:
    rows = sum(lengths)
    config = SampleConfig(batch=16, length=min(length, rows), prioritize_ends=ends_share)
    ends = np.cumsum(lengths, dtype=np.int32) - 1
    unpadded = window_starts(KEY, step, rows, landmarks(ends), config)
    starts = np.asarray(window_starts(KEY, step, rows, landmarks(ends, 25), config))
    np.testing.assert_array_equal(unpadded, starts)
    assert starts.dtype == np.int32
    assert starts.min() >= 0
    assert starts.max() <= rows - config.length
    if ends_share == 1.0:
        inside = (starts[:, None] <= ends) & (ends < starts[:, None] + config.length)
        assert inside.any(axis=1).all()


def test_all_windows_are_equally_likely() -> None:
    config = SampleConfig(batch=2000, length=5)
    draws = jax.vmap(lambda i: window_starts(KEY, i, 24, landmarks(np.array([23])), config))(jnp.arange(20))
    counts = np.bincount(np.asarray(draws).reshape(-1), minlength=20)
    assert counts.size == 20
    assert np.abs(counts / 2000 - 1).max() < 0.1


def test_ends_are_drawn_as_often_as_asked() -> None:
    """Far-apart ends: windows over them are rare by chance, and each end gets an equal share."""
    ends, rows = np.array([999, 1999, 99_999], np.int32), 100_000
    config = SampleConfig(batch=4000, length=10, prioritize_ends=0.3)
    draws = jax.vmap(lambda i: window_starts(KEY, i, rows, landmarks(ends), config))(jnp.arange(5))
    starts = np.asarray(draws).reshape(-1)
    over = [(starts <= end) & (end < starts + 10) for end in ends]
    assert abs(np.any(over, axis=0).mean() - 0.3) < 0.02
    assert all(abs(share.mean() - 0.1) < 0.01 for share in over)
    offsets = np.bincount(999 - starts[over[0]], minlength=10)
    assert offsets.min() > 0.7 * offsets.mean(), "the end may lie anywhere in its window"


def test_sequences_begin_with_episodes_as_often_as_asked() -> None:
    """Of those that need not contain an end; the last episode is shorter than a window, which then ends with it."""
    ends, rows = np.array([7, 17, 995, 999]), 1000
    config = SampleConfig(batch=4000, length=10, prioritize_ends=0.2, prioritize_starts=0.5)
    draws = jax.vmap(lambda i: window_starts(KEY, i, rows, landmarks(ends), config))(jnp.arange(5))
    starts = np.asarray(draws).reshape(-1)
    assert abs((starts == 8).mean() - (0.1 + 0.2 * (0.5 + 0.5 / 10) / 4)) < 0.01, "and those over its end"
    assert abs((starts == 990).mean() - 0.16) < 0.01, "windows over the last two ends begin there too"
    whole = SampleConfig(batch=4000, length=10, prioritize_starts=1.0)
    drawn = np.asarray(window_starts(KEY, 0, rows, landmarks(ends), whole))
    assert {0, 8, 990} <= set(drawn.tolist())
    assert not ((drawn > 0) & (drawn < 8)).any()


def test_every_row_of_an_episode_that_is_longer_than_a_sequence_is_drawn() -> None:
    """Also where all sequences begin with episodes, as far as they can: else nobody would see how it ends."""
    ends, rows = np.array([9, 69, 79]), 80
    config = SampleConfig(batch=6000, length=10, prioritize_starts=1.0)
    starts = np.asarray(window_starts(KEY, 0, rows, landmarks(ends), config))
    counts = np.bincount(starts, minlength=rows)
    assert all(abs(counts[first] / 6000 - 1 / 3) < 0.03 for first in (0, 70))
    assert abs(counts[10] / 2000 - 10 / 60) < 0.05, "as many as it holds rows of the episode"
    assert counts[1:10].sum() + counts[61:70].sum() == 0, "none crosses an end"
    assert counts[11:61].min() > 0
    assert abs(counts[11:61].sum() / 2000 - 50 / 60) < 0.05


def test_sequences_with_a_mark_begin_with_its_episode_where_it_is_short_enough() -> None:
    """So that what led to it is known; a mark too far from the beginning lies anywhere in its window."""
    starts, marks = np.array([0, 20, 26, 60]), np.array([25, 57])
    config = SampleConfig(batch=4000, length=10, prioritize_ends=1.0, prioritize_starts=0.75)
    drawn = np.asarray(window_starts(KEY, 0, 80, Landmarks.of(starts, marks), config))
    near = drawn[(drawn <= 25) & (drawn + 10 > 25)]
    assert abs((near == 20).mean() - (0.75 + 0.25 / 10)) < 0.03
    far = np.bincount(57 - drawn[drawn > 26], minlength=10)
    assert far.sum() + len(near) == 4000
    assert far.min() > 0.7 * far.mean()


@pytest.mark.parametrize("kind", [DeviceSampler, HostSampler])
def test_marks_take_the_place_of_ends(fields: Fields, kind: type) -> None:
    """Sequences are made to contain them; others still begin with an episode, or lie inside a long one."""
    config = SampleConfig(batch=64, length=3, prioritize_ends=0.5, prioritize_starts=1.0)
    sampler = kind(fields, config, KEY, marks=np.array([20, 21]))
    drawn = sampler.chunk_with(0, 1, {"row": sampler.place(np.arange(fields.rows, dtype=np.int32))})[1][
        "row"
    ][0]
    rows = np.asarray(drawn)
    first = np.minimum(fields.starts, fields.rows - config.length)
    owner = np.searchsorted(fields.starts, rows, side="right")
    marked = ((rows >= 20) & (rows <= 21)).any(1)
    begun = np.isin(rows[:, 0], first) | (owner[:, 0] == owner[:, -1])
    assert (marked | begun).all()
    assert 0.3 < marked.mean() < 0.8
    sampler.close()


def test_extras_are_the_same_rows(store: Store) -> None:
    fields = store.fields()
    rewards, rows = store.labels("reward"), np.arange(fields.rows, dtype=np.int32)
    drawn = []
    for kind in (DeviceSampler, HostSampler):
        sampler = kind(fields, CONFIGS[1], KEY)
        extras = {"reward": sampler.place(rewards), "row": sampler.place(rows)}
        batch, beside = sampler.chunk_with(4, 3, extras)
        same(batch, sampler.chunk(4, 3))
        np.testing.assert_array_equal(beside["reward"], rewards.read()[beside["row"]])
        np.testing.assert_array_equal(batch.action, fields.action.read()[beside["row"]])
        drawn.append((batch, beside, sampler.chunk_with(7, 3, extras)))
        with pytest.raises(CascadeError, match="extra array: got 2 rows"):
            sampler.place(rows[:2])
        unplaced = rewards if kind is DeviceSampler else jnp.asarray(rows)
        with pytest.raises(CascadeError, match=r"pass each through this sampler's place\(\) first"):
            sampler.chunk_with(0, 1, {"reward": unplaced})
        sampler.close()
    same(*drawn)


def test_extras_of_a_selection(store: Store) -> None:
    held_out = split(store.fields(), every=3)[1]
    sampler = DeviceSampler(held_out, SampleConfig(batch=2, length=3), KEY)
    extras = {"reward": sampler.place(held_out.align(store.labels("reward")))}
    assert sampler.chunk_with(0, 1, extras)[1]["reward"].shape == (1, 2, 3)


def test_equal_chunks_compile_once_even_as_data_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = 0

    def counted(*args, **kwargs):
        nonlocal traces
        traces += 1
        return window_starts(*args, **kwargs)

    monkeypatch.setattr(device, "window_starts", counted)
    config = SampleConfig(batch=2, length=9, prioritize_ends=0.123)
    small = make_store(tmp_path, [5] * 33).fields()
    first = DeviceSampler(small, config, KEY)
    for step in range(0, 12, 4):
        first.chunk(step, 4)
    assert traces == 1
    commit(tmp_path, 1, make_episodes([6]))
    grown = DeviceSampler(Store.open(tmp_path).fields(), config, KEY)
    assert grown.capacity == first.capacity
    grown.chunk(0, 4)
    assert traces == 1, "more rows within the capacity change no shape"
    for some in (small, Store.open(tmp_path).fields()):
        DeviceSampler(some, config, KEY, capacity=1000).chunk(0, 4)
    assert traces == 2, "one for the larger capacity"


def test_reading_from_files_compiles_once(fields: Fields, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = 0

    def counted(*args, **kwargs):
        nonlocal traces
        traces += 1
        return window_starts(*args, **kwargs)

    monkeypatch.setattr(host, "window_starts", counted)
    reader = HostSampler(fields, SampleConfig(batch=2, length=9, prioritize_ends=0.234), KEY)
    for step in range(0, 12, 4):
        reader.chunk(step, 4)
    reader.close()
    assert traces == 1


@given(st.integers(1, 10**9))
def test_padding_is_at_most_an_eighth(count: int) -> None:
    assert count <= padded(count) <= count * 1.125 + 1
    assert padded(padded(count)) == padded(count)


def test_upload_in_pieces(fields: Fields, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 36 * 7, 1 << 20):
        monkeypatch.setattr(device, "UPLOAD_BYTES", size)
        placed = device.upload(fields.obs["image"], 100)
        np.testing.assert_array_equal(placed[: fields.rows], fields.obs["image"].read())
        assert not placed[fields.rows :].any()


def test_draw_may_be_called_inside_compiled_code(fields: Fields) -> None:
    sampler = DeviceSampler(fields, CONFIGS[1], KEY)

    @jax.jit
    def total(data: device.DeviceRows) -> jax.Array:
        def body(carry: jax.Array, step: jax.Array) -> tuple[jax.Array, None]:
            return carry + draw(data, {}, KEY, step, CONFIGS[1])[0].action.sum(), None

        return jax.lax.scan(body, jnp.zeros((), jnp.int32), jnp.arange(4, dtype=jnp.int32))[0]

    assert int(total(sampler.data)) == int(sampler.chunk(0, 4).action.sum())


# Choosing a sampler, and its failures.


def test_the_budget_decides_and_says_so(fields: Fields) -> None:
    size = padded(fields.rows) * fields.row_bytes
    fits = make_sampler(fields, SampleConfig(batch=2, length=4, device_bytes=size), KEY)
    assert isinstance(fits, DeviceSampler)
    assert fits.reason.startswith(f"device (cpu): {fields.rows} rows take")
    too_large = make_sampler(fields, SampleConfig(batch=2, length=4, device_bytes=size - 1), KEY)
    assert isinstance(too_large, HostSampler)
    assert too_large.reason.startswith(f"host: {fields.rows} rows take")
    same(fits.chunk(0, 2), too_large.chunk(0, 2))
    too_large.close()


def test_too_few_rows_is_one_line(fields: Fields) -> None:
    for kind in (DeviceSampler, HostSampler):
        with pytest.raises(CascadeError, match=r"sample.length .*: got 500, but only \d+ rows are stored"):
            kind(fields, SampleConfig(batch=2, length=500), KEY)


def test_the_thread_ends_on_close(fields: Fields) -> None:
    sampler = HostSampler(fields, CONFIGS[0], KEY)
    sampler.chunk(0, 2)
    assert any(thread.name.startswith("cascade-sampler") for thread in threading.enumerate())
    sampler.close()
    assert not any(thread.name.startswith("cascade-sampler") for thread in threading.enumerate())
    with pytest.raises(CascadeError, match="closed"):
        sampler.chunk(2, 2)


def test_reading_ahead_is_bounded_and_its_failures_reach_the_caller(
    fields: Fields, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = HostSampler(fields, CONFIGS[0], KEY, prefetch=2)
    seen: list[int] = []
    read = sampler._read

    def failing(step: int, count: int, extras: dict) -> tuple:
        seen.append(step)
        if step == 6:
            raise OSError("the disk went away")
        return read(step, count, extras)

    monkeypatch.setattr(sampler, "_read", failing)
    sampler.chunk(0, 2)
    for step in (2, 4):
        sampler.chunk(step, 2)
        assert max(seen) <= step + 4
    with pytest.raises(OSError, match="the disk went away"):
        sampler.chunk(6, 2)
    sampler.chunk(8, 2)
    sampler.close()


def test_rows_far_beyond_memory(tmp_path: Path) -> None:
    """Fifty gigabytes of images in a sparse file: drawing from them reads only the windows."""
    rows, image = 1 << 22, (64, 64, 3)
    length = rows // 1024
    for name, row in (("image", image), ("action", ())):
        path = tmp_path / f"{name}.npy"
        with path.open("wb") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": (rows, *row)}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + rows * int(np.prod(row, dtype=np.int64)))
    spans = Spans.whole([rows])
    image_rows, flags = (
        Column((np.load(tmp_path / f"{name}.npy", mmap_mode="r"),), spans) for name in ("image", "action")
    )
    marks = Column((flags.parts[0].view(np.bool_),), spans)
    starts = np.arange(0, rows, length)
    fields = Fields({"image": image_rows}, flags, marks, marks, starts, starts + length - 1)
    sampler = make_sampler(fields, SampleConfig(batch=4, length=8), KEY)
    assert isinstance(sampler, HostSampler)
    assert sampler.chunk(0, 2).obs["image"].shape == (2, 4, 8, *image)
    sampler.close()


def test_continuous_actions(tmp_path: Path) -> None:
    fields = make_store(tmp_path, [9, 12], spec=CONTINUOUS).fields()
    batch = DeviceSampler(fields, SampleConfig(batch=2, length=3), KEY).chunk(0, 1)
    assert batch.action.shape == (1, 2, 3, 2)
    assert batch.action.dtype == jnp.float32
    assert set(batch.obs) == {"state"} != set(SPEC.observations)
