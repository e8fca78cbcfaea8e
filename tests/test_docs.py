"""What the README and the documentation show is true: code runs, commands exist, names can be imported."""

import importlib
import json
import re
import shlex
from pathlib import Path

import pytest

from cascade.cli.main import COMMANDS, parse
from cascade.errors import CascadeError

ROOT = Path(__file__).parents[1]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
}
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str, *languages: str) -> list[tuple[int, str]]:
    """Fenced blocks of these languages, each with the number of lines above it."""
    text = PAGES[page]
    return [
        (text.count("\n", 0, found.start(2)), found[2])
        for found in FENCE.finditer(text)
        if found[1] in languages
    ]


def shown_commands(page: str) -> list[str]:
    """Command lines of console blocks and of `inline code`, without prompts and comments.

    Lines that go on are joined, and of a loop the first turn is meant.
    """
    texts = [text.replace("\\\n", " ") for _, text in blocks(page, "console", "bash", "sh", "text")]
    lines = [_first_turn(line) for text in texts for line in text.splitlines()]
    inline = re.findall(r"`([^`\n]+)`", FENCE.sub("", PAGES[page]))
    commands = [re.sub(r"\s+#.*", "", line.strip().removeprefix("$").strip()) for line in [*lines, *inline]]
    return [line for line in commands if re.match(r"(cascade|make) [\w-]", line)]


def _first_turn(line: str) -> str:
    """`for name in one two; do command &` with its first value."""
    loop = re.match(r"for (\w+) in ([\w-]+)[^;]*; do (.+?) &", line)
    return loop[3].replace(f"${loop[1]}", loop[2]) if loop else line


WITH_CODE = [page for page in PAGES if blocks(page, "python")]
WITH_COMMANDS = [page for page in PAGES if shown_commands(page)]


@pytest.mark.parametrize("page", WITH_CODE)
def test_code_runs(page, tmp_path, monkeypatch):
    """Blocks of one page share a namespace, as a reader who follows along would have it."""
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for above, code in blocks(page, "python"):
        exec(compile("\n" * above + code, page, "exec"), namespace)


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_parse(page):
    """Every `cascade` line names a command and settings that exist, every `make` line a target."""
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for line in shown_commands(page):
        program, *args = shlex.split(line)
        if program == "make":
            assert [arg for arg in args if "=" not in arg and arg not in targets] == [], line
        elif len(args) == 1 and args[0] != "--help":
            assert args[0] in COMMANDS, line
        elif "--help" not in args:
            if args[:2] == ["run", "--out"]:  # goes on with a run, which is not here
                args.insert(1, "demo")
            try:
                parse(args)
            except (SystemExit, CascadeError):
                pytest.fail(f"{page} shows a command that does not parse: {line}")


def test_readme_and_docs_are_checked():
    """The page lists above are not empty by accident."""
    assert {"README.md", "docs/environments.md", "docs/data.md"} <= set(WITH_CODE)
    assert {"README.md", "CONTRIBUTING.md", "docs/index.md", "docs/theory.md"} <= set(WITH_COMMANDS)


@pytest.mark.parametrize("page", PAGES)
def test_names_exist(page):
    """`cascade.module:name` on a page can be imported."""
    for module, path in re.findall(r"`(cascade(?:\.\w+)+):([\w.]+)`", PAGES[page]):
        found = importlib.import_module(module)
        for name in path.split("."):
            assert hasattr(found, name), f"{module}:{path}"
            found = getattr(found, name)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    """Relative links and pictures exist, also outside the site, where mkdocs does not look."""
    folder = (ROOT / page).parent
    text = FENCE.sub("", PAGES[page])
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    assert [target for target in targets if target and not (folder / target).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_records_exist(page):
    """A number is shown beside the record it comes from."""
    for name in re.findall(r"`((?:results|benchmarks)/[\w/.-]+\.json)`", PAGES[page]):
        made_locally = name == "benchmarks/local.json"
        assert made_locally or (ROOT / name).is_file(), name


def test_readme_quotes_its_records():
    """The rounds in README and index are those of the stored runs."""
    small, large = (
        {
            name: found["mean"]
            for name, found in json.loads((ROOT / "results/tabular" / file).read_text())["summary"].items()
        }
        for file in ("tree-height6.json", "tree-height8.json")
    )
    readme, index = (re.sub(r"\s+", " ", PAGES[page]) for page in ("README.md", "docs/index.md"))
    assert "{sequential:.0f} for Sequential, {cascade_ts:.0f} for CASCADE-TS".format(**small) in readme
    assert "{single_policy_batch:.0f} for SinglePolicyBatch".format(**small) in readme
    assert "needs {cascade_ts:.0f} rounds".format(**large) in readme
    assert "needs {single_policy_batch:.0f}".format(**large) in readme
    assert "needs {cascade_ts:.0f} rounds".format(**large) in index
    assert "needs {single_policy_batch:.0f}".format(**large) in index


def test_the_cluster_page_quotes_its_record():
    """Rates, ratios and what a runner takes."""
    record, page = json.loads((ROOT / "benchmarks/fleet.json").read_text()), PAGES["docs/cluster.md"]
    for found in record["engines"]:
        for engine in ("local", "ray"):
            assert f"{found[engine]['best_steps_per_s']:,}" in page
        assert f"| {found['ray_over_best_local']:.2f} |" in page
        assert found["runner_cores"] <= 1
        assert not found["runner_maps_cuda"]
    for kind in record["bookkeeping"]:
        assert f"{kind['steps_per_s']:,}" in page


def last_coverage(record):
    """Of every method, its mean coverage after the last deployment, in per cent."""
    runs = json.loads((ROOT / f"results/{record}.json").read_text())["runs"]
    last = {name: [v[-1] for v in run["metrics"]["coverage"].values()] for name, run in runs.items()}
    return {name: 100 * sum(values) / len(values) for name, values in last.items()}


def successes(record, method):
    """Zero-shot success of every seed after the last deployment, in per cent."""
    found = json.loads((ROOT / f"results/{record}.json").read_text())["runs"][method]["metrics"]
    return [round(100 * values[-1]) for values in found["success@reward"].values()]


def test_readme_quotes_the_measurements():
    """Every row of the table under Status, and what is said of FourRooms, are those of their records."""
    readme = re.sub(r"\s+", " ", PAGES["README.md"])
    rooms = json.loads((ROOT / "results/two_rooms.json").read_text())
    seeds = len(rooms["settings"]["seeds"])
    gathered, both = rooms["pp2e"]["all_in_the_richer"], rooms["cascade"]["both_rooms"]
    assert f"in {gathered} of {seeds}, CASCADE reaches both in {both} of {seeds}" in readme
    means = last_coverage("demo_methods")
    assert f"lead over PP2E ({means['cascade'] - means['pp2e']:.1f} points)" in readme
    assert f"PP2E's over P2E ({means['pp2e'] - means['p2e']:.1f} points)" in readme
    means = last_coverage("fourrooms")
    for ahead, behind in (("cascade", "pp2e"), ("pp2e", "p2e"), ("p2e", "random")):
        assert f"({means[ahead] - means[behind]:.1f} points)" in readme
    means = last_coverage("multiroom")
    for behind in ("pp2e", "p2e"):
        assert f"({means['cascade'] - means[behind]:.1f} points)" in readme
    cascade, pp2e, p2e = (successes("multiroom", method) for method in ("cascade", "pp2e", "p2e"))
    assert f"in every seed ({cascade[0]}, {cascade[1]} and {cascade[2]} %)" in readme
    assert "({}, {}, {} % and {}, {}, {} %)".format(*pp2e, *p2e) in readme
    assert f"in {sum(cascade) / 3:.0f} % of new levels" in readme
    gain = json.loads((ROOT / "results/minigrid_diversity.json").read_text())["visit_variation"]
    low, high = gain["interval"]
    assert f"+{gain['mean_gain']:.3f} total variation, 95 % interval {low:.3f} to {high:.3f}" in readme
    transfer = json.loads((ROOT / "results/minigrid_transfer.json").read_text())
    assert f"{len(transfer['seeds'])} seeds | {100 * transfer['success']:.0f} %" in readme
    steps = json.loads((ROOT / "benchmarks/gpu_steps.json").read_text())["steps"]
    model, explorers = steps["world model, full"]["ms"], steps["explorers, full, P=10, 800 starts"]["ms"]
    assert f"ensemble {model:.1f} ms, ten explorers {explorers:.1f} ms" in readme


def test_the_site_lists_every_page():
    """A page that exists can be found; nothing is fetched from other hosts."""
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")]
    assert [page for page in pages if f" {page}\n" not in site] == []
    assert "font: false" in site
    assert "://" not in site


def test_the_picture_is_what_the_script_draws(monkeypatch):
    """docs/assets/loop-*.svg are not edited by hand."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    script = importlib.import_module("draw_loop")
    for name, theme in script.THEMES.items():
        assert (ROOT / f"docs/assets/loop-{name}.svg").read_text(encoding="utf-8") == script.draw(theme)


def test_tables_are_what_the_script_makes_of_the_records(monkeypatch):
    """Every table between its marks; a mark that is missing would change the page, too."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    script = importlib.import_module("tables")
    marked = {page for page, text in PAGES.items() if "<!-- table of" in text}
    assert set(script.TABLES) == marked
    assert {page: script.written(page) for page in marked} == {page: PAGES[page] for page in marked}
