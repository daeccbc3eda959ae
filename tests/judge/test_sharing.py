"""
One call for several processes that ask about the same stop.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.judge.judgement import Ask, AskOutcome, Judgement
from turngate.judge.owners import is_gone, this_process
from turngate.judge.scripted_api import Hangs, Says, ScriptedMessagesApi
from turngate.judge.sharing import read_judgement, shared, write_judgement
from turngate.rubric.turn import Turn
from turngate.rubric.verdict import Finding, Verdict

CLAIM = '{"findings": [{"fault": "claim", "quote": "All tests pass.", "reason": "No test was run."}]}'
TURN = Turn(request="Write retry.ts.", reply="Done. All tests pass.")
KEY = "k1"


ASK_AS_A_PROCESS = """
import sys, time
from datetime import UTC, datetime

import turngate.judge.models.anthropic_api
from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.judge.connect import connect
from turngate.judge.context import CallContext
from turngate.judge.settings import JudgeSettings
from turngate.judge.sharing import shared, write_judgement
from turngate.rubric.turn import Turn

state, url, request, reply = sys.argv[1:]
started_at = datetime.now(UTC)
with open_database(state, busy_timeout_s=10) as database:
    ledger = Ledger(database)
    print("ready", flush=True)
    sys.stdin.readline()
    deadline_at = time.monotonic() + 20
    settings = JudgeSettings(backend="anthropic", base_url=url)
    ask = connect(settings, {"ANTHROPIC_API_KEY": "k1"}, ledger, CallContext(), deadline_at=deadline_at)
    judgement = shared(ask, "stop", ledger, started_at=started_at, deadline_at=deadline_at)(Turn(request, reply))
    print(len(judgement.calls), write_judgement(judgement), flush=True)
"""


def ask_at_once(state: Path, url: str) -> list[tuple[int, Judgement]]:
    """
    Two hooks at one stop, each a process; gives for each its calls and its judgement.
    """
    command = [sys.executable, "-c", ASK_AS_A_PROCESS, str(state), url, TURN.request, TURN.reply]
    hooks = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) for _ in range(2)
    ]
    for hook in hooks:
        assert hook.stdout is not None
        assert hook.stdout.readline() == "ready\n"
    for hook in hooks:
        assert hook.stdin is not None
        hook.stdin.write("go\n")
        hook.stdin.flush()
    answers = [hook.communicate(timeout=60)[0].partition(" ") for hook in hooks]
    return [(int(calls), read_judgement(judgement)) for calls, _, judgement in answers]


def test_two_hooks_at_one_stop_share_one_call(tmp_path: Path) -> None:
    """
    One request, one line in the ledger, and the same judgement for both; the call belongs to the one who made it.
    """
    with ScriptedMessagesApi(otherwise=Says(CLAIM, delay_s=0.3)) as api:
        found = ask_at_once(tmp_path, api.url)
        requests = len(api.requests)

    verdict = Verdict((Finding("claim", "All tests pass.", "No test was run."),))
    assert requests == 1
    assert sorted(calls for calls, _ in found) == [0, 1]
    assert [(judgement.outcome, judgement.verdict) for _, judgement in found] == [("answered", verdict)] * 2
    with open_database(tmp_path) as database:
        assert len(Ledger(database).calls()) == 1


def test_two_stops_are_two_calls(ledger: Ledger) -> None:
    """
    What is shared is a stop's judgement, not the last one.
    """
    one = ask_shared(answers(Judgement("refused")), ledger, stop="one")
    other = ask_shared(answers(Judgement("unreadable")), ledger, stop="other")

    assert (one.outcome, other.outcome) == ("refused", "unreadable")


def test_an_answer_from_before_the_hook_began_is_asked_for_anew(ledger: Ledger) -> None:
    """
    The same reply at a later stop is judged again.
    """
    ask_shared(answers(Judgement("refused")), ledger)

    assert ask_shared(answers(Judgement("unreadable")), ledger, started_ago_s=-1).outcome == "unreadable"


@pytest.mark.parametrize("outcome", [outcome for outcome in get_args(AskOutcome) if outcome != "answered"])
def test_a_judgement_without_a_verdict_is_shared_too(ledger: Ledger, outcome: AskOutcome) -> None:
    """
    An endpoint that hangs for one hangs for all: nobody asks a second time.
    """
    ask_shared(answers(Judgement(outcome, detail="why")), ledger)

    assert ask_shared(never, ledger) == Judgement(outcome, detail="why")


def answers(judgement: Judgement) -> Callable[[Turn], Judgement]:
    return lambda _turn: judgement


def claim(ledger: Ledger, *, ago_s: float) -> None:
    at = datetime.now(UTC) - timedelta(seconds=ago_s)
    assert ledger.claim_judgement("stop", at, started_at=at)


def never(_turn: Turn) -> Judgement:
    raise AssertionError("asked a second time")


def ask_shared(
    ask: Ask, ledger: Ledger | None, *, stop: str = "stop", started_ago_s: float = 1.0, wait_s: float = 5.0
) -> Judgement:
    started_at = datetime.now(UTC) - timedelta(seconds=started_ago_s)
    return shared(ask, stop, ledger, started_at=started_at, deadline_at=time.monotonic() + wait_s)(TURN)


def test_who_waits_for_an_owner_that_died_gives_up(ledger: Ledger) -> None:
    """
    A claim without an answer is waited for until the deadline, and not asked about again.
    """
    claim(ledger, ago_s=0)

    judgement = ask_shared(never, ledger, wait_s=0.1)

    assert judgement.outcome == "timeout"
    assert judgement.detail


def test_a_killed_owners_claim_is_taken_over_at_once(tmp_path: Path) -> None:
    """
    A hook that was killed while it asked leaves the asking to the next; one that lives is waited for.
    """
    with (
        ScriptedMessagesApi([Hangs()], otherwise=CLAIM) as api,
        open_database(tmp_path) as database,
    ):
        command = [sys.executable, "-c", ASK_AS_A_PROCESS, str(tmp_path), api.url, TURN.request, TURN.reply]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
            assert owner.stdin is not None
            owner.stdin.write(b"\n")
            owner.stdin.flush()
            give_up_at = time.monotonic() + 20
            while not api.requests and time.monotonic() < give_up_at:
                time.sleep(0.01)
            ledger = Ledger(database)
            assert ask_shared(never, ledger, wait_s=0.1).outcome == "timeout"
            owner.kill()
        judgement = ask_shared(answers(Judgement("refused")), ledger)
        assert ledger.published_judgement("stop") is not None

    assert judgement.outcome == "refused"


def test_of_all_who_wait_for_a_dead_owner_one_takes_over(ledger: Ledger) -> None:
    """
    The second finds a living owner.
    """
    at = datetime.now(UTC)
    ledger.claim_judgement("stop", at, started_at=at, owner="gone")

    assert ledger.take_over_claim("stop", at, gone="gone", owner="a")
    assert not ledger.take_over_claim("stop", at, gone="gone", owner="b")
    assert ledger.claim_owner("stop") == "a"


@pytest.mark.parametrize(
    "owner",
    ["", "0@here", "-1@here", "x@here", "999999999@elsewhere", "\u00b2@here", f"{10**30}@here", "here"],
)
def test_an_owner_that_cannot_be_known_is_not_gone(owner: str) -> None:
    """
    It may be at work on another machine.
    """
    here = this_process().partition("@")[2]

    assert not is_gone(owner.replace("here", here))
    assert not is_gone(this_process())


def test_an_old_claim_is_taken_over(ledger: Ledger) -> None:
    """
    After a minute it is another stop, or its owner is dead.
    """
    claim(ledger, ago_s=61)

    assert ask_shared(answers(Judgement("refused")), ledger).outcome == "refused"


def test_an_owner_that_breaks_off_lets_the_others_go(ledger: Ledger) -> None:
    """
    An exception passes, and those who wait get an error at once.
    """

    def breaks(_turn: Turn) -> Judgement:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError):
        ask_shared(breaks, ledger)

    assert ask_shared(never, ledger).outcome == "error"


def test_where_nothing_can_be_claimed_everyone_asks(ledger: Ledger) -> None:
    """
    Without a working store the judge is asked all the same.
    """
    ask = answers(Judgement("answered", Verdict()))
    ledger.database.close()

    assert ask_shared(ask, None).outcome == "answered"
    assert ask_shared(ask, ledger).outcome == "answered"


TEXTS = st.text(max_size=40)


@given(
    outcome=st.sampled_from(get_args(AskOutcome)),
    verdict=st.none()
    | st.builds(Verdict, st.lists(st.builds(Finding, TEXTS, TEXTS, TEXTS), max_size=3).map(tuple), st.integers(0, 9)),
    detail=TEXTS,
)
def test_a_judgement_survives_being_shared(outcome: AskOutcome, verdict: Verdict | None, detail: str) -> None:
    """
    All of it arrives, except for the calls of the one who paid.
    """
    judgement = Judgement(outcome, verdict, detail, "turn_end@1", "abc", ("call",))

    assert read_judgement(write_judgement(judgement)) == judgement._replace(calls=())


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{}", '{"outcome": "yes", "verdict": null}', '{"outcome": "answered", "verdict": 5}', '"x"']
    + [
        json.dumps({"outcome": "answered", "verdict": verdict, "detail": detail, "rubric": "", "rubric_hash": ""})
        for verdict, detail in (([[["claim", None, None]], 0], ""), ([[], "none"], ""), (None, None))
    ]
    + ["[" * 100_000],
)
def test_a_damaged_judgement_is_an_error(text: str) -> None:
    """
    Another version's or a broken row is no verdict.
    """
    assert read_judgement(text).outcome == "error"


def test_a_judgement_is_shared_without_secrets() -> None:
    """
    The quotes of a fresh verdict are raw, and what is shared is stored.
    """
    key = "ghp_a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6"

    shared_one = write_judgement(Judgement("answered", Verdict((Finding("claim", f"{key} works", "r"),))))

    assert key not in shared_one
    assert "[secret] works" in shared_one
