from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.screen import money, one_line


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (None, "unknown"),
        ("0", "$0.0000"),
        ("0.00233", "$0.0023"),
        ("0.001", "$0.0010"),
        ("0.00045", "$0.00045"),
        ("0.0000001234", "$0.00000012"),
        ("1.5", "$1.5000"),
        ("12345.678", "$12,345.6780"),
    ],
)
def test_money_shows_four_decimals_or_two_digits_that_count(amount: str | None, text: str) -> None:
    """
    A small amount is never shown as 0, and an unknown one says so.
    """
    assert money(None if amount is None else Decimal(amount)) == text


@given(st.text(alphabet=st.characters(codec=None)))
def test_no_text_can_steer_a_terminal(text: str) -> None:
    """
    Whatever a reply or a path holds becomes one line of printable characters.
    """
    assert one_line(text).isprintable()


def test_control_characters_are_seen() -> None:
    """
    An escape sequence is shown as what it is, and line breaks are folded.
    """
    assert one_line("a\x1b[31mred\nb\t c \u202e") == "a\\x1b[31mred b c \\u202e"
