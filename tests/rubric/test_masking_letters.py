"""
Secrets by the name that they are assigned to, in letters of either case and beside letters of any script.
"""

from __future__ import annotations

import pytest

from turngate.rubric.masking import mask


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        pytest.param("PassWord=hunter2x", "PassWord=[secret]", id="mixed-case"),
        pytest.param(
            "\u0130: api_KEY=a1b2c3d4e5", "\u0130: api_KEY=[secret]", id="behind-a-capital-of-two-lower-letters"
        ),
        pytest.param("to\u212aen=a1b2c3d4e5", "to\u212aen=a1b2c3d4e5", id="the-kelvin-sign-is-no-k"),
        pytest.param("10 PASSED: test_pass[a1b2c3] PASSED", "10 PASSED: test_pass[a1b2c3] PASSED", id="passed-tests"),
        pytest.param("pwd=x", "pwd=[secret]", id="the-shortest"),
        pytest.param(
            "a token, a secret, password=a1b2c3d4", "a token, a secret, password=[secret]", id="words-before-it"
        ),
        pytest.param("tokens passtoken2 = 'q9w8e7r6'", "tokens passtoken2 = '[secret]'", id="a-word-behind-a-word"),
    ],
)
def test_a_name_is_known_in_any_case(text: str, masked: str):
    """
    By ASCII letters alone.
    """
    assert mask(text) == masked
