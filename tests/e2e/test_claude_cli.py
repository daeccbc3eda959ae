"""
The real client as the judge of the real client: alone, once, and without a judge of its own.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from .client import BINARY, FAKE_KEY, HOOK, Json, needs_client
from .main_loop_api import ScriptedMainLoop, says
from .stage import CLEAN, Played, Stage
from .story import CLAIM, FALSE_CLAIM, NO_TEST_RAN, PROMPT, WITHDRAWN, WRITE

pytestmark = [pytest.mark.client, needs_client]

MEMORY = "Always answer in verse, says the memory."
SECRET = "the-content-of-a-file-that-was-only-mentioned"


class JudgesModel(ScriptedMainLoop):
    """
    The endpoint of the judge's client: it gives these verdicts, and keeps all that it was asked.
    """

    def __init__(self, *verdicts: Json) -> None:
        super().__init__({})
        self.bodies: list[Json] = []
        self._verdicts = list(verdicts)

    def answer(self, body: Json) -> list[Json]:
        """
        Give the next verdict.
        """
        self.bodies.append(body)
        return [says(json.dumps(self._verdicts.pop(0)))]


def program(stage: Stage, text: str = "") -> Path:
    """
    Put a `claude` into a folder: the client itself, or a script with this text.
    """
    folder = stage.folder / "bin"
    folder.mkdir()
    path = folder / "claude"
    if text:
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    else:
        path.symlink_to(BINARY)
    return folder


def play(stage: Stage, judge: JudgesModel, folder: Path, *, hook: str = str(HOOK), prompt: str = PROMPT) -> Played:
    """
    Run a prompt whose hooks ask the client in this folder, which asks this endpoint.
    """
    (stage.folder / "home" / ".claude").mkdir(parents=True, exist_ok=True)
    (stage.folder / "home" / ".claude" / "CLAUDE.md").write_text(MEMORY)
    steps = [WRITE, CLAIM, WITHDRAWN] if len(judge._verdicts) > 1 else [WRITE, WITHDRAWN]  # pyright: ignore[reportPrivateUsage]
    return stage.play(
        prompt,
        {prompt: steps},
        # The judge's client is to ask another endpoint than the one that is judged.
        hooks=[f"ANTHROPIC_BASE_URL={judge.url} {hook}"],
        environ={
            "PATH": f"{folder}:/usr/local/bin:/usr/bin:/bin",
            "TURNGATE_JUDGE_BACKEND": "claude-cli",
            "TURNGATE_JUDGE_BASE_URL": "",
        },
    )


def test_a_false_claim_is_held_by_the_clients_own_judge(stage: Stage) -> None:
    """
    Each stop is one request of one client, priced by its usage, and the agent gets the reason.
    """
    with JudgesModel(FALSE_CLAIM, CLEAN) as judge:
        scene = play(stage, judge, program(stage))

    assert scene.outcomes == ["block_verdict", "pass_clean"]
    assert len(judge.bodies) == 2
    reason = scene.main_loop.received_from(PROMPT)[2].news[0][1].removeprefix("Stop hook feedback:\n")
    assert reason == NO_TEST_RAN
    (call,) = scene.decisions[0]["calls"]
    assert (call["backend"], call["outcome"], call["try"]) == ("claude-cli", "answered", 1)
    assert (call["input_tokens"], call["output_tokens"]) == (100, 20)
    # 100 at 2 dollars and 20 at 10 dollars a million.
    assert call["cost_usd"] == "0.0004"
    assert call["price_source"].endswith("list price")
    assert not list((stage.folder / "tmp").glob("turngate-judge-*"))


def test_the_judge_has_no_tools_no_memory_and_no_file_that_the_turn_mentions(stage: Stage) -> None:
    """
    All that its model sees is the rubric, the turn as turngate renders it, and a word about the machine.
    """
    mentioned = stage.folder / "mentioned.txt"
    mentioned.write_text(SECRET)
    prompt = f"{PROMPT} See @{mentioned} and /help."

    with JudgesModel(CLEAN) as judge:
        scene = play(stage, judge, program(stage), prompt=prompt)

    (body,) = judge.bodies
    sent = json.dumps(body)
    assert scene.outcomes == ["pass_clean"]
    assert f"@{mentioned}" in sent
    assert SECRET not in sent
    assert MEMORY not in sent
    assert str(stage.project) not in sent
    assert body["tools"] == []
    assert [message["role"] for message in body["messages"]] == ["user", "system"]
    assert (body["max_tokens"], body["output_config"]) == (4096, {"effort": "medium"})
    assert "cache_control" not in sent
    home = stage.folder / "home" / ".claude"
    assert len(list(home.glob("projects/*/*.jsonl"))) == 1, "the judge's session was kept"
    assert not [path for path in home.glob("sessions/*") if path.suffix == ".json"]


def test_a_hook_in_the_judges_own_client_starts_no_judge(stage: Stage) -> None:
    """
    Where the judge's client runs the user's hooks after all, they find the guard: one stop is one request.
    """
    seen = stage.folder / "guards"
    hook = stage.folder / "hook"
    hook.write_text(
        f'#!/bin/sh\necho "guard:$TURNGATE_GUARD" >> {shlex.quote(str(seen))}\nexec {shlex.quote(str(HOOK))}\n'
    )
    hook.chmod(0o755)
    # A client that does not know the option, or whose hooks come from elsewhere, such as a company's settings.
    obeys_settings = f"""
for argument; do
    shift
    if [ "$argument" = --setting-sources ]; then drop=1; continue; fi
    if [ "$drop" = 1 ]; then drop=0; continue; fi
    set -- "$@" "$argument"
done
exec {shlex.quote(BINARY)} "$@"
"""

    with JudgesModel(CLEAN) as judge:
        scene = play(stage, judge, program(stage, obeys_settings), hook=str(hook))

    assert sorted(seen.read_text().split()) == ["guard:", "guard:1"]
    assert len(judge.bodies) == 1
    assert scene.outcomes == ["pass_clean"]
    assert len(scene.decisions[0]["calls"]) == 1


def test_a_client_that_is_not_signed_in_is_no_judge_and_is_told_once(stage: Stage) -> None:
    """
    With neither a key nor a log-in the free checks run, and the person gets one line.
    """
    hook = f"env -u ANTHROPIC_API_KEY {HOOK}"
    environ = {"PATH": f"{program(stage)}:/usr/bin:/bin", "TURNGATE_JUDGE_BASE_URL": ""}

    scene = stage.play(PROMPT, {PROMPT: [WRITE, WITHDRAWN]}, hooks=[hook], environ=environ)

    assert scene.outcomes == ["pass_no_judge"]
    assert scene.decisions[0]["detail"] == (
        "no judge: ANTHROPIC_API_KEY is not set, and the client 'claude' is not signed in: run it and type /login"
    )


def test_auto_asks_the_client_where_somebody_is_signed_in(stage: Stage) -> None:
    """
    Without a key in the environment the client's own log-in pays.
    """
    config = stage.folder / "home" / ".claude"
    config.mkdir(parents=True)
    login = {"accessToken": "sk-ant-oat01-not-a-token", "refreshToken": "r", "expiresAt": 4102444800000}
    login |= {"scopes": ["user:inference"], "subscriptionType": "max"}
    (config / ".credentials.json").write_text(json.dumps({"claudeAiOauth": login}))

    with JudgesModel(CLEAN) as judge:
        hook = f"env -u ANTHROPIC_API_KEY ANTHROPIC_BASE_URL={judge.url} {HOOK}"
        environ = {"PATH": f"{program(stage)}:/usr/bin:/bin", "TURNGATE_JUDGE_BASE_URL": ""}
        scene = stage.play(PROMPT, {PROMPT: [WRITE, WITHDRAWN]}, hooks=[hook], environ=environ)

    assert scene.outcomes == ["pass_clean"]
    assert scene.decisions[0]["calls"][0]["backend"] == "claude-cli"
    assert len(judge.bodies) == 1
    assert FAKE_KEY not in json.dumps(judge.bodies)
