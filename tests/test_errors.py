"""What is said of errors."""

import pytest

from cascade.errors import cause_of


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("one line"), "ValueError: one line"),
        (ValueError("\nfoo"), "ValueError: foo"),
        (RuntimeError("  \r\nout of memory\r\nand more"), "RuntimeError: out of memory"),
        (EOFError(), "EOFError"),
    ],
)
def test_a_cause_is_the_first_line_that_says_something(error, said):
    assert cause_of(error) == said
