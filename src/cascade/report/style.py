"""One look for every figure: colours that stay apart for colour-blind readers, quiet axes."""

from typing import Any

_BLUE, _ORANGE, _GREEN, _VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
INK, GRAY, PALE = "#222222", "#8A8A8A", "#E6E6E6"

# One colour per method, in every figure: hues of Okabe and Ito's palette.
COLORS = {
    "cascade": _BLUE,
    "pp2e": _ORANGE,
    "p2e": _VERMILION,
    "random": GRAY,
    "cascade_ts": _BLUE,
    "sequential": _GREEN,
    "single_policy_batch": _VERMILION,
}

NAMES = {
    "cascade": "CASCADE",
    "pp2e": "PP2E",
    "p2e": "P2E",
    "random": "Random",
    "cascade_ts": "CASCADE-TS",
    "sequential": "Sequential",
    "single_policy_batch": "SinglePolicyBatch",
}

# For matplotlib.rc_context: the same file, byte for byte, from the same numbers.
RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRAY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": PALE,
    "grid.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "svg.hashsalt": "cascade",
    "svg.fonttype": "path",
}

# One colour per explorer, in turn.
EXPLORERS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00",
    "#56B4E9", "#8C6D31", "#7B5EA7", "#B8A300", "#5B6770",
)  # fmt: skip
PHASES = {"deploy": _GREEN, "model": _BLUE, "explore": _ORANGE, "measure": "#CC79A7", "transfer": "#7B5EA7"}
OTHERS = ("#009E73", "#CC79A7", "#56B4E9", "#7B5EA7", "#8C6D31", "#B8A300")
"""For methods without a colour of their own, and for runs of one method beyond the first."""


def group_colors(methods: list[str]) -> list[str]:
    """A colour for each of several groups: its method's own, once; others after that."""
    spare, used, found = list(OTHERS), set[str](), []
    for method in methods:
        color = COLORS.get(method)
        if color is None or color in used:
            color = spare.pop(0) if spare else GRAY
        used.add(color)
        found.append(color)
    return found
