"""
The wire of `POST /v1/judge`: what is read back is what was written, and what is no request gets a status and one line.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.judge.judgement import AskOutcome, Judgement
from turngate.judge.service.limits import MAX_BODY_BYTES
from turngate.judge.service.wire import (
    BadReply,
    BadRequest,
    answer_request,
    read_reply,
    read_request,
    write_reply,
    write_request,
)
from turngate.rubric.turn import Check, Facts, ToolCall, Turn
from turngate.rubric.verdict import Finding, Verdict

JSON = "application/json"
SECRET = "sk-ant-api03-0123456789abcdefghij"

FULL = Turn(
    request="Write retry.ts.",
    reply="Done. All tests pass.",
    previous_reply="Shall I?",
    later_prompts=("and test it",),
    tool_calls=(
        ToolCall("Bash", "Bash: pytest -q -> exit 1: 2 failed", "check", failed=True),
        ToolCall("Read", "Read"),
    ),
    facts=Facts(
        edited_files=("retry.ts",),
        checks=(Check("pytest -q", passed=None, edited_after=True),),
        edited_after_last_check=True,
        uncollected_background=("b1: make",),
        wakeups=("in 5 minutes: look",),
        plan_mode=True,
        holds=("The reply says done.",),
        calls_out_of_reach=True,
    ),
    subagent=True,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
lists_of_texts = st.lists(texts, max_size=3).map(tuple)
turns = st.builds(
    Turn,
    request=texts,
    reply=texts,
    previous_reply=texts,
    later_prompts=lists_of_texts,
    tool_calls=st.lists(
        st.builds(ToolCall, texts, texts, st.sampled_from(["check", "edit", "read", "other"]), st.booleans()),
        max_size=3,
    ).map(tuple),
    facts=st.builds(
        Facts,
        edited_files=lists_of_texts,
        checks=st.lists(st.builds(Check, texts, st.none() | st.booleans(), st.booleans()), max_size=3).map(tuple),
        edited_after_last_check=st.none() | st.booleans(),
        uncollected_background=lists_of_texts,
        wakeups=lists_of_texts,
        plan_mode=st.booleans(),
        holds=lists_of_texts,
        calls_out_of_reach=st.booleans(),
    ),
    subagent=st.booleans(),
)


def body_with(**fields: Any) -> bytes:
    """
    Give a good body in which these fields are others.
    """
    return json.dumps(
        {"version": 1, "deadline_s": 5, "turn": {"request": "Do it.", "reply": "Done."}} | fields
    ).encode()


def turn_with(**fields: Any) -> bytes:
    """
    Give a good body in whose turn these fields are others.
    """
    return body_with(turn={"request": "Do it.", "reply": "Done."} | fields)


def refusal(body: bytes, content_type: str = JSON) -> tuple[int, str]:
    """
    Give status and line of a body that must not be taken.
    """
    with pytest.raises(BadRequest) as caught:
        read_request(body, content_type)
    return caught.value.status, caught.value.line


def status_of(body: bytes) -> int:
    """
    Give the status of any body.
    """
    try:
        read_request(body, JSON)
    except BadRequest as error:
        return error.status
    return 200


@given(turns)
def test_a_turn_arrives_as_it_was_sent(turn: Turn) -> None:
    """
    Every field of a turn survives the way over the wire.
    """
    request = read_request(write_request(turn, 4.5), JSON)

    assert request.asked() == turn
    assert request.deadline_s == 4.5


def test_the_wire_has_the_names_of_the_turns_own_fields() -> None:
    """
    The body is the turn as a JSON object, beside a version and the seconds that are left.
    """
    body = json.loads(write_request(FULL, 7.25))

    assert body["version"] == 1
    assert body["deadline_s"] == 7.25
    assert set(body) == {"version", "deadline_s", "turn"}
    assert tuple(body["turn"]) == Turn._fields
    assert tuple(body["turn"]["facts"]) == Facts._fields
    assert tuple(body["turn"]["tool_calls"][0]) == ToolCall._fields
    assert tuple(body["turn"]["facts"]["checks"][0]) == Check._fields
    assert read_request(write_request(FULL, 7.25), JSON).asked() == FULL


def test_what_a_turn_has_by_default_need_not_be_sent() -> None:
    """
    Request and reply are enough, so that a person can ask with curl.
    """
    assert read_request(body_with(), JSON).asked() == Turn("Do it.", "Done.")


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 10_000.0])
def test_a_deadline_out_of_range_is_sent_as_the_nearest_in_range(seconds: float) -> None:
    """
    A request with little time left is still a request.
    """
    assert read_request(write_request(FULL, seconds), JSON).deadline_s in (0.1, 600.0)


@pytest.mark.parametrize(
    ("body", "status", "key"),
    [
        pytest.param(b"", 400, "JSON", id="empty"),
        pytest.param(b'{"version": 1', 400, "JSON", id="cut-off"),
        pytest.param(b"findings: none", 400, "JSON", id="not-json"),
        pytest.param(b'{"version": 1, "deadline_s": NaN}', 400, "NaN", id="nan"),
        pytest.param(b'{"version": 1, "deadline_s": -Infinity}', 400, "Infinity", id="infinity"),
        pytest.param(b'{"version": 1, "request": "\xff"}', 400, "UTF-8", id="not-utf-8"),
        pytest.param(b'{"version": 1, "request": "\xed\xa0\x80"}', 400, "UTF-8", id="surrogate-bytes"),
        pytest.param(b'{"version": 1, "version": 1}', 400, "version", id="a-key-twice"),
        pytest.param(b'{"turn": {"reply": "a", "reply": "b"}}', 400, "reply", id="a-key-twice-inside"),
        pytest.param(b"[" * 400_000, 400, "deep", id="deep-lists"),
        pytest.param(b'{"a":' * 150_000, 400, "deep", id="deep-objects"),
        pytest.param(b'{"version": ' + b"1" * 5_000 + b"}", 400, "digits", id="a-number-of-5000-digits"),
        pytest.param(body_with(version=2), 400, "version", id="a-newer-version"),
        pytest.param(body_with(version=0), 400, "version", id="an-older-version"),
        pytest.param(body_with(version="1"), 422, "version", id="a-version-as-text"),
        pytest.param(body_with(version=True), 422, "version", id="a-version-of-true"),
        pytest.param(b'{"turn": {}}', 422, "version", id="no-version"),
        pytest.param(b"[]", 422, "object", id="a-list"),
        pytest.param(b"null", 422, "object", id="null"),
        pytest.param(b'{"version": 1, "deadline_s": 1}', 422, "turn", id="no-turn"),
        pytest.param(b'{"version": 1, "turn": {"request": "", "reply": ""}}', 422, "deadline_s", id="no-deadline"),
        pytest.param(body_with(deadline_s="5"), 422, "deadline_s", id="a-deadline-as-text"),
        pytest.param(body_with(deadline_s=True), 422, "deadline_s", id="a-deadline-of-true"),
        pytest.param(body_with(deadline_s=0), 422, "deadline_s", id="a-deadline-of-nothing"),
        pytest.param(body_with(deadline_s=601), 422, "deadline_s", id="a-deadline-without-end"),
        pytest.param(body_with(deadline_s=10**400), 422, "deadline_s", id="a-deadline-that-no-float-holds"),
        pytest.param(
            b'{"version": 1, "deadline_s": 1e999, "turn": {"request": "", "reply": ""}}', 422, "deadline_s", id="1e999"
        ),
        pytest.param(body_with(session="s1"), 422, "session", id="an-unknown-key"),
        pytest.param(body_with(**{"": 1}), 422, "empty key", id="a-key-without-a-name"),
        pytest.param(body_with(**{"\ud800": 1}), 422, "a key", id="a-key-of-a-lone-surrogate"),
        pytest.param(body_with(turn=[]), 422, "turn", id="a-turn-as-list"),
        pytest.param(turn_with(request=None), 422, "turn.request", id="null-for-a-text"),
        pytest.param(turn_with(reply=5), 422, "turn.reply", id="a-number-for-a-text"),
        pytest.param(turn_with(reply="\ud800"), 422, "turn.reply", id="a-lone-surrogate"),
        pytest.param(turn_with(thinking="..."), 422, "turn.thinking", id="an-unknown-key-of-the-turn"),
        pytest.param(turn_with(subagent=1), 422, "turn.subagent", id="a-number-for-a-truth"),
        pytest.param(turn_with(later_prompts="one"), 422, "turn.later_prompts", id="a-text-for-a-list"),
        pytest.param(turn_with(later_prompts=["a", 2]), 422, "turn.later_prompts[1]", id="a-number-in-a-list"),
        pytest.param(
            turn_with(tool_calls=[{"tool": "a", "line": "b", "kind": "write"}]),
            422,
            "turn.tool_calls[0].kind",
            id="an-unknown-kind",
        ),
        pytest.param(
            turn_with(facts={"checks": [{"command": "make", "passed": "yes"}]}),
            422,
            "turn.facts.checks[0].passed",
            id="a-text-for-a-truth",
        ),
        pytest.param(turn_with(request="x" * 900_000), 413, "turn.request", id="a-huge-text"),
        pytest.param(turn_with(later_prompts=[""] * 200_000), 413, "turn.later_prompts", id="a-huge-list"),
        pytest.param(turn_with(facts={"holds": ["x" * 3_000]}), 413, "turn.facts.holds[0]", id="a-long-line"),
        pytest.param(b" " * (MAX_BODY_BYTES + 1), 413, "1,000,000 bytes", id="a-huge-body"),
    ],
)
def test_a_bad_body_gets_a_status_and_a_line_that_names_the_key(body: bytes, status: int, key: str) -> None:
    """
    Whatever is wrong, there is one short line about it.
    """
    found, line = refusal(body)

    assert found == status
    assert key in line
    assert "\n" not in line
    assert len(line) < 200


def test_a_newer_version_is_told_which_one_is_known() -> None:
    """
    The sender can see which side is the older one.
    """
    assert refusal(body_with(version=2, turn=None)) == (400, "version: not known here; this turngate knows version 1")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(body_with(deadline_s=SECRET), id="wrong-type"),
        pytest.param(body_with(version=SECRET), id="version"),
        pytest.param(turn_with(tool_calls=[{"tool": "a", "line": "b", "kind": SECRET}]), id="wrong-word"),
        pytest.param(turn_with(facts=[SECRET]), id="wrong-shape"),
        pytest.param(turn_with(**{SECRET: 1}), id="as-a-key"),
        pytest.param(b'{"' + SECRET.encode() + b'": 1, "' + SECRET.encode() + b'": 2}', id="as-a-key-twice"),
        pytest.param(SECRET.encode(), id="as-the-whole-body"),
    ],
)
def test_a_value_is_never_repeated(body: bytes) -> None:
    """
    The line about a bad body can be logged.
    """
    _, line = refusal(body)

    assert SECRET not in line
    assert SECRET[:14] not in line


@pytest.mark.parametrize("keys", [["k"] * 60_000, [f"k{number}" for number in (*range(60_000), 59_999)]])
def test_many_keys_do_not_take_more_time_than_they_are_worth(keys: list[str]) -> None:
    """
    The search for a key that stands twice does not compare each key with each other: that would take minutes here.
    """
    body = "{" + ",".join(f'"{key}":1' for key in keys) + "}"

    assert refusal(body.encode())[0] == 400


@pytest.mark.parametrize(
    "content_type", [JSON, "Application/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"']
)
def test_json_is_taken_however_it_is_named(content_type: str) -> None:
    """
    Case and a charset of UTF-8 make no difference.
    """
    assert read_request(body_with(), content_type).deadline_s == 5


@pytest.mark.parametrize(
    "content_type",
    ["", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "application/jsonp"],
)
def test_another_content_type_is_refused(content_type: str) -> None:
    """
    A form or a text is what a web page can send without asking.
    """
    assert refusal(body_with(), content_type)[0] == 415


@given(st.binary(max_size=300) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_garbage_gets_a_status(body: bytes) -> None:
    """
    No bytes make the reader break.
    """
    assert status_of(body) in (400, 422)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(["version", "deadline_s", "turn", "request", "tool_calls", "facts", "checks", "extra"]), json_values
)
def test_any_value_in_any_place_is_taken_or_refused(place: str, value: object) -> None:
    """
    A value of the wrong kind gets 400 or 422, or it is one that is allowed there.
    """
    facts = {"checks": value} if place == "checks" else {}
    turn = {"request": "a", "reply": "b", "facts": facts} | (
        {place: value} if place in ("request", "tool_calls", "facts") else {}
    )
    body = {"version": 1, "deadline_s": 1, "turn": turn} | (
        {place: value} if place in ("version", "deadline_s", "turn", "extra") else {}
    )
    assert status_of(json.dumps(body).encode()) in (200, 400, 422)


reply_texts = st.text(st.characters(exclude_categories=["C"]), max_size=40)
verdicts = st.builds(
    Verdict,
    st.lists(st.builds(Finding, st.sampled_from(["claim", "defer"]), reply_texts, reply_texts), max_size=4).map(tuple),
    st.integers(0, 5),
)
judgements = st.builds(
    lambda outcome, verdict, detail, calls: Judgement(
        outcome, verdict if outcome == "answered" else None, detail, "turn_end@1", "0123456789ab", calls
    ),
    st.sampled_from(get_args(AskOutcome)),
    verdicts,
    reply_texts,
    st.lists(st.from_regex(r"\A[0-9a-z]{15}\Z"), max_size=3).map(tuple),
)


@given(judgements)
def test_a_judgement_arrives_as_it_was_sent(judgement: Judgement) -> None:
    """
    Every outcome goes over the wire with its detail, verdict, rubric and calls.
    """
    assert read_reply(write_reply(judgement)) == judgement


def test_what_a_judge_wrote_too_long_is_cut_for_the_way() -> None:
    """
    The server never sends what the other side would not take.
    """
    long, broken = "x" * 300_000, "a\ud800b\x00"
    sent = Judgement("answered", Verdict((Finding("claim", long, broken),) * 3, 10**9), long, calls=("id1",) * 1_000)

    found = read_reply(write_reply(sent))

    assert found.verdict is not None
    assert [finding.reason for finding in found.verdict.findings] == ["ab"] * 3
    assert len(found.verdict.findings[0].quote) == 100_000
    assert len(found.detail) == 1_000
    assert len(found.calls) == 100


GOOD_REPLY = {
    "version": 1,
    "outcome": "answered",
    "verdict": {"findings": [], "dropped": 0},
    "detail": "",
    "rubric": "turn_end@1",
    "rubric_hash": "0123456789ab",
    "calls": [],
}


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        pytest.param({"version": 2}, "version", id="a-newer-version"),
        pytest.param({"outcome": "clean"}, "outcome", id="an-unknown-outcome"),
        pytest.param({"verdict": None}, "answered", id="answered-without-a-verdict"),
        pytest.param({"outcome": "timeout"}, "answered", id="a-verdict-without-an-answer"),
        pytest.param({"verdict": {"findings": [], "dropped": -1}}, "verdict.dropped", id="a-negative-count"),
        pytest.param({"verdict": {"findings": {}, "dropped": 0}}, "verdict.findings", id="findings-that-are-no-list"),
        pytest.param(
            {"verdict": {"findings": [{"fault": "a b", "quote": "", "reason": ""}], "dropped": 0}},
            "verdict.findings[0].fault",
            id="a-fault-that-is-no-name",
        ),
        pytest.param({"rubric": "<script>"}, "rubric", id="a-rubric-that-is-no-label"),
        pytest.param({"calls": ["../../etc"]}, "calls[0]", id="an-id-that-is-none"),
        pytest.param({"calls": ["c"] * 101}, "calls", id="too-many-ids"),
        pytest.param({"cost_usd": "0.1"}, "cost_usd", id="an-unknown-key"),
    ],
)
def test_an_answer_that_is_no_judgement_is_told_from_one(fields: dict[str, Any], key: str) -> None:
    """
    What a service says is read as strictly as what it is asked.
    """
    assert read_reply(json.dumps(GOOD_REPLY).encode()).outcome == "answered"

    with pytest.raises(BadReply, match=key.replace("[", r"\[")):
        read_reply(json.dumps(GOOD_REPLY | fields).encode())


@given(st.binary(max_size=200))
def test_a_garbled_answer_is_no_judgement(body: bytes) -> None:
    """
    No bytes make the reader of answers break.
    """
    with pytest.raises(BadReply):
        read_reply(body)


def test_the_route_asks_with_the_turn_and_the_time_that_is_left() -> None:
    """
    A good request is judged, and its judgement is the body of the answer.
    """
    asked: list[tuple[Turn, float]] = []

    async def ask(turn: Turn, deadline_s: float) -> Judgement:
        asked.append((turn, deadline_s))
        return Judgement("budget", detail="spent")

    status, body = asyncio.run(_answered(ask, write_request(FULL, 3.5)))

    assert asked == [(FULL, 3.5)]
    assert status == 200
    assert json.loads(body) == {
        "version": 1,
        "outcome": "budget",
        "verdict": None,
        "detail": "spent",
        "rubric": "",
        "rubric_hash": "",
        "calls": [],
    }


def test_the_route_answers_a_bad_request_without_asking() -> None:
    """
    Nobody is asked, and the line stands in a JSON object of its own.
    """

    async def ask(turn: Turn, deadline_s: float) -> Judgement:
        raise AssertionError

    status, body = asyncio.run(_answered(ask, body_with(session="s1")))

    assert status == 422
    assert json.loads(body) == {"error": "session: unknown key"}


async def _answered(ask: Any, body: bytes) -> tuple[int, bytes]:
    return await answer_request(body, JSON, ask)
