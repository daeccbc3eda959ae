"""
Asking with the real SDK against a real server: outcomes, tries, deadline and ledger lines.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable, Coroutine
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from turngate.costing.ledger import Ledger
from turngate.costing.records import Call, CallEnd, CallStart, DecisionLine, RecentCall
from turngate.costing.usage import Usage
from turngate.judge.asking import Asking, judge_turn
from turngate.judge.connect import NoJudge, Target, connect, open_model
from turngate.judge.context import CallContext
from turngate.judge.judgement import Judgement
from turngate.judge.quiet_ledger import QuietLedger
from turngate.judge.scripted_api import (
    EMPTY,
    HTML,
    REFUSAL,
    Answer,
    Dribbles,
    Hangs,
    Received,
    Resets,
    Says,
    ScriptedMessagesApi,
    Sends,
    fails,
    redirects,
)
from turngate.judge.settings import JudgeSettings
from turngate.rubric.library import load
from turngate.rubric.turn import Turn
from turngate.rubric.verdict import Finding

AskOnce = Callable[..., Judgement]

CLEAN: dict[str, Any] = {"findings": []}
CLAIM: dict[str, Any] = {"findings": [{"fault": "claim", "quote": "All tests pass.", "reason": "No test was run."}]}
USAGE: dict[str, Any] = {"input_tokens": 700, "output_tokens": 50}


def sends(body: object, status: int = 200) -> Sends:
    return Sends(status, json.dumps(body).encode())


def ended(call: Call) -> CallEnd:
    assert call.end is not None
    return call.end


def test_a_verdict_is_read_and_its_call_written_down(ask: AskOnce, ledger: Ledger) -> None:
    """
    The findings arrive, with one ledger line that tells who was asked, what it took and what it cost.
    """
    context = CallContext("d1", "s1", "/home/me/project", "Stop", "", "h1")
    with ScriptedMessagesApi([CLAIM]) as api:
        judgement = ask(api, context=context)

    assert judgement.outcome == "answered"
    assert judgement.verdict is not None
    assert judgement.verdict.findings == (Finding("claim", "All tests pass.", "No test was run."),)
    [call] = ledger.calls()
    assert judgement.calls == (call.id,)
    assert call.start.endpoint == api.url.removeprefix("http://")
    assert (call.start.backend, call.start.model, call.start.try_number) == ("anthropic", "claude-sonnet-5-5", 1)
    assert (call.start.rubric, call.start.rubric_hash) == (judgement.rubric, judgement.rubric_hash)
    assert (call.start.decision_id, call.start.session_id, call.start.human_turn) == ("d1", "s1", "h1")
    assert (ended(call).outcome, ended(call).request_id) == ("answered", "req_0001")
    usage = ended(call).usage
    assert usage is not None
    # Sonnet 5.5: 2 USD a million tokens in, 10 out; nothing cached at a first call.
    assert ended(call).cost_usd == (usage.input_tokens * Decimal(2) + usage.output_tokens * Decimal(10)) / 1_000_000


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param(HTML, "error", id="html-200"),
        pytest.param(EMPTY, "error", id="empty-200"),
        pytest.param(sends(None), "error", id="null"),
        pytest.param(sends([1, 2]), "error", id="list"),
        pytest.param(sends({"type": "message"}), "error", id="no-content"),
        pytest.param(sends({"content": "text"}), "error", id="content-no-list"),
        pytest.param(
            sends({"content": [None, 1, "x", {"type": "text", "text": 5}]}), "unreadable", id="damaged-blocks"
        ),
        pytest.param(
            sends({"content": [], "usage": [], "model": 1, "stop_reason": {}}), "unreadable", id="wrong-types"
        ),
        pytest.param(Sends(200, b"[" * 100_000), "error", id="deep-nesting"),
        pytest.param(Sends(200, b'{"content": ' + b"9" * 10_000 + b"}"), "error", id="huge-number"),
        pytest.param(Sends(200, b"\xff\xfe\x00"), "error", id="no-utf-8"),
        pytest.param(Says("I would rather not answer in JSON."), "unreadable", id="prose"),
        pytest.param(Says('{"findings": [{"fault": "cl', stop_reason="max_tokens"), "unreadable", id="cut-off"),
        pytest.param(REFUSAL, "refused", id="refusal"),
        pytest.param(Says('{"findings": []}', stop_reason="refusal"), "refused", id="refusal-with-text"),
        pytest.param(Says('{"findings": []}', thinking="Hm."), "answered", id="thinking-first"),
        pytest.param(Says('{"findings": []}', stop_reason="max_tokens"), "answered", id="whole-at-the-limit"),
        pytest.param(fails(401, "invalid x-api-key", "authentication_error"), "error", id="401"),
        pytest.param(fails(402, "no credit"), "error", id="402"),
        pytest.param(fails(403), "error", id="403"),
        pytest.param(fails(404, "model: nothing like it"), "error", id="404"),
        pytest.param(fails(413), "error", id="413"),
        pytest.param(Sends(500, b"<html>", content_type="text/html"), "error", id="500-html"),
        pytest.param(Sends(418, b"[" * 100_000), "error", id="error-with-deep-nesting"),
        pytest.param(Sends(301, b"", (("location", "/elsewhere"),)), "error", id="301"),
        pytest.param(Sends(304), "error", id="304"),
        pytest.param(Sends(204), "error", id="204"),
        pytest.param(Sends(200, b"x" * 10_000_000), "error", id="10-mb"),
        pytest.param(Sends(500, b"x" * 10_000_000), "error", id="10-mb-error"),
        pytest.param(Says(" " * 10_000_000 + '{"findings": []}'), "error", id="10-mb-message"),
        pytest.param(Hangs(), "timeout", id="hangs"),
        pytest.param(Dribbles(), "timeout", id="dribbles"),
        pytest.param(Resets(), "error", id="reset"),
        pytest.param(Resets(in_body=True), "error", id="reset-in-the-body"),
    ],
)
def test_whatever_comes_back_is_an_outcome(ask: AskOnce, ledger: Ledger, answer: Answer, outcome: str) -> None:
    """
    No answer makes an exception, each has one outcome with a line of detail, and every try is closed in the ledger.
    """
    with ScriptedMessagesApi(otherwise=answer) as api:
        judgement = ask(api, deadline_s=1.0)

    assert judgement.outcome == outcome
    assert (judgement.verdict is None) == (outcome != "answered")
    assert bool(judgement.detail) == (outcome != "answered")
    assert "\n" not in judgement.detail
    assert len(judgement.detail) <= 200
    calls = ledger.calls()
    assert tuple(call.id for call in calls) == judgement.calls
    assert len(calls) == len(api.requests)
    rejected = isinstance(answer, Sends) and 400 <= answer.status < 500
    assert {ended(call).outcome for call in calls} == {"rejected" if rejected else outcome}


def test_nobody_listening_is_an_error(ask: AskOnce, ledger: Ledger) -> None:
    """
    A refused connection is tried again and then given up.
    """
    with ScriptedMessagesApi() as api:
        url = api.url

    judgement = ask(url)

    assert judgement.outcome == "error"
    assert [ended(call).outcome for call in ledger.calls()] == ["error"] * 3


@pytest.mark.parametrize("status", [408, 429, 500, 529])
def test_passing_troubles_are_tried_again(ask: AskOnce, ledger: Ledger, status: int) -> None:
    """
    The next try answers, and both stand in the ledger.
    """
    with ScriptedMessagesApi([fails(status), CLEAN]) as api:
        judgement = ask(api)

    assert judgement.outcome == "answered"
    assert [call.start.try_number for call in ledger.calls()] == [1, 2]
    assert [ended(call).outcome for call in ledger.calls()] == ["error", "answered"]


@pytest.mark.parametrize("answer", [fails(401), fails(403), fails(404), fails(413), HTML, REFUSAL])
def test_what_would_fail_again_is_asked_once(ask: AskOnce, answer: Answer) -> None:
    """
    One request, and none from the SDK's own retries.
    """
    with ScriptedMessagesApi(otherwise=answer) as api:
        ask(api)

    assert len(api.requests) == 1


def test_tries_are_few(ask: AskOnce) -> None:
    """
    An endpoint that is down costs three requests, not the whole deadline.
    """
    with ScriptedMessagesApi(otherwise=fails(503)) as api:
        assert ask(api, deadline_s=30).outcome == "error"

    assert len(api.requests) == 3


@pytest.mark.parametrize(
    "value", ["3600", "inf", "1e300", "Wed, 01 Jan 2098 00:00:00 GMT"], ids=["seconds", "inf", "huge", "date"]
)
def test_a_retry_after_beyond_the_deadline_ends_the_tries(ask: AskOnce, ledger: Ledger, value: str) -> None:
    """
    Nobody waits an hour for a judge: one request, then an error.
    """
    limited = fails(429, "slow down", "rate_limit_error")._replace(headers=(("retry-after", value),))
    with ScriptedMessagesApi([limited, CLEAN]) as api:
        judgement = ask(api)

    assert (judgement.outcome, len(api.requests)) == ("error", 1)
    assert "slow down" in judgement.detail
    assert len(ledger.calls()) == 1


@pytest.mark.parametrize("value", ["0", "-5", "nan", "soon", "Wed, 01 Jan 2020 00:00:00 GMT"])
def test_a_retry_after_that_says_nothing_is_no_obstacle(ask: AskOnce, value: str) -> None:
    """
    The usual pause is taken instead.
    """
    limited = fails(429)._replace(headers=(("retry-after", value),))
    with ScriptedMessagesApi([limited, CLEAN]) as api:
        assert ask(api).outcome == "answered"


@pytest.mark.parametrize("answer", [Hangs(), Dribbles()], ids=["silence", "a-byte-at-a-time"])
def test_a_try_cut_off_by_the_deadline_has_unknown_usage(ask: AskOnce, ledger: Ledger, answer: Answer) -> None:
    """
    It may have been billed: tokens and cost are null, never 0.
    """
    with ScriptedMessagesApi([answer]) as api:
        assert ask(api, deadline_s=0.6).outcome == "timeout"

    [call] = ledger.calls()
    assert (ended(call).outcome, ended(call).usage, ended(call).cost_usd) == ("timeout", None, None)


def test_a_deadline_that_has_passed_sends_nothing(ask: AskOnce, ledger: Ledger) -> None:
    """
    Too late is a timeout without a call.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        judgement = ask(api, deadline_s=-1.0)

    assert (judgement.outcome, judgement.calls) == ("timeout", ())
    assert (api.requests, ledger.calls()) == ([], [])


def test_a_later_try_can_be_cut_off_too(ask: AskOnce, ledger: Ledger) -> None:
    """
    One deadline holds over all tries together.
    """
    with ScriptedMessagesApi([fails(500), Hangs()]) as api:
        assert ask(api, deadline_s=1.5).outcome == "timeout"

    assert [ended(call).outcome for call in ledger.calls()] == ["error", "timeout"]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param(Says('{"findings": [', stop_reason="max_tokens"), "unreadable", id="cut-off"),
        pytest.param(Says("", stop_reason="refusal"), "refused", id="refused"),
        pytest.param(Says("No JSON."), "unreadable", id="unreadable"),
        pytest.param(sends({"usage": USAGE}), "error", id="no-content"),
        pytest.param(sends({"error": {"message": "late", "usage": USAGE}}, 403), "error", id="in-an-error"),
        pytest.param(sends({"error": {"message": "late"}, "usage": USAGE}, 403), "error", id="beside-an-error"),
    ],
)
def test_usage_is_kept_whatever_the_answer_is_worth(ask: AskOnce, ledger: Ledger, answer: Answer, outcome: str) -> None:
    """
    Tokens that were billed are in the ledger with their cost, also without a verdict.
    """
    with ScriptedMessagesApi([answer]) as api:
        assert ask(api).outcome == outcome

    [call] = ledger.calls()
    end = ended(call)
    assert end.usage is not None
    assert end.usage.input_tokens > 100
    assert end.cost_usd is not None
    assert end.cost_usd > 0
    assert end.raw_usage is not None
    assert end.raw_usage["input_tokens"] == end.usage.input_tokens


@pytest.mark.parametrize(
    "usage", [None, {}, {"input_tokens": -1, "output_tokens": 1}, {"input_tokens": "7"}, [], "x", {"a": "b" * 50_000}]
)
def test_usage_that_cannot_be_believed_is_unknown(ask: AskOnce, ledger: Ledger, usage: object) -> None:
    """
    The verdict counts all the same; tokens and cost are null.
    """
    body = {"content": [{"type": "text", "text": '{"findings": []}'}], "stop_reason": "end_turn", "usage": usage}
    with ScriptedMessagesApi([sends(body)]) as api:
        assert ask(api).outcome == "answered"

    [call] = ledger.calls()
    assert (ended(call).usage, ended(call).cost_usd) == (None, None)


def test_an_unknown_model_has_an_unknown_cost(ask: AskOnce, ledger: Ledger) -> None:
    """
    The tokens are known, the price is not, and null is not 0.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        ask(api, model="our-own-model")

    [call] = ledger.calls()
    assert ended(call).usage is not None
    assert (ended(call).cost_usd, ended(call).price_source) == (None, "unknown")


def test_a_ceiling_below_the_rubric_is_no_judge(ask: AskOnce) -> None:
    """
    A setting that leaves no room for the turn is named, and nobody is asked.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        judgement = ask(api, max_input_tokens=100)

    assert (judgement.outcome, api.requests) == ("no_judge", [])
    assert judgement.detail.startswith("judge.max_input_tokens 100")


def test_a_huge_turn_stays_under_the_ceiling(ask: AskOnce) -> None:
    """
    2,500 tokens by the estimate, also for text with more tokens than characters.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        ask(api, turn=Turn(request="x " * 500_000, reply="እንዴት 🎉 " * 200_000))

    # No token of any vocabulary is shorter than a byte; the estimate of one token for each holds the worst case.
    assert len(api.requests[0].user_text.encode()) < 3 * 2500


def test_lone_surrogates_reach_no_wire(ask: AskOnce) -> None:
    """
    Half an emoji in the reply is replaced, not a crash.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        judgement = ask(api, turn=Turn(request="Go \udc00.", reply="Done \ud83d."))

    assert judgement.outcome == "answered"
    assert "Done" in api.requests[0].user_text


class TestCache:
    """
    Writing the rubric to the prompt cache.
    """

    @pytest.mark.parametrize(
        ("setting", "cached"), [("auto", [False, True, True]), ("on", [True] * 3), ("off", [False] * 3)]
    )
    def test_the_rubric_is_cached_by_setting(self, ask: AskOnce, setting: str, cached: list[bool]) -> None:
        """
        `auto` caches from the second call within five minutes on.
        """
        with ScriptedMessagesApi([CLEAN] * 3) as api:
            for _ in range(3):
                ask(api, cache=setting)

        assert [isinstance(received.body["system"], list) for received in api.requests] == cached
        assert len({received.system_text for received in api.requests}) == 1

    @pytest.mark.parametrize(
        ("ago", "cached"), [(timedelta(minutes=4, seconds=50), True), (timedelta(minutes=5, seconds=1), False)]
    )
    def test_five_minutes_count_from_the_last_call(
        self, ask: AskOnce, ledger: Ledger, ago: timedelta, cached: bool
    ) -> None:
        """
        An older call's cache entry is gone, so that writing would not pay.
        """
        with ScriptedMessagesApi([CLEAN] * 2) as api:
            ask(api)
            [first] = ledger.calls()
            with ledger.database.write() as connection:
                connection.execute("DELETE FROM calls")
            ledger.open_call(first.start._replace(at=first.start.at - ago))
            ask(api)

        assert isinstance(api.requests[1].body["system"], list) == cached

    def test_a_read_from_the_cache_is_priced_as_one(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        The third call in a row reads what the second wrote, and costs the least.
        """
        with ScriptedMessagesApi([CLEAN] * 3) as api:
            for _ in range(3):
                ask(api)

        usages = [ended(call).usage for call in ledger.calls()]
        assert [bool(usage and usage.cache_write_5m_tokens) for usage in usages] == [False, True, False]
        assert [bool(usage and usage.cache_read_tokens) for usage in usages] == [False, False, True]
        costs = [ended(call).cost_usd or Decimal(0) for call in ledger.calls()]
        assert costs[2] < costs[0] < costs[1]


class TestBreaker:
    """
    An endpoint that fails again and again.
    """

    def test_after_five_failures_nobody_is_asked(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        The breaker opens by what the ledger says, so that it holds for every process.
        """
        with ScriptedMessagesApi(otherwise=HTML) as api:
            outcomes = [ask(api).outcome for _ in range(6)]

        assert outcomes == ["error"] * 5 + ["breaker_open"]
        assert len(api.requests) == len(ledger.calls()) == 5

    @pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
    def test_requests_that_are_rejected_close_no_endpoint(self, ask: AskOnce, ledger: Ledger, status: int) -> None:
        """
        An endpoint that turns away one session's key, model or fields is there for another session's.
        """
        with ScriptedMessagesApi([fails(status, "no credit balance")] * 6, otherwise=CLEAN) as api:
            outcomes = [ask(api).outcome for _ in range(7)]

        assert outcomes == ["error"] * 6 + ["answered"]
        assert [ended(call).outcome for call in ledger.calls()] == ["rejected"] * 6 + ["answered"]

    def test_a_key_that_is_refused_leaves_the_judge_open_for_a_good_one(self, ledger: Ledger, turn: Turn) -> None:
        """
        Two sessions with two keys share an endpoint; the one with the bad key takes nothing from the other.
        """

        def ask_with(key: str) -> Judgement:
            settings = JudgeSettings(backend="anthropic", base_url=api.url)
            environ = {"ANTHROPIC_API_KEY": key}
            judge = connect(settings, environ, ledger, CallContext(), deadline_at=time.monotonic() + 5)
            assert not isinstance(judge, NoJudge), judge.reason
            return judge(turn)

        with ScriptedMessagesApi(otherwise=CLEAN, key="good") as api:
            outcomes = [ask_with(key).outcome for key in ["bad"] * 6 + ["good"]]

        assert outcomes == ["error"] * 6 + ["answered"]

    def test_a_field_that_is_refused_is_no_failure_of_the_endpoint(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        The first try names the field and is rejected; the second, without it, answers.
        """
        with ScriptedMessagesApi([CLEAN], refused_fields=["output_config.effort"]) as api:
            assert ask(api).outcome == "answered"

        assert [ended(call).outcome for call in ledger.calls()] == ["rejected", "answered"]

    def test_an_answer_in_between_closes_it(self, ask: AskOnce) -> None:
        """
        Five failures count only in a row.
        """
        bad = HTML
        with ScriptedMessagesApi([bad, bad, bad, bad, CLEAN, bad, bad, bad, bad, CLEAN]) as api:
            outcomes = [ask(api).outcome for _ in range(10)]

        assert "breaker_open" not in outcomes

    def test_another_endpoint_is_asked_all_the_same(self, ask: AskOnce) -> None:
        """
        The breaker belongs to an endpoint.
        """
        with ScriptedMessagesApi(otherwise=HTML) as broken, ScriptedMessagesApi([CLEAN]) as working:
            for _ in range(6):
                ask(broken)

            assert ask(working).outcome == "answered"


class TestBudget:
    """
    Money stops calls, never turns.
    """

    @staticmethod
    def spend(ledger: Ledger, at: datetime, cost_usd: str | None, session_id: str = "s1") -> None:
        call = ledger.open_call(CallStart(at, "anthropic", "m", session_id=session_id))
        cost = None if cost_usd is None else Decimal(cost_usd)
        ledger.close_call(call, CallEnd("answered", cost_usd=cost))

    @pytest.mark.parametrize("name", ["usd_per_day", "usd_per_session"])
    @pytest.mark.parametrize(
        ("cost_usd", "outcome"),
        [("0.9999999", "answered"), ("1", "budget"), ("3", "budget"), (None, "answered")],
        ids=["left", "reached", "passed", "unknown-cost"],
    )
    def test_a_spent_budget_holds_calls_back(
        self, ask: AskOnce, ledger: Ledger, name: str, cost_usd: str | None, outcome: str
    ) -> None:
        """
        The limit itself is spent; a cost that nobody knows does not count.
        """
        self.spend(ledger, datetime.now(UTC), cost_usd)
        with ScriptedMessagesApi([CLEAN]) as api:
            judgement = ask(api, **{name: "1"})

        assert judgement.outcome == outcome
        assert len(api.requests) == (outcome == "answered")
        assert (name in judgement.detail) == (outcome == "budget")

    def test_yesterday_and_other_sessions_do_not_count(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        A day is a UTC day, and a session's budget is its own.
        """
        self.spend(ledger, datetime.now(UTC) - timedelta(days=1), "5", session_id="s2")
        with ScriptedMessagesApi([CLEAN]) as api:
            assert ask(api, usd_per_day="1", usd_per_session="1").outcome == "answered"

    def test_there_is_no_budget_by_default(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        Nobody is held back who did not ask for it.
        """
        self.spend(ledger, datetime.now(UTC), "1000")
        with ScriptedMessagesApi([CLEAN]) as api:
            assert ask(api).outcome == "answered"


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


@pytest.mark.parametrize("charset", ["hex", "zlib", "bz2", "rot13", "idna", "undefined", "punycode", "utf-16"])
def test_a_declared_charset_is_not_followed(ask: AskOnce, ledger: Ledger, charset: str) -> None:
    """
    JSON is UTF-8. An error is tried again and keeps its usage, whatever codec its header names.
    """
    error = sends({"error": {"message": "overloaded"}, "usage": USAGE}, 529)
    with ScriptedMessagesApi(
        [error._replace(content_type=f"application/json; charset={charset}")], otherwise=CLEAN
    ) as api:
        judgement = ask(api)

    assert judgement.outcome == "answered"
    first, _second = ledger.calls()
    assert (ended(first).outcome, ended(first).detail) == ("error", "status 529: overloaded")
    assert ended(first).usage == Usage(700, 50)


@pytest.mark.parametrize("depth", [500, 900, 950, 965, 975, 985])
def test_a_usage_of_any_depth_has_its_counts(ask: AskOnce, ledger: Ledger, depth: int) -> None:
    """
    What stands beside the counts cannot take them away.
    """
    deep = f'{{"input_tokens": 700, "output_tokens": 50, "x": {"[" * depth}{"]" * depth}}}'
    body = f'{{"content": [{{"type": "text", "text": "{{\\"findings\\": []}}"}}], "usage": {deep}}}'
    with ScriptedMessagesApi([Sends(200, body.encode())]) as api:
        judgement = ask(api)

    [call] = ledger.calls()
    assert call.end is not None
    if depth < 900:
        assert judgement.outcome == "answered"
    if judgement.outcome == "answered":  # beyond some depth, which differs by version, Python reads no JSON at all
        assert call.end.usage == Usage(700, 50)


def test_a_refusal_without_content_is_a_refusal(ask: AskOnce) -> None:
    """
    The stop reason says it, not the text.
    """
    with ScriptedMessagesApi([sends({"content": None, "stop_reason": "refusal", "usage": USAGE})]) as api:
        assert ask(api).outcome == "refused"


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


class TestLedgerTrouble:
    """
    A ledger that cannot be written never changes the answer.
    """

    def test_no_ledger_at_all(self, ask: AskOnce) -> None:
        """
        The answer comes without lines.
        """
        with ScriptedMessagesApi([fails(500), CLEAN]) as api:
            judgement = ask(api, ledger=None)

        assert (judgement.outcome, judgement.calls) == ("answered", ())

    def test_a_closed_ledger(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        The answer comes without lines.
        """
        ledger.database.close()
        with ScriptedMessagesApi([CLAIM]) as api:
            judgement = ask(api)

        assert (judgement.outcome, judgement.calls) == ("answered", ())

    def test_a_locked_ledger_gets_its_lines_with_the_decision(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        Nothing of two tries can be written; their whole lines come with the next line that can.
        """
        with closing(sqlite3.connect(ledger.database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with ScriptedMessagesApi([fails(500), CLEAN]) as api:
                # Two tries with two lines each: four waits of a second would not fit.
                judgement = ask(api, deadline_s=2.5)
            assert ledger.calls() == []
            other.execute("ROLLBACK")

        assert (judgement.outcome, judgement.calls) == ("answered", ())
        ledger.record_decision(DecisionLine(datetime.now(UTC), "Stop", "pass_clean", id="d1", human_turn="h1"))
        assert [ended(call).outcome for call in ledger.calls()] == ["error", "answered"]
        assert [call.start.try_number for call in ledger.calls(decision_id="d1")] == [1, 2]
        assert {call.start.human_turn for call in ledger.calls()} == {"h1"}

    def test_a_try_that_could_not_be_opened_is_written_when_it_ends(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        The lock is gone by the time the answer arrives: one whole line, with usage and cost.
        """
        other = sqlite3.connect(ledger.database.path, isolation_level=None, check_same_thread=False)

        def unlock(_received: Received) -> str:
            other.execute("ROLLBACK")
            return json.dumps(CLEAN)

        with closing(other):
            other.execute("BEGIN IMMEDIATE")
            with ScriptedMessagesApi([unlock]) as api:
                judgement = ask(api)

        [call] = ledger.calls()
        assert judgement.calls == (call.id,)
        assert (call.start.decision_id, ended(call).outcome) == ("d1", "answered")
        assert ended(call).usage is not None
        assert ended(call).cost_usd is not None

    def test_a_ledger_is_left_alone_after_its_first_failure(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        Of all that a judgement reads and writes, only the first is tried on a ledger that fails.
        """
        tried: list[str] = []

        class Watched(Ledger):
            def recent_outcomes(self, endpoint: str, limit: int) -> list[RecentCall]:
                tried.append("recent_outcomes")
                return super().recent_outcomes(endpoint, limit)

            def refused_fields(self, endpoint: str, model: str, *, now: datetime) -> tuple[str, ...]:
                tried.append("refused_fields")
                return super().refused_fields(endpoint, model, now=now)

            def last_call_at(self, rubric_hash: str, model: str, endpoint: str) -> datetime | None:
                tried.append("last_call_at")
                return super().last_call_at(rubric_hash, model, endpoint)

        ledger.database.close()
        with ScriptedMessagesApi([CLEAN]) as api:
            assert ask(api, ledger=Watched(ledger.database)).outcome == "answered"

        assert tried == ["recent_outcomes"]


def test_redirects_are_not_followed(ask: AskOnce, ledger: Ledger) -> None:
    """
    The text and the key go to the configured endpoint and to nobody else.
    """
    with ScriptedMessagesApi(otherwise=CLEAN) as elsewhere:
        for status in (301, 302, 303, 307, 308):
            with ScriptedMessagesApi([redirects(f"{elsewhere.url}/v1/messages", status)]) as api:
                judgement = ask(api)

            assert judgement.outcome == "error"
            assert str(status) in judgement.detail
            assert len(api.requests) == 1
        assert elsewhere.requests == []


def test_one_open_model_judges_many_turns_at_once(ledger: Ledger, turn: Turn) -> None:
    """
    The form for a service: forty turns in flight over one client, each with a line of its own.
    """
    target = Target("anthropic", "claude-sonnet-5-5", "", "k1")
    settings = JudgeSettings(cache="on")

    async def judge_all(target: Target) -> list[Judgement]:
        model = open_model(target, settings, ledger)
        deadline_at = time.monotonic() + 20

        def judge() -> Coroutine[Any, Any, Judgement]:
            asking = Asking(load(), settings, target.backend, target.place, target.model, QuietLedger(ledger))
            return judge_turn(turn, model, asking, deadline_at=deadline_at)

        found = await asyncio.gather(*(judge() for _ in range(40)))
        await model.close()
        return found

    with ScriptedMessagesApi(otherwise=Says(json.dumps(CLAIM), delay_s=0.2)) as api:
        found = asyncio.run(judge_all(target._replace(endpoint=api.url)))

    assert [judgement.outcome for judgement in found] == ["answered"] * 40
    assert len({judgement.calls for judgement in found}) == len(ledger.calls()) == 40
