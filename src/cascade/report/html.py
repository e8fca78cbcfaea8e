"""Pieces of the page: everything that came from a file is escaped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

Document = dict[str, Any]
Chapter = tuple[str, str]
"""Its short name and its HTML."""


@dataclass
class Part:
    """A part of the page: its HTML, the numbers its figures are drawn from, and the files written beside it."""

    html: list[str] = field(default_factory=list)
    figures: Document = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    def add(self, *pieces: str) -> None:
        self.html.extend(pieces)


def tag(name: str, /, *inside: str, **attributes: Any) -> str:
    """An element. `inside` is HTML already; attributes are escaped, and `class_`, `for_` lose their underline."""
    parts = [name]
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(key)
        elif value is not None and value is not False:
            parts.append(f'{key}="{escape(str(value))}"')
    return f"<{' '.join(parts)}>{''.join(inside)}</{name}>"


def text(value: object) -> str:
    """Words for between tags."""
    return escape(str(value))


def section(ident: str, title: str, says: str, *inside: str) -> str:
    """A chapter with its heading and one sentence."""
    head = tag("h2", text(title), id=f"{ident}-title") + tag("p", text(says), class_="lead")
    return tag("section", head, *inside, id=ident, class_="chapter", aria_labelledby=f"{ident}-title")


def frame(
    part: Part,
    ident: str,
    kind: str,
    title: str,
    says: str,
    alt: str,
    data: Document,
    files: Sequence[str] = (),
    controls: str = "",
    wide: bool = True,
) -> str:
    """A figure: heading, one sentence, controls, the drawing, and links to its files."""
    part.figures[ident] = data
    caption = tag("figcaption", tag("h3", text(title)), tag("p", text(says)))
    plot = tag("div", class_="plot", data_kind=kind, data_key=ident, data_alt=alt)
    return tag(
        "figure", caption, controls, plot, links(files), id=ident, class_="card wide" if wide else "card"
    )


def links(files: Sequence[str]) -> str:
    """Links to the files of a figure, named by their kind."""
    if not files:
        return ""
    shown = [tag("a", text(_kind(file)), href=file, title=file.rsplit("/", 1)[-1]) for file in files]
    return tag("p", "Files: ", " ".join(shown), class_="files")


def _kind(file: str) -> str:
    return file.rsplit(".", 1)[-1].upper()


def select(name: str, label: str, options: Sequence[tuple[str, str]], chosen: str | None = None) -> str:
    """A labelled native drop-down; left out of sight of nobody, but disabled where there is no choice."""
    shown = [tag("option", text(words), value=value, selected=value == chosen) for value, words in options]
    choice = tag("select", *shown, name=name, disabled=len(options) < 2)
    return tag("label", tag("span", text(label)), choice)


def controls(*inside: str, link: str | None = None, label: str = "Choose what is shown") -> str:
    """A row of controls. Figures of the same `link` follow it."""
    return tag("form", *inside, class_="controls", data_link=link, aria_label=label)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str, numbers_from: int = 1) -> str:
    """A table whose columns can be sorted; cells are text."""
    head = "".join(
        tag("th", tag("button", text(name), type="button"), scope="col",
            class_="number" if column >= numbers_from else None)
        for column, name in enumerate(header)
    )  # fmt: skip
    body = "".join(
        "<tr>"
        + "".join(
            tag("th" if not column else "td", text(cell), scope=None if column else "row",
                class_="number" if column >= numbers_from else None)
            for column, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )  # fmt: skip
    inside = tag("caption", text(caption)) + tag("thead", tag("tr", head)) + tag("tbody", body)
    return tag("div", tag("table", inside, class_="sortable"), class_="scroll", tabindex="0", role="region",
               aria_label=caption)  # fmt: skip


def as_script(data: Document) -> str:
    """Data inside the page: no text in it can end the script element."""
    words = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="data">{words}</script>'
