"""
What is kept of a text that is too long, and that no secret is cut through where it could be shown.
"""

from __future__ import annotations

import pytest

from turngate.stopgate.evidence.masked import masked
from turngate.stopgate.transcript.clipped import Clipped, clip

WORD = "aB3dE5fG7hJ9kL1mN" * 800


def test_a_short_text_is_kept_whole() -> None:
    """
    Only what is longer than both ends is clipped.
    """
    assert clip("pytest -q", start=1_000, end=1_000) == "pytest -q"


def test_a_long_text_keeps_both_ends_around_a_mark() -> None:
    """
    The count in the mark is what is not shown.
    """
    text = " ".join(f"line{number}" for number in range(5_000))
    clipped = clip(text, start=1_000, end=1_000)
    shown = masked(clipped)

    assert isinstance(clipped, Clipped)
    assert shown.startswith("line0 line1 ")
    assert shown.endswith(" line4999")
    assert "characters left out …]" in shown


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"CLIENT_SECRET={WORD[:5_600]}", id="one word, from the start"),
        pytest.param(f"CLIENT_SECRET={WORD}", id="one endless word"),
        pytest.param(f"key: {'x ' * 1_000}CLIENT_SECRET={WORD}", id="behind other words"),
        pytest.param(f"CLIENT_SECRET={WORD} {'x ' * 4_000}", id="before other words"),
        pytest.param(f"eyJhbGciOiJSUzI1NiJ9.eyJ{WORD}.{WORD[:300]}", id="a token"),
        pytest.param(f"-----BEGIN RSA PRIVATE KEY-----\n{WORD}\n", id="a private key"),
    ],
)
@pytest.mark.parametrize("end", [0, 200, 1_000, 4_000])
def test_a_secret_is_not_cut_through_where_it_could_be_shown(text: str, end: int) -> None:
    """
    Pitfall 39: of a secret that straddles the cut, neither end shows a piece.
    """
    shown = masked(clip(text, start=1_000, end=end))

    assert not any(WORD[place : place + 12] in shown for place in range(0, len(WORD), 17))
