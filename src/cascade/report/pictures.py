"""Pictures and arrays for the page: small, inside the page itself, the same picture never twice."""

from __future__ import annotations

import base64
import io
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image

from cascade.report.load import clean

Document = dict[str, Any]
LARGE = 12_000
"""Bytes of a picture from which on more effort is worth it."""
LEVELS = 12
"""Levels of one measure on the page."""


def to_uri(image: np.ndarray) -> str:
    """An image as a data URI: exact, unless it is a photograph, far smaller with losses nobody sees."""
    picture = Image.fromarray(np.ascontiguousarray(image))
    data = _webp(picture, lossless=True, quality=0, method=0)  # of effort, not of looks
    if len(data) > LARGE:
        close = _webp(picture, quality=85, method=1)
        data = close if 4 * len(close) < len(data) else _webp(picture, lossless=True, method=2)
    return "data:image/webp;base64," + base64.b64encode(data).decode("ascii")


def _webp(picture: Image.Image, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", **options)
    return buffer.getvalue()


def pack(array: np.ndarray) -> Document:
    """An array of whole numbers for the page: its shape, and its bytes as compressed little-endian int16."""
    limits = np.iinfo(np.int16)
    raw = np.clip(array, limits.min, limits.max).astype("<i2").tobytes()
    return {"shape": list(array.shape), "data": base64.b64encode(zlib.compress(raw, 6)).decode("ascii")}


@dataclass
class Album:
    """Pictures of one run; those that return (levels are the same after every deployment) are stored once."""

    uris: list[str] = field(default_factory=list)
    _known: dict[bytes, int] = field(default_factory=dict)

    def add(self, image: np.ndarray) -> int:
        """The picture's number."""
        key = repr(image.shape).encode() + image.tobytes()
        if key not in self._known:
            self._known[key] = len(self.uris)
            self.uris.append(to_uri(image))
        return self._known[key]

    @property
    def size(self) -> int:
        return sum(map(len, self.uris))

    def forget(self, count: int) -> None:
        """All but the first `count` pictures."""
        del self.uris[count:]
        self._known = {key: number for key, number in self._known.items() if number < count}


def measure(arrays: dict[str, np.ndarray], album: Album) -> Document:
    """One measure for the page; parts that are absent, or do not fit together, are left out."""
    found: Document = {}
    visits, reachable = arrays.get("visits"), arrays.get("reachable")
    if reachable is not None:
        found["reachable"] = pack(reachable[:LEVELS])
    if visits is not None and (reachable is None or visits.shape[1:] == reachable.shape):
        found["visits"] = pack(visits[:, :LEVELS])
    paths = arrays.get("paths")
    if paths is not None and paths.shape[-1] == 2:
        found["paths"] = pack(paths[:, :LEVELS])
    if is_picture(arrays.get("pictures")):
        found["pictures"] = [album.add(picture) for picture in arrays["pictures"][:LEVELS]]
    if is_picture(arrays.get("films")):
        films = arrays["films"]
        found["films"] = {
            "size": [films.shape[3] + 2, films.shape[2]],
            "frames": films.shape[1],
            "strips": [album.add(side_by_side(film)) for film in films],
        }
    if is_picture(arrays.get("open_loop")):
        found["open_loop"] = album.add(arrays["open_loop"])
        found["open_loop_size"] = list(arrays["open_loop"].shape[1::-1])
    distance = arrays.get("distance")
    if distance is not None and distance.shape[0] == distance.shape[1]:
        found["distance"] = clean(distance.astype(float), 4)
    return found


def is_picture(array: np.ndarray | None) -> bool:
    """Whether the last axes are height, width and three colours."""
    return array is not None and array.dtype == np.uint8 and array.shape[-1] == 3


def side_by_side(film: np.ndarray) -> np.ndarray:
    """Frames [F, h, w, 3] as one strip [h, F(w + 2), 4]: a clear pixel on either side of each keeps them apart."""
    solid = np.pad(film, ((0, 0), (0, 0), (0, 0), (0, 1)), constant_values=255)
    return np.concatenate(list(np.pad(solid, ((0, 0), (0, 0), (1, 1), (0, 0)))), axis=1)


def contact_sheet(visits: np.ndarray, reachable: np.ndarray | None, tile: int = 5) -> np.ndarray:
    """Visits of one level, a column for all explorers and one for each: deployments [K, P, W, H] are the rows."""
    rows = [np.concatenate([counts.sum(axis=0, keepdims=True, dtype=np.int64), counts]) for counts in visits]
    ends = np.stack(rows).transpose(0, 1, 3, 2)  # a cell's first coordinate runs to the right
    top = np.log1p(max(int(ends.max()), 1))
    strength = (np.log1p(ends) / top)[..., None]
    floor = np.full(ends.shape[2:], True) if reachable is None else reachable.T
    base = np.where(floor[..., None], [250, 250, 248], [196, 200, 204])
    cells = base + np.sqrt(strength) * (np.array([0, 82, 147]) - base)
    framed = np.pad(cells, ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)), constant_values=255)
    sheet = framed.transpose(0, 2, 1, 3, 4).reshape(framed.shape[0] * framed.shape[2], -1, 3)
    return sheet.round().astype(np.uint8).repeat(tile, axis=0).repeat(tile, axis=1)
