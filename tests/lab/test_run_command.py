"""
`turngate lab run`, with the real SDK against a real server on loopback.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from turngate.judge.scripted_api import REFUSAL, Hangs, Received, Says, ScriptedMessagesApi, Sends, fails
from turngate.lab.asking.run_lock import alone
from turngate.lab.commands import export_requests, run
from turngate.lab.errors import LabError
from turngate.lab.progress import Progress
from turngate.lab.runs import ANSWERS, read_run

from .trials import CLEAN, KEY, command, ledger_calls, write_turns


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """
    A file of six cases.
    """
    return write_turns(tmp_path / "cases.jsonl", 6)


def asked(api: ScriptedMessagesApi, cases: Path, *options: object, **variables: str) -> int:
    out = cases.with_name("run")
    return command(run.add, "run", "--cases", cases, "--base-url", api.url, "--out", out, *options, **variables)


def outcomes(cases: Path) -> list[str]:
    return [answer.outcome for _, answer in sorted(read_run(cases.with_name("run")).answers.items())]


def spent_usd(cases: Path) -> Decimal:
    ends = [call.end for call in ledger_calls(cases.with_name("run"))]
    return sum((end.cost_usd for end in ends if end and end.cost_usd is not None), Decimal(0))


def takes(tokens: int, model: str = "") -> Callable[[Received], Sends]:
    """
    Answer, and count so many tokens for each four characters of a request.
    """

    def answer(received: Received) -> Sends:
        read = tokens * len(received.system_text + received.user_text) // 4
        body = {
            "type": "message",
            "role": "assistant",
            "model": model or received.body["model"],
            "content": [{"type": "text", "text": CLEAN}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": read, "output_tokens": 10},
        }
        return Sends(200, json.dumps(body).encode())

    return answer


def test_every_question_is_asked_once_and_its_answer_kept(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Each repeat is a request of its own; usage, cost, time and the call in the ledger stand beside the text.
    """
    with ScriptedMessagesApi(otherwise=CLEAN, key=KEY) as api:
        assert asked(api, cases, "--repeats", 2) == 0

    assert len(api.requests) == 12
    found = read_run(cases.with_name("run"))
    assert all(reading.verdict is not None for reading in found.readings())
    calls = {call.id: call for call in ledger_calls(cases.with_name("run"))}
    for answer in found.answers.values():
        [call] = answer.calls
        end = calls[call].end
        assert end is not None
        assert (answer.cost_usd, answer.raw_usage) == (end.cost_usd, end.raw_usage)
        assert answer.cost_usd is not None
        assert answer.latency_ms is not None
        assert (answer.text, answer.via, answer.model_answered) == (CLEAN, "run", "claude-sonnet-5-5")
    assert {(call.start.event, call.start.project) for call in calls.values()} == {("lab", "lab")}
    said = capsys.readouterr()
    assert "answered: 12 of 12, of these unreadable: 0\n" in said.out
    assert f"next: turngate lab score {cases.with_name('run')}\n" in said.out
    assert "12/12" in said.err


def test_what_is_sent_is_what_is_exported(cases: Path) -> None:
    """
    Word for word: whoever answers an exported request answers what the model would have been asked.
    """
    requests = cases.with_name("requests.jsonl")
    model = ("--model", "claude-sonnet-5-5", "--effort", "low")
    assert command(export_requests.add, "export-requests", "--cases", cases, "--out", requests, *model) == 0
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        assert asked(api, cases, *model) == 0

    lines = [json.loads(line) for line in requests.read_text().splitlines()]

    def words(received: Received) -> tuple[Any, ...]:
        return received.system_text, received.user_text, received.body["max_tokens"]

    assert sorted(map(words, api.requests)) == sorted(
        (line["system"], line["user"], line["max_tokens"]) for line in lines
    )
    assert {json.dumps(received.body["output_config"], sort_keys=True) for received in api.requests} == {
        json.dumps({"effort": "low", "format": {"type": "json_schema", "schema": lines[0]["schema"]}}, sort_keys=True)
    }
    assert {answer.hash for answer in read_run(cases.with_name("run")).answers.values()} == {
        line["id"].rpartition("-r")[0] for line in lines
    }


def test_what_was_answered_is_not_asked_again(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The second go asks nobody; more repeats ask for the new ones alone.
    """
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        assert asked(api, cases) == 0
        assert asked(api, cases) == 0
        assert len(api.requests) == 6
        assert asked(api, cases, "--repeats", 3) == 0
        assert len(api.requests) == 18

    assert "6 of 18 are answered already" in capsys.readouterr().err


def test_failures_are_asked_again(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    An error is kept apart from the verdicts, and the next go asks for it alone.
    """
    with ScriptedMessagesApi([CLEAN, fails(404, "no such model"), CLEAN], otherwise=CLEAN) as api:
        assert asked(api, cases, "--concurrency", 1) == 2
        said = capsys.readouterr()
        assert "answered: 5 of 6" in said.out
        assert "refused: 0, timeouts: 0, errors: 1\n  most often: status 404: no such model\n" in said.out
        assert "5 of 6 answered; run again to go on" in said.err
        assert outcomes(cases).count("error") == 1
        assert asked(api, cases) == 0

    assert len(api.requests) == 7
    assert outcomes(cases) == ["answered"] * 6


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(fails(401, f"bad key {KEY}"), "status 401: bad key", id="wrong key"),
        pytest.param(fails(404, "no such model"), "status 404: no such model", id="unknown model"),
    ],
)
def test_five_failures_in_a_row_end_the_run(
    cases: Path, answer: Any, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    One line says what the endpoint said, never with the key; what was answered is kept, and the next go asks at once.
    """
    with ScriptedMessagesApi([CLEAN, CLEAN], otherwise=answer) as api:
        assert asked(api, cases, "--concurrency", 1, "--repeats", 2) == 2

    assert len(api.requests) == 7
    out, err = capsys.readouterr()
    [line] = [line for line in err.splitlines() if "in a row" in line]
    assert said in line
    assert "2 of 12 answered and kept; run again to go on" in line
    assert f"cost: ${spent_usd(cases):.4f}\n" in out
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        assert asked(api, cases, "--repeats", 2) == 0
    assert len(api.requests) == 10
    _assert_no_key(cases.with_name("run"))


def _assert_no_key(folder: Path) -> None:
    for file in folder.iterdir():
        assert KEY.encode() not in file.read_bytes(), file.name


def test_an_endpoint_that_is_down_ends_the_run(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The breaker of the gate does not keep the lab from asking again at once.
    """
    with ScriptedMessagesApi() as api:
        pass
    api.server_close()

    assert asked(api, cases) == 2
    assert "5 questions failed in a row, the last with: no connection" in capsys.readouterr().err
    with ScriptedMessagesApi(otherwise=CLEAN) as up:
        assert asked(up, cases) == 0


def test_an_answer_that_cannot_be_read_was_answered(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Its text is kept for the score, and nobody pays for it twice unasked.
    """
    with ScriptedMessagesApi(["I think it is fine.", ""], otherwise=CLEAN) as api:
        assert asked(api, cases) == 2
        assert asked(api, cases) == 2

    assert len(api.requests) == 6
    assert "answered: 6 of 6, of these unreadable: 2\n" in capsys.readouterr().out
    texts = [answer.text for answer in read_run(cases.with_name("run")).answers.values()]
    assert sorted(texts) == ["", "I think it is fine.", *[CLEAN] * 4]


def test_a_refusal_is_an_answer_of_its_own(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    It is neither a verdict nor an error, and it was paid for.
    """
    with ScriptedMessagesApi([REFUSAL], otherwise=CLEAN) as api:
        assert asked(api, cases) == 2
        assert asked(api, cases) == 2

    assert len(api.requests) == 6
    assert outcomes(cases).count("refused") == 1
    assert "refused: 1, timeouts: 0, errors: 0\n" in capsys.readouterr().out


@pytest.mark.parametrize("way", [pytest.param((), id="asked"), pytest.param(("--batch",), id="in a batch")])
@pytest.mark.parametrize(
    ("first", "kind"),
    [pytest.param(REFUSAL, "6 refused", id="refused"), pytest.param("It is fine.", "6 unreadable", id="unreadable")],
)
def test_answers_without_a_verdict_are_asked_again_on_demand(
    cases: Path, first: Any, kind: str, way: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    What score would refuse is said at once, with what the answers took; `--again` asks for these alone, and pays again.
    """
    with ScriptedMessagesApi(otherwise=first) as api:
        api.batches.polls_until_ended = 0
        assert asked(api, cases, *way) == 2
    said = capsys.readouterr()
    assert "next: turngate lab score" not in said.out
    assert f"6 of 6 questions have no verdict (100.0%, at most 1 % may): {kind}" in said.err
    spent = spent_usd(cases)
    assert f"; --again asks these once more, and they took ${spent:.4f}\n" in said.err

    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        api.batches.polls_until_ended = 0
        assert asked(api, cases, "--again", *way) == 0
        assert asked(api, cases, "--again", *way) == 0
    assert outcomes(cases) == ["answered"] * 6
    assert len(ledger_calls(cases.with_name("run"))) == 12
    said = capsys.readouterr()
    assert f"cost: ${spent_usd(cases):.4f}\n" in said.out
    assert "next: turngate lab score" in said.out
    assert spent_usd(cases) > spent


def test_an_answer_that_comes_too_late_is_a_timeout(cases: Path) -> None:
    """
    `--deadline` holds for each question with all its tries.
    """
    with ScriptedMessagesApi([Hangs()], otherwise=CLEAN) as api:
        assert asked(api, cases, "--deadline", 0.4) == 2

    assert sorted(outcomes(cases)) == ["answered"] * 5 + ["timeout"]


def test_a_try_that_may_have_been_billed_makes_the_cost_unknown(
    cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    The answer came at the second try: cost and usage of both together are not known, and never 0.
    """
    with ScriptedMessagesApi([fails(500)], otherwise=CLEAN) as api:
        assert asked(api, cases, "--concurrency", 1) == 0

    answers = read_run(cases.with_name("run")).answers.values()
    [retried] = [answer for answer in answers if len(answer.calls) == 2]
    assert (retried.outcome, retried.cost_usd, retried.raw_usage) == ("answered", None, None)
    assert f"cost: ${spent_usd(cases):.4f}, calls of unknown cost: 1\n" in capsys.readouterr().out


def test_a_field_that_was_turned_away_costs_nothing(cases: Path) -> None:
    """
    A 400 is not billed: the cost of the answer without the field is that of the question.
    """
    with ScriptedMessagesApi(otherwise=CLEAN, refused_fields=["thinking"]) as api:
        assert asked(api, cases, "--concurrency", 1) == 0

    assert len(api.requests) == 7
    assert all(answer.cost_usd is not None for answer in read_run(cases.with_name("run")).answers.values())


def test_a_limit_ends_the_run_before_it_is_passed(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Earlier goes count, and a higher limit goes on from there.
    """
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        assert asked(api, cases, "--repeats", 9, "--usd", "0.05") == 2
        first = len(api.requests)
        assert 0 < first < 54
        said = capsys.readouterr().err
        assert "could pass the limit of --usd (at its worst it takes $0.0" in said
        assert f"in all); {first} of 54 answered and kept; run again to go on" in said
        assert asked(api, cases, "--repeats", 9, "--usd", "0.05") == 2
        assert len(api.requests) == first
        spent = sum(answer.cost_usd or 9 for answer in read_run(cases.with_name("run")).answers.values())
        # A question has three tries of at most 0.0165 USD: less than that is left.
        assert Decimal("0.0005") < spent <= Decimal("0.05")
        assert asked(api, cases, "--repeats", 9, "--usd", "5") == 0

    assert len(api.requests) == 54


def test_an_estimate_that_is_too_low_is_raised(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The first call goes alone, and what it took is expected of the rest, in the next go too.
    """
    with ScriptedMessagesApi(otherwise=takes(30)) as api:
        assert asked(api, cases, "--repeats", 9, "--usd", "1") == 2
        first, spent = len(api.requests), spent_usd(cases)
        assert first > 1
        assert spent <= 1
        out, err = capsys.readouterr()
        assert "times their estimate); " in err
        assert "passed:" not in err
        assert f"cost: ${spent:.4f}\n" in out
        assert asked(api, cases, "--repeats", 9, "--usd", "1") == 2
        assert len(api.requests) == first


def test_a_limit_that_the_first_call_passes_ends_the_run(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    After that one call, with a line that says so, and the cost.
    """
    with ScriptedMessagesApi(otherwise=takes(1000)) as api:
        assert asked(api, cases, "--usd", "0.1") == 2

    assert len(api.requests) == 1
    out, err = capsys.readouterr()
    assert "the limit of --usd was passed: a call took " in err
    assert f"cost: ${spent_usd(cases):.4f}\n" in out


def test_an_answer_of_a_model_without_a_price_counts_by_its_tokens(
    cases: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    It may have cost so many times the estimate as it took tokens.
    """
    with ScriptedMessagesApi(otherwise=takes(1000, "nobody-knows")) as api:
        assert asked(api, cases, "--usd", "0.1") == 2

    assert len(api.requests) == 1
    out, err = capsys.readouterr()
    assert "the limit of --usd may have been passed: a call took " in err
    assert "cost: unknown, calls of unknown cost: 1\n" in out


def test_answers_count_where_the_ledger_was_lost(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A run whose ledger was deleted does not begin at 0: what its answers say was paid.
    """
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        assert asked(api, cases) == 0
        spent = spent_usd(cases)
        for file in cases.with_name("run").glob("turngate.db*"):
            file.unlink()
        assert asked(api, cases, "--repeats", 2, "--usd", spent + Decimal("0.001")) == 2

    assert len(api.requests) == 6
    assert capsys.readouterr().out.count(f"cost: ${spent:.4f}\n") == 2


def test_failed_goes_are_part_of_the_cost(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Calls that may have been billed stay in it when the question is answered later.
    """
    with ScriptedMessagesApi(otherwise=fails(500)) as api:
        assert asked(api, cases, "--concurrency", 1, "--deadline", 0.2) == 2
    unknown = len(api.requests)
    assert f"cost: unknown, calls of unknown cost: {unknown}\n" in capsys.readouterr().out

    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        assert asked(api, cases) == 0
    assert f"cost: ${spent_usd(cases):.4f}, calls of unknown cost: {unknown}\n" in capsys.readouterr().out


def test_progress_counts_what_was_answered(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Questions that failed are not done, though each was tried.
    """
    with ScriptedMessagesApi(otherwise=fails(404)) as api:
        assert asked(api, cases, "--concurrency", 6) == 2

    assert len(api.requests) == 6
    assert "6/6" not in capsys.readouterr().err


def test_a_terminals_bar_ends_with_what_was_done() -> None:
    """
    Whatever was told too soon after the last time to be shown.
    """
    terminal = _Terminal()
    progress = Progress(12, 0, terminal)
    progress.tell(1, "$0.1000")
    progress.tell(2, "$0.2000, 5 failed")
    progress.close()

    assert "12/12" not in terminal.getvalue()
    last = terminal.getvalue().rpartition("\r")[2]
    assert "] 2/12  $0.2000, 5 failed" in last
    assert last.endswith("\n")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_calls_of_unknown_cost_use_up_the_limit(cases: Path) -> None:
    """
    At their worst: they may have been billed.
    """
    with ScriptedMessagesApi(otherwise=fails(500)) as api:
        assert asked(api, cases, "--concurrency", 1, "--usd", "0.1", "--deadline", 0.2) == 2
    number = len(api.requests)

    assert 0 < number < 6
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        assert asked(api, cases, "--usd", "0.1") == 2
        assert len(api.requests) < 6 - number


def test_a_limit_needs_a_price(cases: Path) -> None:
    """
    Nobody is asked where a limit cannot be kept.
    """
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        with pytest.raises(LabError, match="the price of model 'mine' is not known"):
            asked(api, cases, "--model", "mine", "--usd", 1)

        assert api.requests == []
        assert asked(api, cases, "--model", "mine") == 0


def test_a_secret_in_an_answer_is_not_kept(cases: Path) -> None:
    """
    Neither the key nor another one that the model says.
    """
    other = "ghp_" + "a1B2" * 9
    quote = json.dumps({"findings": [{"fault": "claim", "quote": f"{KEY} {other}", "reason": f"See {KEY}."}]})
    with ScriptedMessagesApi(otherwise=quote) as api:
        assert asked(api, cases) == 0

    _assert_no_key(cases.with_name("run"))
    assert other not in (cases.with_name("run") / ANSWERS).read_text()
    assert all(reading.named == 1 for reading in read_run(cases.with_name("run")).readings())


def test_the_budget_of_the_gate_is_another(cases: Path) -> None:
    """
    A day's budget that is spent does not end a trial: `--usd` does.
    """
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        assert asked(api, cases, TURNGATE_BUDGET_USD_PER_DAY="0") == 0


def test_a_batch_asks_the_same_questions(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    What one way has answered the other does not ask again.
    """
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        api.batches.polls_until_ended = 0
        assert asked(api, cases, "--batch") == 0
        assert asked(api, cases, "--batch") == 0
        assert asked(api, cases) == 0

        assert len(api.batches.batches) == 1
    assert {answer.via for answer in read_run(cases.with_name("run")).answers.values()} == {"batch"}
    assert "answered: 6 of 6, of these unreadable: 0\n" in capsys.readouterr().out


def test_what_waits_in_a_batch_is_not_asked_beside_it(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    It is paid for, which an end with an error says too, and only has to be collected.
    """

    def breaks(received: Received) -> Sends | None:
        return fails(404, "no such batch") if received.method == "GET" else None

    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        api.batches.polls_until_ended = 0
        api.batches.before = breaks
        with pytest.raises(LabError):
            asked(api, cases, "--batch")
        assert capsys.readouterr().out == "cost: unknown, calls of unknown cost: 6\n"
        with pytest.raises(LabError, match="wait in a batch that is paid for: collect it with --batch first"):
            asked(api, cases)
        api.batches.before = lambda _received: None

        assert asked(api, cases, "--batch") == 0
        assert len(api.batches.batches) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(("--model", "other"), "model is 'claude-sonnet-5-5', asked for is 'other'", id="model"),
        pytest.param(("--effort", "low"), "effort is 'medium', asked for is 'low'", id="effort"),
    ],
)
def test_another_run_takes_another_folder(cases: Path, options: tuple[str, ...], said: str) -> None:
    """
    Answers of two models never stand in one run.
    """
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        assert asked(api, cases) == 0
        with pytest.raises(LabError, match=said):
            asked(api, cases, *options)

    assert len(api.requests) == 6


def test_an_answer_to_other_words_is_not_taken(cases: Path) -> None:
    """
    It is asked again, and counts no more from then on, even where the asking fails.
    """
    answers = cases.with_name("run") / ANSWERS
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        assert asked(api, cases) == 0
        lines = [{**json.loads(line), "hash": "0" * 32} for line in answers.read_text().splitlines()]
        answers.write_text("".join(json.dumps(line) + "\n" for line in lines))
        api.add(fails(404))

        assert asked(api, cases) == 2

    assert len(api.requests) == 12
    assert sorted(outcomes(cases)) == [*["answered"] * 5, "error"]


def test_two_processes_do_not_ask_for_one_run(cases: Path) -> None:
    """
    The second would pay for what the first is asking.
    """
    with ScriptedMessagesApi(otherwise=CLEAN) as api, alone(cases.with_name("run")):
        with pytest.raises(LabError, match="another process asks for this run already"):
            asked(api, cases)

        assert api.requests == []


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        pytest.param({"ANTHROPIC_API_KEY": ""}, "no judge: ANTHROPIC_API_KEY is not set", id="no key"),
        pytest.param({"TURNGATE_JUDGE_BACKEND": "off"}, "judge.backend is off", id="off"),
        pytest.param({"TURNGATE_JUDGE_BACKEND": "remote"}, "judge.backend is remote", id="remote"),
    ],
)
def test_nobody_to_ask_is_one_line(cases: Path, variables: dict[str, str], said: str) -> None:
    """
    Said before anything is made.
    """
    with pytest.raises(LabError, match=said):
        command(run.add, "run", "--cases", cases, "--out", cases.with_name("run"), **variables)

    assert not cases.with_name("run").exists()


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--usd", "0"), id="no money"),
        pytest.param(("--usd", "NaN"), id="no amount"),
        pytest.param(("--usd", "1_0"), id="underscore"),
        pytest.param(("--usd", "\N{ARABIC-INDIC DIGIT ONE}"), id="digits of another script"),
        pytest.param(("--usd", "1e3"), id="exponent"),
        pytest.param(("--usd", "9" * 400), id="all the money"),
        pytest.param(("--deadline", "1_0"), id="underscore in a time"),
        pytest.param(("--deadline", "inf"), id="endless"),
        pytest.param(("--repeats", "0"), id="never"),
        pytest.param(("--repeats", "101"), id="too often"),
        pytest.param(("--repeats", "1_0"), id="underscore in a number"),
        pytest.param(("--concurrency", "9" * 5000), id="too many at once"),
        pytest.param(("--model", ""), id="no model"),
        pytest.param(("--model", "m" * 201), id="long model"),
        pytest.param(("--rubric", " "), id="no rubric"),
        pytest.param(("--base-url", ""), id="no address"),
        pytest.param(("--effort", "extreme"), id="effort"),
    ],
)
def test_a_bad_option_is_one_line(cases: Path, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """
    With exit code 2, from the parser.
    """
    with pytest.raises(SystemExit) as caught:
        command(run.add, "run", "--cases", cases, *options)

    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_so_many_questions_are_on_their_way_at_once(cases: Path) -> None:
    """
    `--concurrency` of them, and no more.
    """
    three = threading.Barrier(3, timeout=20)
    at_once: list[int] = []

    def answer(_: Received) -> Says:
        at_once.append(1)
        three.wait()  # broken unless three are there
        return Says(CLEAN)

    with ScriptedMessagesApi(otherwise=answer) as api:
        assert asked(api, cases, "--concurrency", 3) == 0

    assert len(at_once) == 6
