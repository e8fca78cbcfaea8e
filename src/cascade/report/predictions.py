"""Pictures of predictions: what came, what the model expected, and where the two differ.

Everything here takes images, uint8 [T, height, width, 3]; whoever knows what was observed draws it first.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from cascade.errors import CascadeError
from cascade.report.style import COLORS, GRAY, INK

GAP, MARK, HEADER, MARGIN = 2, 8, 18, 78
"""Pixels: between images, around the mark where imagination begins, above a strip, left of it."""
NAMES = ("truth", "model", "difference")
HUE = COLORS["pp2e"]


def strip(
    truth: np.ndarray, predicted: np.ndarray, context: int, valid: np.ndarray | None = None
) -> np.ndarray:
    """Three rows (truth, model, difference), a column for each time, as one image uint8 [height, width, 3].

    The model sees the first `context` columns; from the mark on it imagines. Times that are not `valid` are blank.
    """
    rows = _rows(truth, predicted, valid)
    count, height, width = truth.shape[:3]
    lefts = [MARGIN + t * (width + GAP) + (MARK if t >= context else 0) for t in range(count)]
    size = (MARGIN + count * (width + GAP) + (MARK if context < count else 0), HEADER + 3 * (height + GAP))
    image = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(image)
    for row, (name, tiles) in enumerate(zip(NAMES, rows, strict=True)):
        top = HEADER + row * (height + GAP)
        _write(pen, MARGIN - 8, top + height // 2, name, "rm")
        for left, tile in zip(lefts, tiles, strict=True):
            image.paste(Image.fromarray(tile), (left, top))
    for t, left in enumerate(lefts):
        _write(pen, left + width // 2, HEADER // 2, str(t), "mm", GRAY if t < context else HUE)
    if context < count:
        middle = lefts[context] - (GAP + MARK) // 2
        pen.line([(middle, 2), (middle, size[1])], fill=HUE, width=3)
    return np.asarray(image)


def frames(
    truth: np.ndarray, predicted: np.ndarray, context: int, valid: np.ndarray | None = None
) -> np.ndarray:
    """The same as a film: truth, model and difference side by side, uint8 [T, height, width, 3].

    A coloured frame around the model's image says that it imagines.
    """
    rows = _rows(truth, predicted, valid)
    count, height, width = truth.shape[:3]
    room = max(width, 72) + 2 * MARK
    film = []
    for t in range(count):
        image = Image.new("RGB", (3 * room, HEADER + height + 2 * MARK), "white")
        pen = ImageDraw.Draw(image)
        titles = (f"truth {t}", "model sees" if t < context else "imagines", "difference")
        for column, (title, tiles) in enumerate(zip(titles, rows, strict=True)):
            left, top = column * room + (room - width) // 2, HEADER + MARK
            if column == 1 and t >= context:
                box = (left - 4, top - 4, left + width + 3, top + height + 3)
                pen.rectangle(box, outline=HUE, width=3)
            _write(pen, column * room + room // 2, HEADER // 2, title, "mm")
            image.paste(Image.fromarray(tiles[t]), (left, top))
        film.append(np.asarray(image))
    return np.stack(film)


def _rows(
    truth: np.ndarray, predicted: np.ndarray, valid: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The images of the three rows, blank where there is nothing to compare."""
    if truth.shape != predicted.shape or truth.ndim != 4 or truth.shape[-1] != 3:
        raise ValueError(f"images: got {truth.shape} and {predicted.shape}, expected [T, height, width, 3]")
    difference = np.abs(truth.astype(np.int16) - predicted.astype(np.int16)).astype(np.uint8)
    keep = np.ones(len(truth), bool) if valid is None else valid
    blank = np.full_like(truth, 255)
    shown = keep[:, None, None, None]
    return truth, np.where(shown, predicted, blank), np.where(shown, difference, blank)


def _write(pen: ImageDraw.ImageDraw, x: int, y: int, words: str, anchor: str, fill: str = INK) -> None:
    pen.text((x, y), words, fill=fill, font=ImageFont.load_default(12), anchor=anchor)


def stack(images: Sequence[np.ndarray], gap: int = 10) -> np.ndarray:
    """Images one above the other; narrower ones are filled up with white."""
    width = max(image.shape[1] for image in images)
    height = sum(len(image) for image in images) + gap * (len(images) - 1)
    canvas = np.full((height, width, 3), 255, np.uint8)
    top = 0
    for image in images:
        canvas[top : top + len(image), : image.shape[1]] = image
        top += len(image) + gap
    return canvas


def enlarge(images: np.ndarray, side: int) -> np.ndarray:
    """Images [..., height, width, 3] with every pixel repeated, to about `side` pixels on the longer side."""
    times = max(1, side // max(images.shape[-3:-1]))
    return images.repeat(times, axis=-3).repeat(times, axis=-2)


def shrink(image: np.ndarray, side: int) -> np.ndarray:
    """An image whose longer side is at most `side` pixels."""
    height, width = image.shape[:2]
    scale = min(1.0, side / max(height, width))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(Image.fromarray(image).convert("RGB").resize(size, Image.Resampling.BOX))


def write_image(path: Path, image: np.ndarray) -> Path:
    """A PNG with few colours where few are used."""
    Image.fromarray(image).save(path, optimize=True)
    return path


def find_ffmpeg() -> str | None:
    """The program that writes .mp4: ffmpeg itself, or the one that imageio-ffmpeg brings."""
    found = shutil.which("ffmpeg")
    if found is None:
        try:
            import imageio_ffmpeg

            found = str(imageio_ffmpeg.get_ffmpeg_exe())
        except (ImportError, RuntimeError):
            return None
    return found


def write_video(path: Path, frames: np.ndarray, fps: int = 4) -> Path:
    """Frames uint8 [T, height, width, 3] as a film: .gif always, .mp4 where ffmpeg is installed."""
    if path.suffix == ".gif":
        first, *rest = (Image.fromarray(frame) for frame in frames)
        first.save(path, save_all=True, append_images=rest, duration=round(1000 / fps), loop=0)
    elif path.suffix == ".mp4":
        _encode(path, frames, fps)
    else:
        raise CascadeError(f"{path}: films are written as .gif or .mp4, not as {path.suffix or 'that'}")
    return path


def _encode(path: Path, frames: np.ndarray, fps: int) -> None:
    """Raw frames through ffmpeg; sides are made even, as the codec wants them."""
    program = find_ffmpeg()
    if program is None:
        raise CascadeError(f"{path}: .mp4 needs ffmpeg; install ffmpeg or imageio-ffmpeg, or write a .gif")
    height, width = frames.shape[1:3]
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{fps}", "-i", "-"]
    target = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white", "-pix_fmt", "yuv420p", str(path)]
    command = [program, "-y", "-loglevel", "error", *source, *target]
    done = subprocess.run(command, input=frames.tobytes(), capture_output=True, check=False)
    if done.returncode:
        cause = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise CascadeError(f"{path}: ffmpeg failed: {cause}")
