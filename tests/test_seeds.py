"""Seeds: what is written reads back, and what no random generator takes is refused."""

import pytest

import cascade
from cascade.errors import SettingError
from cascade.seeds import LARGEST, format_seeds, parse_seeds


@pytest.mark.parametrize("text", ["3", "0-9", "0,2,5", "0-2,7", f"{LARGEST - 1}-{LARGEST}"])
def test_what_is_written_reads_back(text):
    assert format_seeds(parse_seeds(text)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5000000000", f"numbers from 0 to {LARGEST}"),
        ("0-99999999999", "1 to 100,000 seeds"),
        ("0-60000,100000-160000", "1 to 100,000 seeds"),
        ("9" * 5000, "a number, a range or a list"),
        ("0-3,2", "each seed once"),
        ("5-3", "a range that rises"),
        ("", "a number, a range or a list"),
    ],
)
def test_what_cannot_be_used_is_refused(text, expected):
    with pytest.raises(SettingError, match=f"--seeds: got .* expected {expected}"):
        parse_seeds(text)


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [
        ((0, 0), "each seed once"),
        ((), "1 to 100,000 seeds"),
        (-1, "numbers from 0"),
        (LARGEST + 1, "numbers from 0"),
    ],
)
def test_a_run_from_python_refuses_them_before_it_writes(seeds, expected, tmp_path):
    with pytest.raises(SettingError, match=f"seeds: got .* expected {expected}"):
        cascade.run("demo", tmp_path / "run", seeds=seeds)
    assert not (tmp_path / "run").exists()
