"""The table of speeds in docs/environments.md is that of its record."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_quotes_its_record():
    record = json.loads((ROOT / "benchmarks/environments.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs/environments.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| [^|]+ \| ([\d.]+) \| ([\d.]+) \| ([\d,]+) \|$", page, re.MULTILINE)
    found = {
        name: (
            f"{one['action']['us'] / 1e3:.2f}",
            f"{one['reset']['us'] / 1e3:.2f}",
            f"{1e6 / one['action']['us']:,.0f}",
        )
        for name, one in record["presets"].items()
    }
    assert {name: tuple(numbers) for name, *numbers in rows} == found
    for own in record["emulators_own"].values():
        assert f"{own['action']['us'] / 1e3:.2f}" in page
