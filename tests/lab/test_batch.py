"""
A run through the Message Batches API: each question is answered at half the price, and none is paid for twice.
"""

from __future__ import annotations

import json
import os
import re
import signal
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from turngate.judge.scripted_api import (
    HTML,
    REFUSAL,
    Hangs,
    Raw,
    Received,
    Resets,
    ScriptedMessagesApi,
    Sends,
    fails,
)
from turngate.lab.batches.batch import run_batch
from turngate.lab.batches.collecting import MOST_UNKNOWN
from turngate.lab.batches.submissions import BATCHES
from turngate.lab.errors import LabError
from turngate.lab.runs import ANSWERS, read_run

from .batched import CLEAN, KEY, Stage, asks_for_state, creates, custom_ids, fetches_results


def echo(received: Received) -> str:
    """
    Answer with a verdict that tells which question it was.
    """
    number = re.findall(r"Do task (\d+)", received.user_text)[-1]
    return json.dumps({"findings": [], "task": number})


def test_each_question_gets_its_own_answer(tmp_path: Path) -> None:
    """
    Results come in an order of their own, and every repeat is a question of its own.
    """
    stage = Stage(tmp_path, cases=5, repeats=2)
    with ScriptedMessagesApi(otherwise=echo, key=KEY) as api:
        api.batches.polls_until_ended = 3
        kept = stage.go(api)

    assert kept == 10
    assert {key: json.loads(text)["task"] for key, text in stage.texts().items()} == {
        (f"c{index}", repeat): str(index) for index in range(5) for repeat in (0, 1)
    }
    assert len(api.requests) == 10
    assert {answer.via for answer in stage.run().answers.values()} == {"batch"}
    assert {answer.latency_ms for answer in stage.run().answers.values()} == {None}


def test_what_is_sent_is_the_question_of_the_normal_path(tmp_path: Path) -> None:
    """
    Same words, same schema, same fields; the id begins with the question's hash and repeat.
    """
    stage = Stage(tmp_path, cases=2, repeats=2, effort="low", max_tokens=300)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        asked = stage.todo()
        stage.go(api)

    created = next(received for received in api.batches.requests if creates(received))
    for one, item in zip(asked, created.body["requests"], strict=True):
        assert item["custom_id"].startswith(f"{one.hash}-r{one.repeat}-")
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", item["custom_id"])
        assert item["params"] == {
            "model": "claude-sonnet-5-5",
            "max_tokens": 300,
            "system": one.request.system,
            "messages": [{"role": "user", "content": one.request.user}],
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": one.request.schema}},
            "thinking": {"type": "between_tools"},
        }


def test_two_cases_of_one_turn_are_two_questions(tmp_path: Path) -> None:
    """
    Their hash is one, and each is answered for itself.
    """
    stage = Stage(tmp_path, cases=1)
    stage.cases = [stage.cases[0], stage.cases[0].model_copy(update={"id": "twin"})]
    with ScriptedMessagesApi(["first", "second"]) as api:
        assert stage.go(api) == 2

    assert sorted(stage.texts().values()) == ["first", "second"]


def test_an_answer_costs_half_and_says_so_in_the_ledger(tmp_path: Path) -> None:
    """
    2 and 10 USD per million tokens, halved; each question has one line.
    """
    stage = Stage(tmp_path, cases=2)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        stage.go(api)

    answers = list(stage.run().answers.values())
    for answer in answers:
        assert answer.raw_usage is not None
        tokens_in, tokens_out = answer.raw_usage["input_tokens"], answer.raw_usage["output_tokens"]
        assert answer.cost_usd == (tokens_in * Decimal(2) + tokens_out * Decimal(10)) / 1_000_000 / 2
        assert answer.price_source

    calls = {call.id: call for call in stage.calls()}
    assert len(calls) == 2
    for answer in answers:
        start, end = calls[answer.calls[0]].start, calls[answer.calls[0]].end
        assert end is not None
        assert (end.outcome, end.cost_usd, end.latency_ms) == ("answered", answer.cost_usd, None)
        assert (start.event, start.project, start.backend) == ("lab", "lab", "anthropic_batch")
        assert start.endpoint == api.url.removeprefix("http://")
        assert end.request_id.startswith("msg_")


@pytest.mark.parametrize(
    ("answer", "outcome", "ledger", "cost"),
    [
        (REFUSAL, "refused", "refused", True),
        ("no verdict at all", "answered", "unreadable", True),
        (fails(400, "prompt: no", "invalid_request_error"), "error", "rejected", False),
        (fails(500), "error", "error", False),
        (Hangs(), "error", "error", False),
    ],
    ids=["refused", "unreadable", "rejected", "failed", "expired"],
)
def test_what_is_no_verdict_is_kept_apart(
    tmp_path: Path, answer: Any, outcome: str, ledger: str, *, cost: bool
) -> None:
    """
    What failed was not billed; what was said was.
    """
    stage = Stage(tmp_path, cases=1)
    with ScriptedMessagesApi([answer]) as api:
        assert stage.go(api) == (outcome != "error")

    kept = stage.run().answers["c0", 0]
    assert kept.outcome == outcome
    assert kept.cost_usd is not None
    assert (kept.cost_usd > 0) == cost
    (call,) = stage.calls()
    assert call.end is not None
    assert call.end.outcome == ledger


def test_what_failed_is_asked_again_by_the_next_go_alone(tmp_path: Path) -> None:
    """
    The other answers are not paid for twice.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi([CLEAN, fails(500), CLEAN]) as api:
        assert stage.go(api) == 2
        assert len(stage.failures()) == 1
        api.add(CLEAN)
        assert stage.go(api) == 1
        assert stage.go(api) == 0

    assert len(stage.texts()) == 3
    assert len(api.requests) == 4
    assert len(api.batches.batches) == 2


def test_the_next_go_leaves_out_a_field_that_was_refused(tmp_path: Path) -> None:
    """
    As on the normal path, only that a batch has no second try.
    """
    stage = Stage(tmp_path, cases=2)
    with ScriptedMessagesApi(otherwise=CLEAN, refused_fields=["output_config.effort"]) as api:
        assert stage.go(api) == 0
        assert "asks without" in stage.said[-1]
        assert stage.go(api) == 2


@pytest.mark.parametrize(
    ("limits", "batches"), [({"most_items": 2}, 3), ({"most_bytes": 1}, 5), ({}, 1)], ids=["items", "bytes", "all"]
)
def test_a_submission_is_split_where_it_is_too_large(tmp_path: Path, limits: dict[str, Any], batches: int) -> None:
    """
    By items and by bytes; a question that is too large by itself goes alone.
    """
    stage = Stage(tmp_path, cases=5)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        assert stage.go(api, **limits) == 5

    assert len(api.batches.batches) == batches


def test_a_batch_is_collected_by_a_later_go(tmp_path: Path) -> None:
    """
    Ctrl-C while it is waited for ends the waiting, not the batch.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        api.batches.polls_until_ended = 10**9

        def interrupt(received: Received) -> Raw | None:
            if asks_for_state(received):
                os.kill(os.getpid(), signal.SIGINT)
            return None

        api.batches.after = interrupt
        with pytest.raises(KeyboardInterrupt):
            stage.go(api)
        assert stage.said[-1] == "batch msgbatch_scripted_0000 goes on; run again to collect it"

        api.batches.after = lambda _: None
        api.batches.polls_until_ended = 1
        assert stage.go(api) == 3

    assert len(api.batches.batches) == 1
    assert len(api.requests) == 3


def test_ctrl_c_while_a_batch_is_submitted_is_told(tmp_path: Path) -> None:
    """
    It may have arrived, and is looked for by the next go.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:

        def interrupt(received: Received) -> Raw | None:
            if not creates(received):
                return None
            os.kill(os.getpid(), signal.SIGINT)
            return Hangs()

        api.batches.after = interrupt
        with pytest.raises(KeyboardInterrupt):
            stage.go(api)
        assert stage.said == ["3 questions may have been submitted; run again to look for them"]
        api.batches.after = lambda _: None
        assert stage.go(api) == 3

    assert len(api.batches.batches) == 1


class Crash(BaseException):
    """
    The end of the process, where nothing more is written.
    """


def crash_when_said(stage: Stage, words: str) -> Any:
    def say(text: str) -> None:
        if words in text:
            raise Crash

    def go(api: ScriptedMessagesApi) -> None:
        with pytest.raises(Crash):
            run_batch(
                stage.run(),
                stage.todo(),
                stage.target(api.url),
                stage.settings,
                limit_usd=None,
                prices_folder=None,
                say=say,
                poll_s=0.0,
            )

    return go


def test_more_questions_join_a_run_whose_batch_goes_on(tmp_path: Path) -> None:
    """
    Only what no batch holds is submitted.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        crash_when_said(stage, "submitted")(api)
        stage.repeats = 2
        assert stage.go(api) == 6

    assert [len(batch.items) for batch in api.batches.batches] == [3, 3]
    assert len(api.requests) == 6


def test_a_crash_before_the_end_was_written_pays_and_keeps_nothing_twice(tmp_path: Path) -> None:
    """
    Everything was kept, a failure too, and only the word that it was is missing.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi([CLEAN, fails(500), CLEAN]) as api:
        stage.go(api)
        lines = (stage.folder / BATCHES).read_bytes().splitlines(keepends=True)
        assert b'"collected"' in lines[-1]
        (stage.folder / BATCHES).write_bytes(b"".join(lines[:-1]))
        assert stage.go(api) == 0

    assert len(api.batches.batches) == 1
    assert len((stage.folder / ANSWERS).read_bytes().splitlines()) == 3


def test_a_line_that_a_crash_cut_off_is_no_line(tmp_path: Path) -> None:
    """
    The batch's id is half written: it is looked for.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        crash_when_said(stage, "submitted")(api)
        file = stage.folder / BATCHES
        file.write_bytes(file.read_bytes()[:-9])
        assert stage.go(api) == 3

    assert len(api.batches.batches) == 1
    assert any("looking for its batch" in text for text in stage.said)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    """
    File, line and key.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        stage.go(api)
        with (stage.folder / BATCHES).open("a") as file:
            file.write('{"did": "end", "key": "a"}\n')
        with pytest.raises(LabError, match=rf"{BATCHES}: line 4: line\.end\.how: missing"):
            stage.go(api)


def lost_create(stage: Stage, api: ScriptedMessagesApi, answer: Raw) -> None:
    """
    Submit, so that the batch is created and nobody hears of it.
    """
    api.batches.after = lambda received: answer if creates(received) else None
    with pytest.raises(LabError, match="may have been created all the same: run again"):
        stage.go(api)
    api.batches.after = lambda _: None


@pytest.mark.parametrize("answer", [Resets(), fails(502), fails(408), HTML], ids=["reset", "502", "408", "page"])
def test_a_batch_whose_id_never_arrived_is_found(tmp_path: Path, answer: Raw) -> None:
    """
    It is known by its questions' ids; nothing is submitted anew.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        lost_create(stage, api, answer)
        assert stage.go(api) == 3

    assert len(api.batches.batches) == 1
    assert len(api.requests) == 3


def test_a_strangers_batch_is_never_kept(tmp_path: Path) -> None:
    """
    Another run of the same cases has the same questions, as many, at the same time; its answers are its own.
    """
    mine, other = Stage(tmp_path / "mine"), Stage(tmp_path / "other")
    with ScriptedMessagesApi(otherwise="mine") as api:
        lost_create(mine, api, Resets())
        crash_when_said(other, "submitted")(api)
        assert mine.go(api) == 3
        assert other.go(api) == 3

    assert len(api.batches.batches) == 2
    first, second = (custom_ids(received) for received in api.batches.requests if creates(received))
    assert not set(first) & set(second)
    assert any(fetches_results(received) for received in api.batches.requests)


@pytest.mark.parametrize(
    "first", [b"", b'{"custom_id": "whose", "result": {"type": "expired"}}\n'], ids=["no", "a stray"]
)
def test_a_batch_that_may_be_ours_and_cannot_be_read_is_not_paid_for_again(tmp_path: Path, first: bytes) -> None:
    """
    It has as many questions, and no line tells whose.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        lost_create(stage, api, Resets())
        api.batches.after = changed_results(api, lambda lines: first + b"\n".join(line[:40] for line in lines))
        with pytest.raises(LabError, match="may hold this run's answers, and no line of it can be read"):
            stage.go(api)
        api.batches.after = lambda _: None
        assert stage.go(api) == 3

    assert len(api.batches.batches) == 1


def test_a_submission_that_never_arrived_is_made_again(tmp_path: Path) -> None:
    """
    Nothing that is listed can be it, and it has had its time; a stranger's batch of another size is not even looked into.
    """
    stage, other = Stage(tmp_path / "mine"), Stage(tmp_path / "other", cases=4)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        api.batches.before = lambda received: Resets() if creates(received) else None
        with pytest.raises(LabError, match="run again to look for it"):
            stage.go(api)
        api.batches.before = lambda _: None
        crash_when_said(other, "submitted")(api)
        assert stage.go(api) == 3

    assert [len(batch.items) for batch in api.batches.batches] == [4, 3]
    assert [call.end.cost_usd for call in stage.calls() if call.end][:3] == [Decimal(0)] * 3


def test_a_submission_that_may_still_come_to_life_is_waited_for(tmp_path: Path) -> None:
    """
    The list does not show it at first.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        lost_create(stage, api, Resets())
        empty = [Sends(body=b'{"data": [], "has_more": false}')] * 2
        api.batches.before = lambda received: empty.pop() if "limit=" in received.path and empty else None
        assert stage.go(api, settling_s=3600.0) == 3

    assert empty == []
    assert len(api.batches.batches) == 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (fails(404, "no such path"), "no such path"),
        (fails(403), "status 403"),
        (Sends(body=b'{"data": 7}'), "without a list of batches"),
    ],
    ids=["404", "403", "no list"],
)
def test_nothing_is_submitted_while_a_batch_may_live_unseen(tmp_path: Path, answer: Raw, why: str) -> None:
    """
    One line says why, and how somebody gets out who knows better.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        lost_create(stage, api, Resets())
        api.batches.before = lambda received: answer if "limit=" in received.path else None
        with pytest.raises(LabError, match=f"cannot be told .*{why}.*remove .*{BATCHES} to give it up") as caught:
            stage.go(api)
        assert "\n" not in str(caught.value)
        assert len(api.batches.batches) == 1

        (stage.folder / BATCHES).unlink()
        assert stage.go(api) == 3
    assert len(api.batches.batches) == 2


def test_a_lost_submission_is_not_looked_for_with_another_key(tmp_path: Path) -> None:
    """
    Another workspace would not list it, and it would be paid for twice.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        lost_create(stage, api, Resets())
        with pytest.raises(LabError, match="sent with another API key"):
            stage.go(api, key="sk-ant-another-one-000000000")
        assert stage.go(api) == 3
    assert KEY not in (stage.folder / BATCHES).read_text()


def test_a_batch_is_collected_where_it_was_submitted(tmp_path: Path) -> None:
    """
    Another endpoint knows nothing of it.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api, ScriptedMessagesApi(otherwise=CLEAN) as other:
        crash_when_said(stage, "submitted")(api)
        with pytest.raises(LabError, match=f"went to {api.url.removeprefix('http://')}: ask there"):
            stage.go(other)
        assert other.batches.requests == []
        assert stage.go(api) == 3


def test_one_lost_batch_takes_no_other_with_it(tmp_path: Path) -> None:
    """
    The others are collected, nothing new is submitted, and the loss is told.
    """
    stage = Stage(tmp_path, cases=4)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        crash_when_said(stage, "answers kept")(api)
        stage.repeats = 3
        api.batches.after = lambda received: Resets() if creates(received) else None
        with pytest.raises(LabError, match="run again to look for it"):
            stage.go(api, most_items=4)
        api.batches.after = lambda _: None
        api.batches.before = lambda received: fails(403) if "limit=" in received.path else None
        with pytest.raises(LabError, match="cannot be told"):
            stage.go(api)

    assert len(stage.texts()) == 4
    assert len(api.batches.batches) == 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (fails(401, f"bad key {KEY}", "authentication_error"), "no batch was created: status 401: bad key"),
        (fails(404), "no batch was created: status 404"),
        (fails(413), "no batch was created: status 413"),
        (fails(429), "no batch was created: status 429"),
    ],
    ids=["401", "404", "413", "429"],
)
def test_a_submission_that_is_turned_away_is_one_line_and_costs_nothing(
    tmp_path: Path, answer: Raw, message: str
) -> None:
    """
    And the next go submits it anew, without any search.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        api.batches.before = lambda _: answer
        with pytest.raises(LabError, match=message) as caught:
            stage.go(api)
        assert KEY not in str(caught.value)
        assert [call.end.cost_usd for call in stage.calls() if call.end] == [Decimal(0)] * 3

        api.batches.before = lambda _: None
        assert stage.go(api) == 3
    assert not any("limit=" in received.path for received in api.batches.requests)


def test_an_endpoint_that_is_away_is_one_line(tmp_path: Path) -> None:
    """
    Nothing can have arrived, so nothing is looked for.
    """
    stage = Stage(tmp_path)
    with pytest.raises(LabError, match=r"127\.0\.0\.1:9: no batch was created: no connection"):
        stage.go("http://127.0.0.1:9")
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        assert stage.go(api) == 3


def test_an_endpoint_that_is_away_for_a_moment_is_borne(tmp_path: Path) -> None:
    """
    A batch is waited for over hours.
    """
    stage = Stage(tmp_path)
    blips: list[Raw] = [fails(529), Resets(), fails(429), fails(500)]
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        api.batches.before = lambda received: blips.pop() if asks_for_state(received) and blips else None
        assert stage.go(api) == 3


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (fails(500), "status 500.*it goes on: run again to collect"),
        (fails(401, f"bad key {KEY}"), "status 401.*it goes on"),
        (fails(404), "is not known there: ask with the API key"),
    ],
    ids=["500", "401", "404"],
)
def test_a_batch_that_cannot_be_asked_about_goes_on(tmp_path: Path, answer: Raw, message: str) -> None:
    """
    It is collected once it can be.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        api.batches.before = lambda received: answer if asks_for_state(received) else None
        with pytest.raises(LabError, match=message) as caught:
            stage.go(api)
        assert KEY not in str(caught.value)
        api.batches.before = lambda _: None
        assert stage.go(api) == 3
    assert len(api.batches.batches) == 1


def shows(api: ScriptedMessagesApi, states: list[str]) -> Any:
    """
    Show these states, one for each time that somebody asks, instead of the batch's own.
    """

    def before(received: Received) -> Raw | None:
        if not asks_for_state(received) or not states:
            return None
        shown = {**api.batches.batches[-1].shown(api.url), "processing_status": states.pop(0)}
        return Sends(body=json.dumps(shown).encode())

    return before


def test_each_change_of_a_batchs_state_is_said_once(tmp_path: Path) -> None:
    """
    So is an endpoint that is away for a moment; the first state is the usual one.
    """
    stage = Stage(tmp_path)
    states = ["in_progress", "in_progress", *["validating"] * 3, "canceling", "in_progress"]
    failing: list[Raw] = [fails(500, "no")] * 3
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        show = shows(api, states)
        api.batches.before = lambda got: (
            show(got) or (failing.pop() if asks_for_state(got) and failing and not states else None)
        )
        assert stage.go(api) == 3

    told = [text.partition(f"{api.batches.batches[0].id}: ")[2] for text in stage.said[1:-1]]
    assert told == ["validating", "canceling", "in_progress", "status 500: no; asking again"]


def test_a_state_that_is_not_known_is_not_waited_for_without_end(tmp_path: Path) -> None:
    """
    The batch's id is kept: the next go collects it, and pays for nothing anew.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        api.batches.before = shows(api, [f"paused {KEY}"] * 1000)
        with pytest.raises(LabError, match=r"batch msgbatch\w+ is in a state that is not known.*run again to collect"):
            stage.go(api)
        assert sum(map(asks_for_state, api.batches.requests)) == MOST_UNKNOWN
        assert KEY not in "".join(stage.said)

        api.batches.before = lambda _: None
        assert stage.go(api) == 3

    assert len(api.batches.batches) == 1
    assert len(stage.texts()) == 3


def test_results_that_are_not_there_yet_are_said_to_be_missing(tmp_path: Path) -> None:
    """
    Once, however often they are fetched.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        api.batches.before = lambda received: fails(404, "none") if fetches_results(received) else None
        with pytest.raises(LabError, match="3 results could not be fetched: status 404: none; run again"):
            stage.go(api)

    place, batch = api.url.removeprefix("http://"), api.batches.batches[0].id
    assert stage.said[1:] == [f"{place}: batch {batch}: 3 results are missing: status 404: none"]


def changed_results(api: ScriptedMessagesApi, change: Any) -> Any:
    def after(received: Received) -> Raw | None:
        return Sends(body=change(list(api.batches.batches[-1].lines))) if fetches_results(received) else None

    return after


def test_damaged_and_strange_lines_are_counted_and_said(tmp_path: Path) -> None:
    """
    They take no answer with them; an answer that stands there twice is kept once.
    """
    stage = Stage(tmp_path)
    stray = b'{"custom_id": "whose", "result": {"type": "succeeded", "message": {"content": []}}}'
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        api.batches.after = changed_results(
            api, lambda lines: b"\n".join([b"{torn", stray, lines[0], lines[0], b"\xff" * 2_000_000, *lines[1:]])
        )
        assert stage.go(api) == 3

    assert stage.said[-1].endswith(
        "3 answers kept of 3 questions, 1 results for questions that were not asked, 2 lines that cannot be read"
    )
    assert len((stage.folder / ANSWERS).read_bytes().splitlines()) == 3


def test_a_missing_result_is_an_error_of_unknown_cost(tmp_path: Path) -> None:
    """
    It may have been billed; the results are read three times before that is believed.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        api.batches.after = changed_results(api, lambda lines: b"\n".join(lines[1:]))
        assert stage.go(api) == 2
        assert sum(map(fetches_results, api.batches.requests)) == 3

        assert len(stage.failures()) == 1
        assert [call.end.cost_usd for call in stage.calls() if call.end and call.end.outcome == "error"] == [None]
        api.batches.after = lambda _: None
        assert stage.go(api) == 1


def test_results_that_break_off_are_fetched_again(tmp_path: Path) -> None:
    """
    At once, and by the next go; what came is kept.
    """
    stage = Stage(tmp_path)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:

        def torn(received: Received) -> Raw | None:
            from turngate.judge.scripted_api import Writes

            head = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"
            return Writes(head + api.batches.batches[0].lines[0] + b"\n") if fetches_results(received) else None

        api.batches.after = torn
        with pytest.raises(LabError, match="2 results could not be fetched: no connection.*run again"):
            stage.go(api)
        assert len(stage.texts()) == 1
        api.batches.after = lambda _: None
        assert stage.go(api) == 2

    assert len(api.batches.batches) == 1
    assert len((stage.folder / ANSWERS).read_bytes().splitlines()) == 3


def test_values_that_no_file_takes_do_not_stop_the_collecting(tmp_path: Path) -> None:
    """
    Lone surrogates and numbers that are none, from an endpoint that sends anything.
    """
    stage = Stage(tmp_path, cases=1)

    def strange(lines: list[bytes]) -> bytes:
        found = json.loads(lines[0])
        found["result"]["message"]["model"] = "m\ud800"
        found["result"]["message"]["usage"]["x\udfff"] = ["\ud800", float("nan"), 10**300]
        return json.dumps(found).encode()

    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        api.batches.after = changed_results(api, strange)
        assert stage.go(api) == 1

    assert read_run(stage.folder).answers["c0", 0].text == CLEAN


def test_a_limit_takes_as_many_questions_as_fit_at_their_worst(tmp_path: Path) -> None:
    """
    At 2 and 10 USD per million tokens, cache writes at 2.50, a tenth more in the US, all halved.
    """
    stage = Stage(tmp_path, cases=4)
    tokens = max(one.request.estimated_tokens for one in stage.todo())
    worst = (tokens * Decimal("2.50") + 1024 * Decimal(10)) / 1_000_000 * Decimal("1.1") / 2
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        with pytest.raises(LabError, match="4 of 4 questions are not submitted: they could pass the limit"):
            stage.go(api, limit_usd=f"{worst / 2:f}")
        assert api.batches.requests == []

        assert stage.go(api, limit_usd=f"{worst * Decimal('2.5'):f}") == 2
        assert any("2 of 4 questions are not submitted" in text for text in stage.said)
        spent = sum((call.end.cost_usd for call in stage.calls() if call.end and call.end.cost_usd), Decimal(0))
        assert stage.go(api, limit_usd=f"{spent + worst * Decimal('1.5'):f}") == 1


def test_a_model_without_a_price_has_no_limit_to_keep(tmp_path: Path) -> None:
    """
    One line says so, before anything is sent.
    """
    stage = Stage(tmp_path, model="model-of-nobody")
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        with pytest.raises(LabError, match="price of model 'model-of-nobody' is not known"):
            stage.go(api, limit_usd="1")
        assert api.batches.requests == []
        assert stage.go(api) == 3
    assert {answer.cost_usd for answer in stage.run().answers.values()} == {None}


def test_only_an_endpoint_has_batches(tmp_path: Path) -> None:
    """
    A script has none.
    """
    stage = Stage(tmp_path)
    target = stage.target("somewhere")._replace(backend="scripted")
    with pytest.raises(LabError, match="judge.backend is scripted"):
        run_batch(stage.run(), [], target, stage.settings, limit_usd=None, prices_folder=None, say=stage.said.append)
