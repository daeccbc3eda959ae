"""
What a call costs where its model has no price, or the user's own prices are broken.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from turngate.costing.ledger import Ledger
from turngate.judge.scripted_api import Answer, Says, ScriptedMessagesApi

from .answers import CLEAN, USAGE, AskOnce, ended, sends


def test_an_unknown_model_has_an_unknown_cost(ask: AskOnce, ledger: Ledger) -> None:
    """
    The tokens are known, the price is not, and null is not 0.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        ask(api, model="our-own-model")

    [call] = ledger.calls()
    assert ended(call).usage is not None
    assert (ended(call).cost_usd, ended(call).price_source) == (None, "unknown")


class TestPrices:
    """
    A user's own prices.
    """

    @pytest.mark.parametrize(
        ("answer", "outcome", "said"),
        [
            pytest.param(Says('{"findings": []}'), "answered", "", id="answer"),
            pytest.param(
                Says("No JSON."), "unreadable", "the answer holds no JSON object with findings; ", id="no-verdict"
            ),
            pytest.param(sends({"usage": USAGE}, 403), "rejected", "status 403: Forbidden; ", id="error-with-usage"),
        ],
    )
    def test_a_broken_file_of_prices_is_told_with_the_call(
        self, ask: AskOnce, ledger: Ledger, tmp_path: Path, answer: Answer, outcome: str, said: str
    ) -> None:
        """
        The cost is unknown, and the call's detail names file, key and value; what came of the try stays the same.
        """
        (tmp_path / "prices.toml").write_text('[[price]]\nmodel = "m"\ninput = -1\noutput = 1\n')
        with ScriptedMessagesApi([answer]) as api:
            ask(api, prices_folder=tmp_path)

        end = ended(ledger.calls()[0])
        assert (end.outcome, end.cost_usd) == (outcome, None)
        assert end.detail == f"{said}no price: {tmp_path / 'prices.toml'}: input of 'm' = -1 is no price"

    def test_a_key_in_a_file_of_prices_is_not_repeated(self, ask: AskOnce, ledger: Ledger, tmp_path: Path) -> None:
        """
        The detail is masked like everything that is stored.
        """
        (tmp_path / "prices.toml").write_text(
            f'[[price]]\nmodel = "m"\noutput = 1\ninput = "sk-ant-api03-{"a1" * 20}"\n'
        )
        with ScriptedMessagesApi([CLEAN]) as api:
            ask(api, prices_folder=tmp_path)

        detail = ended(ledger.calls()[0]).detail
        assert "input of 'm'" in detail
        assert "a1a1" not in detail


@pytest.mark.parametrize(
    "prices",
    [
        pytest.param("input = 1e999999", id="beyond-arithmetic"),
        pytest.param("input = 1e99999999999999999999", id="beyond-decimal"),
        pytest.param(f"input = {'[' * 3000}{']' * 3000}", id="deep"),
        pytest.param(f"input = {'[' * 400}{']' * 400}", id="less-deep"),
        pytest.param("input = 0x" + "f" * 10_000, id="long"),
    ],
)
def test_no_file_of_prices_breaks_a_judgement(ask: AskOnce, ledger: Ledger, tmp_path: Path, prices: str) -> None:
    """
    The answer stands, with its usage, an unknown cost and a line that says why.
    """
    (tmp_path / "prices.toml").write_text(f'[[price]]\nmodel = "claude-sonnet-5-5"\noutput = 1\n{prices}\n')
    with ScriptedMessagesApi([CLEAN]) as api:
        judgement = ask(api, prices_folder=tmp_path)

    assert judgement.outcome == "answered"
    [call] = ledger.calls()
    assert ended(call).usage is not None
    assert ended(call).cost_usd is None
    assert "prices.toml" in ended(call).detail
