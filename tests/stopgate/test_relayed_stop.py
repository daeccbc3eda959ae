"""
What the service answers a relay: a decision by what came with the stop, or what the relay is to do instead.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from turngate.judge.service.app import HookReply, RelayedEvent
from turngate.stopgate.relayed_stop import answer_relayed
from turngate.stopgate.resident import Resident

from .hook_runner import HELD, a_stop


class House:
    """
    A service's inside, its state directory, and a user whose home is elsewhere.
    """

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.state.mkdir(mode=0o700)
        self.environ = {
            "HOME": str(folder),
            "TURNGATE_STATE_DIR": str(self.state),
            "TURNGATE_JUDGE_BACKEND": "anthropic",
        }
        self.resident = Resident(str(self.state), {"ANTHROPIC_API_KEY": "the services own"}, "0.1.0")

    def answer(
        self,
        event: Mapping[str, object] | bytes = HELD,
        *,
        environ: Mapping[str, str] | None = None,
        unset: frozenset[str] = frozenset(),
        deadline_s: float = 8.0,
        is_heard: bool = True,
    ) -> HookReply:
        """
        Answer an event that was relayed with these variables beside the user's own.
        """
        body = event if isinstance(event, bytes) else json.dumps(event).encode()
        started_at = time.monotonic() - 0.02
        relayed = RelayedEvent(
            body, started_at, deadline_s, {**self.environ, **(environ or {})}, lambda: is_heard, unset
        )
        return answer_relayed(relayed, str(self.state), self.resident)

    def log(self) -> list[tuple[str, str]]:
        """
        Outcome and detail of each decision.
        """
        ledger = self.resident.store("").ledger
        assert ledger is not None
        return [(decision.line.outcome, decision.line.detail) for decision in ledger.decisions()]


@pytest.fixture(name="house")
def house_fixture(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.resident.end(wait_s=0)


def test_a_stop_is_answered_as_the_hook_itself_would(house: House) -> None:
    """
    A running task holds, with the client's words on stdout.
    """
    reply = house.answer()

    assert reply.status == 200
    assert json.loads(reply.stdout)["decision"] == "block"
    assert [outcome for outcome, _ in house.log()] == ["block_background"]


def test_the_services_own_key_is_never_used_for_a_stop(house: House) -> None:
    """
    The service may have a key of its own, for a team; a hook without one has no judge.
    """
    house.answer(a_stop())

    assert house.log() == [("pass_no_judge", "no judge: ANTHROPIC_API_KEY is not set")]


@pytest.mark.parametrize(
    ("environ", "unset", "deadline_s", "needs", "told_s"),
    [
        pytest.param(
            {"TURNGATE_JUDGE_API_KEY_ENV": "GATEWAY_KEY"}, (), 8.0, ("GATEWAY_KEY",), None, id="a-key-of-another-name"
        ),
        pytest.param({"TURNGATE_JUDGE_DEADLINE_S": "20"}, (), 8.0, (), 20.0, id="a-longer-deadline"),
        pytest.param({"TURNGATE_JUDGE_DEADLINE_S": "2"}, (), 8.0, (), 2.0, id="a-shorter-deadline"),
        pytest.param(
            {"TURNGATE_JUDGE_API_KEY_ENV": "GATEWAY_KEY", "TURNGATE_JUDGE_DEADLINE_S": "20"},
            (),
            8.0,
            ("GATEWAY_KEY",),
            20.0,
            id="both",
        ),
    ],
)
def test_what_the_relay_could_not_know_is_asked_for(
    house: House,
    environ: dict[str, str],
    unset: tuple[str, ...],
    deadline_s: float,
    needs: object,
    told_s: float | None,
) -> None:
    """
    Nothing is decided, and nothing logged, before the relay has sent what the user's settings name.
    """
    reply = house.answer(environ=environ, unset=frozenset(unset), deadline_s=deadline_s)

    assert reply == HookReply(428, needs=needs, deadline_s=told_s)  # pyright: ignore[reportArgumentType]
    assert house.log() == []


def test_what_the_clients_log_in_takes_is_asked_for_where_it_may_be_asked(house: House) -> None:
    """
    By `auto` without a key, all at once and beside the key's own name; with a key, nothing.
    """
    auto = {"TURNGATE_JUDGE_BACKEND": "auto"}

    by_nothing = house.answer(environ=auto)
    by_another_key = house.answer(environ={**auto, "TURNGATE_JUDGE_API_KEY_ENV": "GATEWAY_KEY"})
    by_a_key = house.answer(environ={**auto, "ANTHROPIC_API_KEY": "k"})
    told = house.answer(environ={**auto, "PATH": "/usr/bin"}, unset=frozenset(by_nothing.needs))

    assert by_nothing.status == 428
    assert {"PATH", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"} <= set(by_nothing.needs)
    assert by_another_key.needs == ("GATEWAY_KEY", *by_nothing.needs)
    assert len(by_another_key.needs) <= 16  # what the relay takes
    assert (by_a_key.status, told.status) == (200, 200)


def test_a_variable_that_is_not_set_is_asked_for_once(house: House) -> None:
    """
    The relay says that it has no such variable; then there is no judge, and that is the reason.
    """
    environ = {"TURNGATE_JUDGE_API_KEY_ENV": "GATEWAY_KEY"}

    reply = house.answer(a_stop(), environ=environ, unset=frozenset(["GATEWAY_KEY"]))

    assert reply.status == 200
    assert house.log() == [("pass_no_judge", "no judge: GATEWAY_KEY is not set")]


def test_an_event_that_asks_no_model_is_not_sent_back_for_a_key(house: House) -> None:
    """
    A check before a tool has a second in all.
    """
    reply = house.answer(
        {"hook_event_name": "PreToolUse"}, environ={"TURNGATE_JUDGE_API_KEY_ENV": "GATEWAY_KEY"}, deadline_s=1.0
    )

    assert reply.status == 200
    assert [outcome for outcome, _ in house.log()] == ["jobs_pass"]


def test_a_stop_of_another_state_directory_is_not_taken(house: House, tmp_path: Path) -> None:
    """
    A project that names a state directory of its own is not believed, and so the hook may stand before the wrong service.
    """
    other = {"TURNGATE_STATE_DIR": str(tmp_path / "another")}

    assert house.answer(environ=other).status == 421
    assert house.answer(b"no event", environ=other).status == 421
    assert house.log() == []


def test_one_directory_by_two_names_is_one(house: House, tmp_path: Path) -> None:
    """
    A link to the state directory leads to its service.
    """
    (tmp_path / "link").symlink_to(house.state)

    assert house.answer(environ={"TURNGATE_STATE_DIR": str(tmp_path / "link")}).status == 200


@pytest.mark.parametrize(
    ("event", "environ", "outcome", "words"),
    [
        pytest.param(b"no event", {}, "pass_not_a_turn", "not JSON", id="no-event"),
        pytest.param(
            HELD, {"TURNGATE_GATE_MODE": "sometimes"}, "pass_internal_error", "TURNGATE_GATE_MODE", id="a-bad-setting"
        ),
    ],
)
def test_what_cannot_be_decided_passes_with_its_reason(
    house: House, event: Any, environ: dict[str, str], outcome: str, words: str
) -> None:
    """
    The turn ends, the log has the code, and standard error the line, as in process.
    """
    reply = house.answer(event, environ=environ)

    assert (reply.status, reply.stdout) == (200, b"")
    assert reply.notice.startswith("turngate: ")
    assert words in reply.notice
    [(found, detail)] = house.log()
    assert found == outcome
    assert words in detail


def test_a_hold_that_nobody_hears_is_none(house: House) -> None:
    """
    The hook was killed meanwhile: its continuation is left for the next stop.
    """
    unheard, heard = house.answer(is_heard=False), house.answer()

    assert unheard.stdout == b""
    assert json.loads(heard.stdout)["decision"] == "block"
    assert [outcome for outcome, _ in house.log()] == ["pass_service_error", "block_background"]


def test_a_state_directory_that_was_removed_is_made_again(house: House) -> None:
    """
    The service notices that its ledger is gone, and opens a new one.
    """
    house.answer()
    for path in house.state.iterdir():
        path.unlink()

    reply = house.answer(HELD | {"session_id": "another"})

    assert json.loads(reply.stdout)["decision"] == "block"
    assert [outcome for outcome, _ in house.log()] == ["block_background"]


def test_a_store_that_cannot_be_opened_passes_and_is_counted(house: House) -> None:
    """
    Nothing is held, and the metrics know of it although no ledger does.
    """
    (house.state / "turngate.db").mkdir()

    reply = house.answer()

    assert reply.stdout == b""
    assert "turngate.db" in reply.notice
    exposed = house.resident.metrics.exposition()[0].decode()
    assert 'turngate_decisions_total{event="Stop",outcome="pass_state_error"} 1.0' in exposed
