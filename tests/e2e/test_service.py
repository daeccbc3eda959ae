"""
The service that the first hook starts, beside the real client and after it.
"""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from turngate.judge.scripted_api import Received as JudgeRequest

from .client import HOOK, needs_client
from .stage import CLEAN, Played, Stage, by_a_service
from .story import CLAIM, FALSE_CLAIM, PROMPT, WITHDRAWN, WRITE

pytestmark = [pytest.mark.client, needs_client]

LONGEST_WAIT_S = 60.0


@by_a_service
def test_a_service_started_by_a_hook_keeps_no_client_from_its_end(stage: Stage) -> None:
    """
    The client has ended and its channels are closed while the service lives, which has none of what the hook was given.

    The hook's shell writes down what it holds; whoever still held one of these channels would keep the reader of it waiting.
    """
    given = stage.folder / "given"
    hook = f"readlink /proc/$$/fd/* >>{given}; {HOOK}"

    scene = stage.play(PROMPT, {PROMPT: [WRITE, CLAIM, WITHDRAWN]}, [FALSE_CLAIM, CLEAN], hooks=[hook])

    (service,) = stage.services()
    assert service.is_alive
    assert scene.outcomes == ["block_verdict", "pass_clean"]
    clients = set(given.read_text().split()) - {"/dev/null"}
    assert len(clients) >= 3
    assert clients.isdisjoint(service.descriptors.values())
    assert service.cwd == "/"


@by_a_service
def test_one_service_decides_all_stops_of_a_session(stage: Stage) -> None:
    """
    The service that the first stop started has decided every one since, also of the next prompt.
    """
    stage.start_service()
    (started,) = stage.services()
    stage.play(PROMPT, {PROMPT: [WRITE, CLAIM, WITHDRAWN]}, [FALSE_CLAIM, CLEAN])

    scene = stage.play("And now?", {PROMPT: ["Nothing more."]}, [CLEAN], resume=True)

    assert scene.outcomes == ["block_verdict", "pass_clean", "pass_clean"]
    (service,) = stage.services()
    assert service.pid == started.pid == stage.standing()["pid"]
    # The event that started it is one more.
    assert stage.standing()["decisions"] == len(scene.outcomes) + 1


def test_two_sessions_at_once_keep_their_keys_and_judges_apart(stage: Stage) -> None:
    """
    Each judge demands the key of its own session, and gets that and that session's turns only, both at the same time.
    """
    sessions = {"Write retry.ts, Ada.": "sk-ant-key-of-ada-0000", "Write retry.ts, Bob.": "sk-ant-key-of-bob-0000"}
    both_are_asked = threading.Barrier(len(sessions))

    def judge(request: JudgeRequest) -> str:
        both_are_asked.wait(LONGEST_WAIT_S)
        return json.dumps(CLEAN if WITHDRAWN in request.user_text else FALSE_CLAIM)

    def play(prompt: str) -> Played:
        return stage.beside(prompt[-4:-1]).play(
            prompt, {prompt: [WRITE, CLAIM, WITHDRAWN]}, otherwise=judge, key=sessions[prompt]
        )

    with ThreadPoolExecutor(len(sessions)) as threads:
        scenes = dict(zip(sessions, threads.map(play, sessions), strict=True))

    for prompt, scene in scenes.items():
        assert scene.outcomes == ["block_verdict", "pass_clean"]
        assert scene.client.result["result"] == WITHDRAWN
        assert len(scene.judged) == 2
        assert {request.headers["authorization"] for request in scene.judged} == {f"Bearer {sessions[prompt]}"}
        assert all(prompt in request.user_text for request in scene.judged)
