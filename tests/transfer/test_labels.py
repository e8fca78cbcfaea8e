"""Labels in numbers, and the refusal when there is nothing to learn."""

import numpy as np
import pytest

from cascade.errors import CascadeError
from cascade.transfer.labels import summarise

FIRST = np.array([True, False, False, True, False])
ENDS = np.array([False, False, True, False, False])


def test_first_rows_do_not_count():
    summary = summarise("jump", [(np.array([9.0, 0.0, 2.0, 9.0, -4.0]), FIRST, ENDS)])
    assert (summary.rows, summary.nonzero, summary.minimum, summary.maximum) == (3, 2, -4.0, 2.0)
    assert summary.mean == pytest.approx(-2 / 3)
    assert summary.size == pytest.approx(np.sqrt(10.0))
    assert summary.refusal is None
    assert summary.to_json()["nonzero_share"] == pytest.approx(2 / 3)


def test_pieces_add_up():
    labels = np.array([0.0, 0.5, 0.0, 0.0, 3.0])
    whole = summarise("jump", [(labels, FIRST, ENDS)])
    pieces = [slice(0, 2), slice(2, 2), slice(2, 5)]
    parts = summarise("jump", [(labels[piece], FIRST[piece], ENDS[piece]) for piece in pieces])
    assert whole == parts


@pytest.mark.parametrize(
    ("labels", "final"),
    [([9, 0, 2, 9, 0], True), ([9, 1, 2, 9, 0], False), ([0, 0, 2, 0, 3], False), ([9, 0, 0, 9, 0], False)],
)
def test_rewards_are_final_where_every_one_ends_its_episode(labels, final):
    assert summarise("jump", [(np.array(labels, float), FIRST, ENDS)]).final == final


@pytest.mark.parametrize("count", [0, 1, 9, 10])
def test_rewards_are_rare_below_a_tenth_of_the_rows(count):
    labels = np.zeros(100)
    labels[:count] = 1.0
    assert summarise("jump", [(labels, np.zeros(100, bool), np.zeros(100, bool))]).rare == (0 < count < 10)


def test_all_zero_is_refused_in_words():
    summary = summarise("jump", [(np.zeros(5), FIRST, ENDS)])
    assert summary.refusal is not None
    assert summary.refusal.startswith(
        "all labels of task jump are 0 in the 3 rows: there is nothing to learn"
    )
    assert summary.size == 1.0


def test_a_reward_on_a_first_row_alone_is_nothing():
    assert summarise("jump", [(np.array([1.0, 0.0, 0.0, 1.0, 0.0]), FIRST, ENDS)]).refusal is not None


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_labels_must_be_finite(bad):
    with pytest.raises(CascadeError, match="labels of task 'jump': some are not finite"):
        summarise("jump", [(np.array([0.0, bad]), np.zeros(2, bool), np.zeros(2, bool))])
