"""Draw the picture of the method, once for light pages and once for dark ones.

From the repository's root:  python scripts/draw_loop.py  writes docs/assets/loop-light.svg and loop-dark.svg.
Only the standard library is needed, and the same script gives the same bytes.
"""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "assets"
WIDTH, HEIGHT = 960, 500
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"

# One hue per explorer, apart for colour-blind readers, and readable on white and on black.
HUES = ("#3B8EC4", "#E08A00", "#1A9E77", "#D8622A", "#A86BB8")


@dataclass(frozen=True)
class Theme:
    """The colours that change between light and dark pages."""

    ink: str
    quiet: str
    box: str
    edge: str


THEMES = {
    "light": Theme(ink="#1F2933", quiet="#5B6770", box="#F6F8FA", edge="#C9D1D9"),
    "dark": Theme(ink="#E6EDF3", quiet="#A3AEB8", box="#1B222B", edge="#4A5563"),
}


def text(x: float, y: float, words: str, theme: Theme, *, size: int = 15, bold: bool = False) -> str:
    """A line of text, centred on x. Titles are bold and dark, remarks small and quiet."""
    weight, fill = ("600", theme.ink) if bold else ("400", theme.quiet)
    style = f'font-size="{size}" font-weight="{weight}" fill="{fill}" text-anchor="middle"'
    return f'<text x="{x}" y="{y}" {style}>{words}</text>'


def box(x: int, y: int, width: int, height: int, title: str, theme: Theme) -> str:
    """A room with its title inside, at the top."""
    shape = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="12"'
    frame = f'{shape} fill="{theme.box}" stroke="{theme.edge}" stroke-width="1.5"/>'
    return frame + text(x + width / 2, y + 27, title, theme, size=17, bold=True)


def arrow(path: str, theme: Theme, *, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="6 5"' if dashed else ""
    line = f'<path d="{path}" fill="none" stroke="{theme.quiet}" stroke-width="2.2"{dash}'
    return f'{line} marker-end="url(#head)"/>'


def curve(path: str, hue: str, width: float = 2.6) -> str:
    return f'<path d="{path}" fill="none" stroke="{hue}" stroke-width="{width}" stroke-linecap="round"/>'


def dot(x: float, y: float, fill: str, radius: float = 5) -> str:
    return f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{fill}"/>'


def explorers(theme: Theme) -> list[str]:
    """The population: one figure per policy."""
    parts = [box(40, 40, 270, 150, "Explorers", theme)]
    for index, hue in enumerate(HUES):
        x = 83 + 46 * index
        parts.append(dot(x, 92, hue, 8))
        parts.append(f'<path d="M{x - 13},128 a13,19 0 0 1 26,0 z" fill="{hue}"/>')
    parts.append(text(175, 152, "a population,", theme, size=13))
    parts.append(text(175, 170, "each unlike the ones before it", theme, size=13))
    return parts


def world(theme: Theme) -> list[str]:
    """Two rooms and a door, and where each explorer goes in them."""
    parts = [box(650, 40, 270, 150, "The world", theme)]
    walls = "M675,80 h220 v72 h-220 z M785,80 v24 M785,126 v26"
    parts.append(f'<path d="{walls}" fill="none" stroke="{theme.edge}" stroke-width="2.5"/>')
    ends = ((694, 94), (694, 140), (878, 94), (878, 140), (834, 115))
    bends = ("Q704,112", "Q704,122", "C760,112 800,112", "C760,118 800,118", "Q770,115")
    for hue, (x, y), bend in zip(HUES, ends, bends, strict=True):
        parts += [curve(f"M728,115 {bend} {x},{y}", hue), dot(x, y, hue, 4)]
    parts.append(dot(728, 115, theme.ink, 4.5))
    parts.append(text(785, 173, "they act here, and do not learn", theme, size=13))
    return parts


def store(theme: Theme) -> list[str]:
    """One bar per deployment, made of everybody's episodes."""
    parts = [box(650, 310, 270, 150, "Stored data", theme)]
    for row in range(3):
        for index, hue in enumerate(HUES):
            fade = 1.0 - 0.3 * (2 - row)
            shape = f'<rect x="{683 + 42 * index}" y="{350 + 22 * row}" width="38" height="15" rx="3"'
            parts.append(f'{shape} fill="{hue}" fill-opacity="{fade:.1f}"/>')
    parts.append(text(785, 438, "no rewards: labels are kept apart", theme, size=13))
    return parts


def model(theme: Theme) -> list[str]:
    """Imagined trajectories that spread from one state."""
    parts = [box(40, 310, 270, 150, "World model", theme)]
    for index, hue in enumerate(HUES):
        y = 348 + 16 * index
        parts += [curve(f"M82,380 C150,380 170,{y} 258,{y}", hue), dot(258, y, hue)]
    parts.append(dot(82, 380, theme.ink, 5))
    parts.append(text(175, 438, "imagines where each would end", theme, size=13))
    return parts


def words_and_arrows(theme: Theme) -> list[str]:
    """The loop itself, clockwise, and the way out of it."""
    return [
        arrow("M322,115 H636", theme),
        text(480, 100, "1 · deploy, policies frozen", theme, bold=True),
        text(480, 137, "a fixed number of steps", theme, size=13),
        arrow("M785,202 V298", theme),
        text(688, 255, "2 · store the data", theme, bold=True),
        arrow("M638,365 H324", theme),
        text(480, 350, "3 · train on all data so far", theme, bold=True),
        text(480, 387, "and find where an ensemble disagrees", theme, size=13),
        arrow("M175,298 V202", theme),
        text(298, 246, "4 · train in imagination", theme, bold=True),
        text(298, 266, "be informative, be different", theme, size=13),
        text(505, 255, "a handful of times", theme, size=17),
        arrow("M175,470 V486 H520", theme, dashed=True),
        text(664, 491, "then: somebody names a task", theme, bold=True),
    ]


def draw(theme: Theme) -> str:
    """The whole picture as one SVG document."""
    about = "Explorers collect data in the world; the data train a world model; it trains the explorers."
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"',
        f' font-family="{FONT}"><title>The deployment loop</title><desc>{about}</desc>',
        '<defs><marker id="head" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7"',
        f' orient="auto"><path d="M0,0 L10,5 L0,10 z" fill="{theme.quiet}"/></marker></defs>',
    ]
    for scene in (explorers, world, store, model, words_and_arrows):
        parts += scene(theme)
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    for name, theme in THEMES.items():
        (FOLDER / f"loop-{name}.svg").write_text(draw(theme), encoding="utf-8")
