"""Write constraints.txt from pip's own resolution on several Pythons.

On each Python, from the repository's root:

    python -m pip install --dry-run --ignore-installed --report REPORT.json '.[all,cuda,dev]'

and then, with all the reports:  python scripts/pin.py REPORT.json [REPORT.json ...] > constraints.txt
A version that differs between Pythons gets one line for each, with a marker. Of two reports for one Python, the
later decides.
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

HEADER = """\
# Exact versions of everything `pip install -c constraints.txt -e '.[all,cuda,dev]'` brings, on Python {pythons}.
# Made by scripts/pin.py from pip's own resolution; constraints only, so nothing here is installed unasked.
# Held back on purpose: mujoco (4.0 breaks dm_control 1.0.50), pandas and arch (for rliable 1.2.0).
"""


def pins(report: Path) -> tuple[str, dict[str, str]]:
    """The Python version of a report, and the version of each package in it."""
    document = json.loads(report.read_text())
    python = ".".join(document["environment"]["python_version"].split(".")[:2])
    names = {item["metadata"]["name"]: item["metadata"]["version"] for item in document["install"]}
    return python, {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in names.items()}


def main() -> None:
    reports: dict[str, dict[str, str]] = defaultdict(dict)
    for path in sys.argv[1:]:
        python, versions = pins(Path(path))
        reports[python] |= versions
    by_name: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for python, versions in reports.items():
        for name, version in versions.items():
            by_name[name][version].append(python)
    print(HEADER.format(pythons=", ".join(sorted(reports))))
    for name, versions in sorted(by_name.items()):
        if name == "cascade-rl":
            continue
        for version, pythons in sorted(versions.items()):
            everywhere = len(versions) == 1
            marker = " or ".join(f"python_version == '{python}'" for python in sorted(pythons))
            print(f"{name}=={version}" + ("" if everywhere else f" ; {marker}"))


if __name__ == "__main__":
    main()
