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
