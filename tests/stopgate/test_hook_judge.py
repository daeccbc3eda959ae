"""
The real `turngate-hook` process and its judge: secrets, a death in the middle of a call, two hooks at one stop.
"""

from __future__ import annotations

import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.judge.scripted_api import Hangs, Received, ScriptedMessagesApi, fails

from .hook_runner import (
    CLAIM,
    CLEAN,
    RUNNING_TASK,
    Hook,
    a_stop,
    assert_sound,
    ended,
)
from .transcripts import Session

KEY = "plain-key-9f8e7d6c5b4a"
SECRET = "sk-ant-api03-Zx9Qw7Er5Ty3Ui1Op8As6Df4Gh2Jk0Lz"


def with_judge(hook: Hook, api: ScriptedMessagesApi) -> None:
    """
    Give the user a key and the scripted endpoint.
    """
    hook.environ |= {"ANTHROPIC_API_KEY": KEY, "TURNGATE_JUDGE_BASE_URL": api.url}
    # A busy machine may take long for its first import of the SDK.
    hook.environ["TURNGATE_JUDGE_DEADLINE_S"] = "60"


def a_secret_turn(folder: Path) -> str:
    session = Session()
    session.prompt(f"Deploy with {SECRET}", prompt_id="prompt-1")
    session.runs("Bash", f"the key is {SECRET}", command=f"curl -H 'x-api-key: {SECRET}' http://h")
    session.says(f"All tests pass. The key is {SECRET}")
    return session.write(folder)


def test_no_secret_leaves_the_process(hook: Hook, api: ScriptedMessagesApi) -> None:
    """
    A key in a prompt, command, output, reply, task, verdict or error body is neither sent, stored nor printed.
    """
    with_judge(hook, api)
    finding = {"fault": "claim", "quote": f"The key is {SECRET}", "reason": f"{SECRET} was used, but no test ran."}
    api.add({"findings": [finding]}, fails(401, f"invalid key {KEY}, {SECRET}"))
    path = a_secret_turn(hook.work)
    task = RUNNING_TASK | {"description": f"with {SECRET}", "command": f"deploy {SECRET}"}
    stop = a_stop(transcript_path=path, last_assistant_message=f"All tests pass. The key is {SECRET}")

    ran = [
        hook.run(stop | {"background_tasks": [task]}),
        hook.run(stop),
        hook.run(stop | {"session_id": "other"}),
    ]
    for one in ran:
        assert_sound(one)

    assert [one.holds for one in ran] == [True, True, False]
    assert hook.outcomes() == ["block_background", "block_verdict", "pass_judge_error"]
    sent = json.dumps([request.body for request in api.requests])
    told = b"".join(one.out + one.err for one in ran) + json.dumps(hook.log()).encode()
    assert "The key is [secret]" in sent
    for place in (sent.encode(), told, hook.stored_bytes()):
        assert SECRET.encode() not in place
        assert KEY.encode() not in place


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_a_hook_killed_while_it_asks_leaves_an_open_call(hook: Hook, api: ScriptedMessagesApi, number: int) -> None:
    """
    The call stands in the ledger with unknown usage, and the next stop is judged as if nothing had been.
    """
    with_judge(hook, api)
    asked = threading.Event()

    def hang(_: Received) -> Hangs:
        asked.set()
        return Hangs()

    api.add(hang)  # pyright: ignore[reportArgumentType]
    process = hook.start()
    assert process.stdin
    process.stdin.write(json.dumps(a_stop()).encode())
    process.stdin.close()
    assert asked.wait(60)
    process.send_signal(number)
    process.wait(60)
    for channel in (process.stdout, process.stderr):
        assert channel
        assert channel.read() == b""
        channel.close()

    with open_database(hook.state) as database:
        (call,) = Ledger(database).calls()
    hook.script(CLEAN)
    ran = hook.run(a_stop(prompt_id="prompt-2"))

    assert call.end is None
    assert_sound(ran)
    assert ran.out == b""
    assert hook.outcomes() == ["pass_clean"]


def test_two_hooks_of_one_stop_ask_once_and_hold_once(hook: Hook, api: ScriptedMessagesApi) -> None:
    """
    A gate installed twice costs one call and one continuation; the agent is told once.
    """
    with_judge(hook, api)
    api.add(CLAIM)
    processes = [hook.start(), hook.start()]
    with ThreadPoolExecutor() as pool:
        ran = list(pool.map(ended, processes, [a_stop()] * 2))

    for one in ran:
        assert_sound(one)
    assert sorted(one.holds for one in ran) == [False, True]
    assert sorted(hook.outcomes()) == ["block_verdict", "pass_state_error"]
    assert max(line["spent"] for line in hook.log()) == 1
    assert len(api.requests) == 1


def test_the_same_claim_is_held_twice_and_then_let_go(hook: Hook) -> None:
    """
    Each stop of a turn is judged anew, also where nothing in the transcript changed; the third is not judged.
    """
    hook.script(CLAIM, CLAIM, CLAIM)
    ran = [hook.run(a_stop()) for _ in range(4)]

    for one in ran:
        assert_sound(one)
    assert [one.holds for one in ran] == [True, True, False, False]
    assert [bool(one.out) for one in ran] == [True, True, True, False]
    log = hook.log()
    assert [line["outcome"] for line in log] == ["block_verdict", "block_verdict", "pass_cap_spent", "pass_cap_spent"]
    assert [len(line["calls"]) for line in log] == [1, 1, 0, 0]
