"""The page as a file: complete, self-contained, with numbers beside it that equal what was recorded."""

import base64
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image
from synthetic_run import write_run

from cascade.cli import main
from cascade.report import build as build_module
from cascade.report import draw as draw_module
from cascade.report import transfer_page
from cascade.report.build import build
from cascade.report.compare import Member
from cascade.report.draw import Drawn, Work, draw
from cascade.report.files import Files
from cascade.report.html import Part, as_script, tag, text
from cascade.report.load import read_run
from cascade.report.pictures import Album, contact_sheet, pack, to_uri
from cascade.report.series import tables
from cascade.report.transfer_page import transfer_section

SMALL = {"levels": 2, "steps": 30}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two runs and their page."""
    root = tmp_path_factory.mktemp("page")
    runs = [write_run(root / "ours", **SMALL), write_run(root / "theirs", "pp2e", seeds=(0, 1, 2), **SMALL)]
    return runs, build(runs, root / "out"), (root / "out" / "index.html").read_text(encoding="utf-8")


class Reader(HTMLParser):
    """Tags that close, ids, and everything that could fetch something."""

    VOID = frozenset(("meta", "link", "input", "img", "br"))

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.headings = [], [], [], []

    def handle_starttag(self, name, attributes):
        found = dict(attributes)
        if name not in self.VOID:
            self.open.append(name)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found[key] for key in ("href", "src") if key in found]

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h2", "h3"):
            self.headings.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


def rows(root, name: str) -> list[dict[str, str]]:
    with (root / "figures" / name).open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_the_page_is_whole(made):
    _, built, page = made
    found = read(page)
    assert found.open == []
    assert len(found.ids) == len(set(found.ids))
    assert built.runs == ["ours", "theirs"]
    for words in ("Progress", "What the explorers do", "Zero-shot transfer", "Learning curves", "Time", "Settings",
                  "Cells visited", "Trajectories", "Filmstrips", "What the model imagines", "Every seed",
                  "Interquartile mean", "Probability of improvement"):  # fmt: skip
        assert words in found.headings, words


def test_nothing_is_fetched_from_elsewhere(made):
    page = made[2]
    found = read(page)
    outside = [link for link in found.links if not link.startswith(("#", "figures/", "data:"))]
    assert outside == []
    assert [link for link in found.links if link.startswith("#") and link[1:] not in found.ids] == []
    style = page.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_every_link_to_a_file_leads_to_it_and_every_file_is_linked(made):
    _, built, page = made
    root = built.page.parent
    linked = {link for link in read(page).links if link.startswith("figures/")}
    files = {path.relative_to(root).as_posix() for path in built.figures}
    assert linked - files == set()
    assert {name for name in files - linked if "seeds.csv" not in name} == set()


def test_every_figure_has_words_for_those_who_do_not_see_it(made):
    page = made[2]
    for plot in re.findall(r'<div class="plot[^>]*>', page):
        assert len(re.search(r'data-alt="([^"]*)"', plot)[1]) > 15


def test_numbers_beside_the_page_are_those_recorded(made):
    runs, built, _ = made
    root = built.page.parent
    run = read_run(runs[0])
    found = {(r["metric"], r["task"], r["seed"], r["deployment"]): float(r["value"])
             for name in ("deployments", "transfer") for r in rows(root, f"ours/{name}.csv")}  # fmt: skip
    expected = {
        (r["metric"], r["task"] or "", str(r["seed"]), str(r["deployment"])): r["value"] for r in run.records
    }
    assert found == {key: value for key, value in expected.items() if key[0] != "episodes"}
    logged = [line["values"]["entropy"][2] for line in run.logs if "entropy" in line["values"]]
    stored = [
        float(r["number"])
        for r in rows(root, "ours/curves-explore.csv")
        if (r["value"], r["explorer"]) == ("entropy", "2")
    ]
    assert stored == logged
    assert [float(r["seconds"]) for r in rows(root, "ours/time.csv")] == [p["seconds"] for p in run.phases]


def test_maps_and_paths_beside_the_page_are_those_recorded(made):
    runs, built, _ = made
    root = built.page.parent
    arrays = np.load(runs[0] / "measures" / "seed-1" / "deploy-002.npz")
    visits, paths = np.zeros_like(arrays["visits"]), np.full_like(arrays["paths"], -1)
    for r in rows(root, "ours/visits.csv"):
        if (r["seed"], r["deployment"]) == ("1", "3"):
            visits[int(r["explorer"]), int(r["level"]), int(r["x"]), int(r["y"])] = int(r["visits"])
    for r in rows(root, "ours/trajectories.csv"):
        if (r["seed"], r["deployment"]) == ("1", "3"):
            paths[int(r["explorer"]), int(r["level"]), int(r["time"])] = int(r["x"]), int(r["y"])
    np.testing.assert_array_equal(visits, arrays["visits"])
    np.testing.assert_array_equal(paths, arrays["paths"])
    distance = [
        float(r["distance"])
        for r in rows(root, "ours/diversity.csv")
        if (r["seed"], r["deployment"]) == ("1", "3")
    ]
    np.testing.assert_allclose(np.reshape(distance, (4, 4)), arrays["distance"])


def test_comparison_beside_the_page(made):
    runs, built, _ = made
    seeds = [
        r
        for r in rows(built.page.parent, "compare/seeds.csv")
        if (r["metric"], r["method"]) == ("coverage", "PP2E")
    ]
    expected = {
        str(r["seed"]): r["value"]
        for r in read_run(runs[1]).records
        if (r["metric"], r["deployment"]) == ("coverage", 3)
    }
    assert {r["seed"]: float(r["value"]) for r in seeds} == expected
    (pair,) = [r for r in rows(built.page.parent, "compare/improvement.csv") if r["metric"] == "coverage"]
    assert (pair["first"], pair["second"], pair["shared_seeds"]) == ("CASCADE", "PP2E", "2")
    assert 0 <= float(pair["improvement"]) <= 1


LEFT_OUT = {
    "transfer": ("transfer", "Zero-shot transfer"),
    "measures": ("measures", "What the explorers do"),
    "results.json": ("results.json", "Time"),
    "metrics.jsonl": ("metrics.jsonl", "Learning curves"),
}


@pytest.fixture(scope="module")
def little(tmp_path_factory):
    """A run of one seed and one deployment."""
    return write_run(tmp_path_factory.mktemp("little") / "run", seeds=(0,), deployments=1, **SMALL)


@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_is_missing_is_left_out(little, tmp_path, what):
    run = shutil.copytree(little, tmp_path / "run")
    name, heading = LEFT_OUT[what]
    shutil.rmtree(run / name) if (run / name).is_dir() else (run / name).unlink()
    headings = read(build([run], tmp_path / "out").page.read_text(encoding="utf-8")).headings
    assert heading not in headings
    assert "Settings" in headings


@pytest.mark.parametrize(
    "name", ["visits", "reachable", "paths", "pictures", "films", "open_loop", "distance"]
)
def test_any_array_may_be_absent(made, tmp_path, name):
    runs, _, _ = made
    run = tmp_path / "run"
    (run / "measures" / "seed-0").mkdir(parents=True)
    shutil.copy(runs[0] / "run.json", run)
    arrays = dict(np.load(runs[0] / "measures" / "seed-0" / "deploy-001.npz"))
    del arrays[name]
    np.savez(run / "measures" / "seed-0" / "deploy-001.npz", **arrays)
    headings = read(build([run], tmp_path / "out").page.read_text(encoding="utf-8")).headings
    titles = {"visits": "Cells visited", "paths": "Trajectories", "films": "Filmstrips",
              "open_loop": "What the model imagines", "distance": "How different they are"}  # fmt: skip
    expected = [titles[name]] if name in titles else []
    assert [title for title in titles.values() if title not in headings] == expected


def test_a_run_that_has_only_begun(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text("{}")
    page = build([run], tmp_path / "out").page.read_text(encoding="utf-8")
    assert read(page).open == []


def test_words_from_files_cannot_become_part_of_the_page(tmp_path):
    run = write_run(tmp_path / "run", seeds=(0,), deployments=1, tasks=("</script><b>x",), **SMALL)
    document = json.loads((run / "run.json").read_text())
    document["settings"]["env"]["id"] = "<img src=x onerror=alert(1)>"
    (run / "run.json").write_text(json.dumps(document))
    page = build([run], tmp_path / "out").page.read_text(encoding="utf-8")
    assert "<img src=x" not in page
    assert "<b>x" not in page
    assert page.count("</script>") == 2
    assert "</script" not in as_script({"a": "</script>"})[:-9]
    assert tag("a", text("<"), title='"') == '<a title="&quot;">&lt;</a>'


def test_pictures_stay_within_their_budget(made, tmp_path, monkeypatch):
    runs, _, _ = made
    run = tmp_path / "run"
    shutil.copytree(runs[0] / "measures", run / "measures")
    shutil.copy(runs[0] / "run.json", run)
    whole = build([run], tmp_path / "whole")
    monkeypatch.setattr(build_module, "PICTURES", 30_000)
    part = build([run], tmp_path / "part")
    assert whole.notes == []
    assert "of 6 measures are drawn on this page" in " ".join(part.notes)
    saved = whole.page.stat().st_size - part.page.stat().st_size
    assert saved > 10_000


def test_a_long_learning_curve_is_thinned_on_the_page_and_whole_beside_it(little, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer_page, "POINTS", 5)
    run, part = read_run(little), Part()
    found = [shown for shown in tables(run.records) if shown.metric == "success"]
    transfer_section(part, run, "one", found, Files(tmp_path, "figures"))
    (drawn,) = part.figures["one-transfer-curves"]["sets"].values()
    stored = run.transfers[0]["seeds"]["0"]["curves"]
    assert {len(column) for column in drawn.values()} == {5}
    assert (drawn["x"][0], drawn["x"][-1]) == (stored["step"][0], stored["step"][-1])
    with (tmp_path / "figures/transfer-curves.csv").open() as stream:
        steps = {float(row["step"]) for row in csv.DictReader(stream)}
    assert steps == set(map(float, stored["step"]))
    assert len(steps) > 5


def test_a_picture_is_stored_once_and_exactly():
    image = np.random.default_rng(0).integers(0, 3, size=(8, 9, 3)).astype(np.uint8) * 90
    album = Album()
    assert [album.add(image), album.add(255 - image), album.add(image.copy())] == [0, 1, 0]
    album.forget(1)
    assert (len(album.uris), album.add(image), album.add(255 - image)) == (1, 0, 1)
    data = base64.b64decode(to_uri(image).split(",")[1])
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(data)).convert("RGB")), image)


def test_packed_numbers_come_back():
    array = np.array([[-1, 0], [300, 70_000]], dtype=np.int64)
    packed = pack(array)
    values = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), "<i2").reshape(packed["shape"])
    assert values.tolist() == [[-1, 0], [300, 32767]]


def test_a_contact_sheet_shows_a_cell_where_it_is():
    """The first coordinate runs to the right, the second down; the first column is everybody."""
    visits = np.zeros((1, 2, 4, 3), np.uint16)
    visits[0, 1, 3, 0] = 9
    sheet = contact_sheet(visits, None, tile=1)
    assert sheet.shape == (5, 3 * 6, 3)
    dark = np.argwhere(sheet.sum(axis=-1) < 400)
    assert dark.tolist() == [[1, 1 + 3], [1, 12 + 1 + 3]]


@pytest.fixture
def shared_out(monkeypatch):
    """Even two runs are shared among processes, on any machine."""
    monkeypatch.setattr(draw_module, "ALONE", 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)


def test_several_processes_draw_the_same_page_and_figures(made, tmp_path, monkeypatch, shared_out):
    """Byte for byte, whoever draws it and however often."""
    runs, built, page = made
    monkeypatch.setattr(draw_module, "draw_one", pytest.fail)
    again = build(runs, tmp_path / "again")
    assert again.page.read_text(encoding="utf-8") == page
    for path in built.figures:
        other = tmp_path / "again" / path.relative_to(built.page.parent)
        assert other.read_bytes() == path.read_bytes(), path.name


def test_a_script_that_asks_for_a_report_runs_once(tmp_path):
    """Without a `__main__` guard, too."""
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text('{"method": "random"}')
    script = tmp_path / "script.py"
    script.write_text(
        "import os\nfrom cascade.report import draw\n"
        "draw.ALONE, os.sched_getaffinity, draw.draw_one = 0, lambda pid: {0, 1}, None\n"
        "print([one.member.name for one in "
        "draw.draw([draw.Work(name, name, name, name, 'out', 40, 40) for name in 'ab'])])\n"
    )
    done = subprocess.run(
        [sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("['a', 'b']\n", "")


@pytest.mark.parametrize("program", ["false", "absent"])
def test_where_no_processes_can_be_had_this_one_draws(program, tmp_path, monkeypatch, shared_out):
    monkeypatch.setattr(sys, "executable", shutil.which(program) or str(tmp_path / program))
    monkeypatch.setattr(
        draw_module, "draw_one", lambda work: Drawn(Member(work.ident, "", "", {}, [], []), Part(), [])
    )
    works = [Work(str(tmp_path), ident, ident, "", str(tmp_path), 1, 1) for ident in "abc"]
    assert [one.member.name for one in draw(works)] == ["a", "b", "c"]


def test_the_command(little, tmp_path, capsys):
    main(["report", str(little), "--out", str(tmp_path / "out"), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["page"] == str(tmp_path / "out" / "index.html")
    assert str(tmp_path / "out" / "figures" / "run" / "visits.csv") in document["figures"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nowhere"], "nowhere: expected a run folder"),
        ([], "RUN: got"),
        (["a", "b"], "--out"),
        (["RUN", "--out", "FILE/x"], "--out"),
    ],
)
def test_refusals_are_one_line(made, tmp_path, capsys, args, words):
    runs, _, _ = made
    (tmp_path / "file").write_text("")
    args = [a.replace("RUN", str(runs[0])).replace("FILE", str(tmp_path / "file")) for a in args]
    with pytest.raises(SystemExit) as stop:
        main(["report", *args])
    captured = capsys.readouterr()
    assert stop.value.code in (1, 2)
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
