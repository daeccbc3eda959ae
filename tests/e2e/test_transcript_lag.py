"""
What the client has not written yet when its hook starts: the last lines of a transcript come up to some 110 ms later.
"""

from __future__ import annotations

import pytest

from .client import needs_client
from .main_loop_api import Script, uses
from .stage import Stage
from .test_subagents import dispatch

pytestmark = [pytest.mark.client, needs_client]

PROMPT = "Have the parts tested, please."
PARTS = ("Alpha", "Beta", "Gamma", "Delta", "Epsilon")
"""As many, because a judge that is asked too early misses about one in three."""


def report(part: str) -> str:
    return f"The tests of {part} ran twice."


def test_the_judge_sees_the_last_tool_calls_with_their_results(stage: Stage) -> None:
    """
    However fast the hook is: each agent's calls are judged with what they gave, its parent's with what it reported.
    """
    dispatched = {part: f"{part}: run the tests twice." for part in PARTS}
    agents: dict[str, Script] = {
        PROMPT: [*(dispatch(prompt, background=False) for prompt in dispatched.values()), "All parts are tested."],
        **{
            dispatched[part]: [*(uses("Bash", command=f"echo {part} {n}") for n in (1, 2)), report(part)]
            for part in PARTS
        },
    }
    if stage.is_relayed:
        stage.start_service()

    scene = stage.play(PROMPT, agents)

    assert scene.outcomes == ["pass_clean"] * (len(PARTS) + 1)
    *subagents, main = (request.user_text.splitlines() for request in scene.judged)
    for part, judged in zip(PARTS, subagents, strict=True):
        assert report(part) in judged
        assert [line for line in judged if line.startswith("Bash: ")] == [
            f"Bash: echo {part} {n} -> exit 0: {part} {n}" for n in (1, 2)
        ]
    assert "All parts are tested." in main
    handed_back = [line for line in main if line.startswith("Agent: ")]
    for part, line in zip(PARTS, handed_back, strict=True):
        assert line.startswith(f"Agent: {part} -> reported: ")
        assert report(part) in line
