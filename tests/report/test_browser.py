"""The page in a real browser: it draws, answers and fits, by pointer or keyboard, light or dark, wide or narrow."""

import io

import numpy as np
import pytest
from browser import Browser, find_browser
from PIL import Image
from synthetic_run import write_run

from cascade.report.build import build

pytestmark = pytest.mark.skipif(
    find_browser() is None, reason="no Chromium or Chrome is installed on this machine"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two runs: the first lacks one measure, the second is of a world without cells."""
    root = tmp_path_factory.mktemp("browser")
    ours = write_run(root / "ours", levels=2, steps=40)
    (ours / "measures" / "seed-1" / "deploy-002.npz").unlink()
    alone = write_run(root / "alone", "random", levels=2, steps=40, deployments=2)
    for file in alone.glob("measures/*/*.npz"):
        arrays = dict(np.load(file))
        np.savez(file, films=arrays["films"], open_loop=arrays["open_loop"])
    return build([ours, alone], root / "out").page


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def pixels(browser, selector: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(browser.picture(selector))).convert("RGB")).astype(float)


def show(browser, form: str, name: str, value: str) -> None:
    """Choose in a drop-down, as a reader would."""
    browser.run(
        f"const field = document.querySelector('{form}').elements['{name}']; field.value = '{value}';"
        "field.dispatchEvent(new Event('change', {bubbles: true}))"
    )
    browser.settle()


def markup(browser, key: str) -> str:
    return browser.run(f'return document.querySelector(`[data-key="{key}"]`).innerHTML')


@pytest.mark.parametrize("view", ["", "#run-0", "#run-1"])
def test_it_loads_without_a_complaint_and_asks_for_nothing(browser, page, view):
    browser.open(page, hash_=view)
    assert browser.problems == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:", "about:"))] == []
    assert len([url for url in browser.requests if url.startswith("file:")]) == 1
    assert browser.run("return plots(document).length") >= 5


@pytest.mark.parametrize(
    ("view", "dark"), [("", False), ("#run-0", False), ("#run-1", False), ("", True), ("#run-0", True)]
)
def test_every_figure_draws_something(browser, page, view, dark):
    browser.open(page, hash_=view, dark=dark)
    drawn = "m.querySelector('svg, img, table, .bars, .forest')"
    name = "m.dataset.key + '|' + m.dataset.kind"
    assert browser.run(f"return plots(document).filter((m) => !{drawn}).map((m) => {name})") == []
    keys = browser.run(f"return plots(document).map((m) => {name})")
    for key, kind in (entry.split("|") for entry in keys):
        found = pixels(browser, f'[data-key="{key}"][data-kind="{kind}"]')
        assert found.std() > 2.0, key
        if kind not in ("paths", "films", "open_loop"):  # pictures of the world keep their own colours
            assert (found.mean() < 128) == dark, key


def test_one_view_at_a_time(browser, page):
    browser.open(page)
    shown = "return [...document.querySelectorAll('.view')].filter((v) => v.offsetParent !== null).map((v) => v.id)"
    assert browser.run(shown) == ["compare"]
    show(browser, ".bar form", "view", "run-1")
    browser.settle("document.getElementById('run-1').offsetParent !== null")
    assert browser.run(shown) == ["run-1"]
    assert browser.run("return location.hash") == "#run-1"


def test_controls_change_what_is_shown(browser, page):
    browser.open(page, hash_="#run-0")
    form = 'form[data-link="run-0-explorers"]'
    figures = ["run-0-visits", "run-0-paths", "run-0-matrix", "run-0-films", "run-0-open_loop"]
    before = {key: markup(browser, key) for key in figures}
    show(browser, form, "deployment", "1")
    after = {key: markup(browser, key) for key in figures}
    assert [key for key in figures if before[key] == after[key]] == []
    show(browser, form, "level", "1")
    assert markup(browser, "run-0-visits") != after["run-0-visits"]
    show(browser, form, "explorer", "2")
    assert "Explorer 3" in markup(browser, "run-0-visits")
    assert browser.run("return document.querySelectorAll('#run-0-paths .away').length") == 3
    one = markup(browser, "run-0-curves-explore")
    show(browser, "#run-0-curves-explore form", "seed", "1")
    assert "explorer 4" in markup(browser, "run-0-curves-explore")
    show(browser, "#run-0-curves-explore form", "value", "information_gain")
    assert markup(browser, "run-0-curves-explore") != one


def test_the_map_counts_what_was_recorded(browser, page):
    """From the compressed bytes in the page back to cells and paths: seed 1, the second deployment, level 2."""
    arrays = np.load(page.parents[1] / "ours" / "measures" / "seed-1" / "deploy-001.npz")
    seen = ((arrays["visits"][:, 1] > 0).any(axis=0) & arrays["reachable"][1]).sum()
    browser.open(page, hash_="#run-0")
    for name, value in (("seed", "1"), ("deployment", "2"), ("level", "1")):
        show(browser, 'form[data-link="run-0-explorers"]', name, value)
    assert f"{seen} of {arrays['reachable'][1].sum()} reachable cells" in markup(browser, "run-0-visits")
    cells = browser.run("""
        const found = [...document.querySelectorAll('#run-0-visits .map .cell')];
        return found.map((cell) => [Number(cell.getAttribute('x')), Number(cell.getAttribute('y'))]);
    """)
    assert sorted(cells) == np.argwhere((arrays["visits"][:, 1] > 0).any(axis=0)).tolist()
    lines = browser.run("""
        const found = [...document.querySelectorAll('#run-0-paths polyline.path')];
        return found.map((line) => [...line.points].map((point) => [Math.floor(point.x), Math.floor(point.y)]));
    """)
    assert lines == arrays["paths"][:, 1].tolist()


def test_a_choice_without_a_measure_says_so(browser, page):
    browser.open(page, hash_="#run-0")
    show(browser, 'form[data-link="run-0-explorers"]', "seed", "1")
    for name in ("visits", "paths", "matrix", "films", "open_loop"):
        assert "recorded for this choice" in markup(browser, f"run-0-{name}")
    show(browser, 'form[data-link="run-0-explorers"]', "deployment", "2")
    assert "recorded for this choice" not in markup(browser, "run-0-visits")
    assert browser.problems == []


def test_the_comparison_follows_its_metric(browser, page):
    browser.open(page)
    before = markup(browser, "compare-iqm")
    show(browser, 'form[data-link="compare"]', "metric", "3")
    assert markup(browser, "compare-iqm") != before
    caption = browser.run("return document.querySelector('[data-kind=seeds] caption').textContent")
    assert "Rewarding episodes" in caption


def test_a_small_map_and_the_legend_can_be_pressed(browser, page):
    browser.open(page, hash_="#run-0")
    browser.run("document.querySelector('#run-0-visits [data-explorer=\"1\"]').click()")
    browser.settle()
    assert (
        browser.run("return document.querySelector('#run-0-visits [aria-pressed=true]').dataset.explorer")
        == "1"
    )
    lines = "return document.querySelectorAll('#run-0-curves-model .line').length"
    before = browser.run(lines)
    browser.run("document.querySelector('#run-0-curves-model .legend button').click()")
    assert browser.run(lines) == before - 1


def test_hovering_reads_off_values(browser, page):
    browser.open(page, hash_="#run-0")
    box = browser.run("const svg = document.querySelector('#run-0-by-0 svg'); svg.scrollIntoView({block: 'center'});"
                      "const b = svg.getBoundingClientRect(); return [b.right - 14, b.top + 60]")  # fmt: skip
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    browser.settle("!document.querySelector('#run-0-by-0 .tip').hidden")
    words = browser.run("return document.querySelector('#run-0-by-0 .tip').textContent")
    mean = browser.run("return DATA.figures['run-0-by-0'].mean.at(-1)")
    assert "deployment 3" in words
    assert f"{mean:.1f}\N{NO-BREAK SPACE}%" in words


def test_the_keyboard_alone_is_enough(browser, page):
    """Tab reaches controls and charts in their order; arrows read values; Enter and digits work the controls."""
    browser.open(page)
    reached, charts = [], 0
    for _ in range(14):
        browser.press("Tab")
        reached.append(
            browser.run("const a = document.activeElement; return a.id || a.name || a.textContent")
        )
        charts += browser.run("return document.activeElement.matches('svg[role=img]')")
    assert "Skip to the figures" in reached[0]
    assert reached[1:3] == ["view", "theme"]
    assert "metric" in reached
    assert charts == 1
    browser.open(page, hash_="#run-0")
    browser.run("document.querySelector('#run-0-by-0 svg').focus()")
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    browser.press("ArrowLeft")
    assert "deployment 3" in browser.run("return document.querySelector('#run-0-by-0 .tip').textContent")
    browser.press("ArrowLeft")
    assert "deployment 2" in browser.run("return document.querySelector('#run-0-by-0 .tip').textContent")
    browser.run("document.querySelector('form[data-link=\"run-0-explorers\"]').elements.deployment.focus()")
    before = markup(browser, "run-0-visits")
    browser.press("1", text="1")
    browser.settle()
    assert markup(browser, "run-0-visits") != before
    browser.run("document.getElementById('theme').focus()")
    browser.press("Enter", text="\r")
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    browser.run("localStorage.clear()")


def test_settings_are_searched_and_tables_sorted(browser, page):
    browser.open(page, hash_="#run-0")
    browser.run("""
        const field = document.querySelector('#run-0 .filter');
        field.closest('details').open = true;
        field.value = 'explore weight';
        field.dispatchEvent(new Event('input', {bubbles: true}));
    """)
    rows = browser.run("""
        const rows = [...document.querySelectorAll('#run-0-settings tbody tr')];
        return rows.filter((row) => !row.hidden).map((row) => row.textContent);
    """)
    assert rows == ["explore.weight0.3"]
    browser.open(page)
    sort = "document.querySelector('[data-kind=seeds] thead th:nth-child(2) button').click();"
    column = """
        const cells = [...document.querySelectorAll('[data-kind=seeds] tbody td:nth-child(2)')];
        return cells.map((cell) => parseFloat(cell.textContent));
    """
    up, down = browser.run(sort + column), browser.run(sort + column)
    assert up == sorted(up)
    assert down == up[::-1]


def test_films_play_and_follow_the_slider(browser, page):
    browser.open(page, hash_="#run-0")
    where = "return document.querySelector('#run-0-films .player div').style.backgroundPosition"
    before = browser.run(where)
    browser.run("""
        const slider = document.querySelector('#run-0-films input');
        slider.value = 3;
        slider.dispatchEvent(new Event('input'));
    """)
    moved = browser.run(where)
    assert moved != before
    browser.run("document.querySelector('#run-0-films button').click()")
    browser.settle(f"(() => {{ {where} }})() !== {moved!r}")
    browser.run("document.querySelector('#run-0-films button').click()")
    assert browser.run("return document.querySelector('#run-0-films button').textContent") == "Play"


@pytest.mark.parametrize("view", ["", "#run-0"])
@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_sticks_out_on_a_phone(browser, page, view, width):
    browser.open(page, width=width, height=800, hash_=view)
    assert browser.run("return document.documentElement.scrollWidth") == width
    wide = browser.run("""
        const found = [...document.querySelectorAll('main svg, main figure, main form')];
        const shown = found.filter((e) => e.getClientRects().length);
        return shown.filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.closest('[id]').id);
    """)
    assert wide == []


def test_dark_and_light_pages(browser, page):
    background = (
        "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    )
    browser.open(page, dark=False)
    assert min(browser.run(background)) > 200
    browser.run("document.getElementById('theme').click()")
    assert max(browser.run(background)) < 50
    browser.run("localStorage.clear()")
    browser.open(page, dark=True)
    assert max(browser.run(background)) < 50
    assert browser.problems == []


def test_words_stand_out_from_the_page(browser, page):
    """Contrast of text and of quiet text, light and dark: at least 4.5 to 1."""
    script = """
        const probe = document.createElement('p');
        document.body.append(probe);
        const rgb = (name) => {
          probe.style.color = `var(${name})`;
          return getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255);
        };
        const linear = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const light = (c) => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
        const pairs = [['ink', 'bg'], ['soft', 'bg'], ['soft', 'card'], ['accent', 'bg'], ['accent', 'card']];
        return pairs.map((pair) => pair.map((name) => light(rgb('--' + name))).sort((a, b) => b - a))
          .map(([x, y]) => (x + 0.05) / (y + 0.05));
    """
    for dark in (False, True):
        browser.open(page, dark=dark)
        assert min(browser.run(script)) >= 4.5
