"""Runs killed with SIGKILL or told to end, in processes of their own: the short form of `kills.py`."""

import signal

from kills import Moment, finish, kill_at, summary


def test_a_killed_run_ends_with_the_same_weights_data_and_records(tmp_path):
    cache = tmp_path / "cache"
    finish(tmp_path / "whole", cache)
    whole = summary(tmp_path / "whole")
    assert whole["budgets"] == [600, 600]
    out = tmp_path / "killed"
    for moment in (Moment(0, "world model", 0.3), Moment(1, "deploying", 0.1)):
        alive, code, _ = kill_at(out, cache, moment)
        assert alive
        assert code == -signal.SIGKILL
    alive, code, words = kill_at(out, cache, Moment(1, "explorers", 0.0), signal.SIGINT)
    assert alive
    assert code == 128 + signal.SIGINT
    assert f"goonwith:cascaderun--out{out}" in "".join(words.split()), "lines are broken anywhere"
    finish(out, cache)
    assert summary(out) == whole
