"""
What is known of a turn beyond the reader's reach, or with lines too long to be read.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from turngate.stopgate.transcript import Limits, read

from ..transcripts import Session, notification


def test_a_prompt_that_is_out_of_reach_is_said_to_be(tmp_path: Path):
    """
    Reading ends at its reach; what was read of the turn is kept.
    """
    session = Session()
    session.prompt("far away")
    session.metadata(100, size=1_000)
    session.runs("Bash", "ok", command="ls")
    session.says("Done.")

    record = read(session.write(tmp_path), limits=Limits(reach=20_000))

    assert record.out_of_reach
    assert (record.request, record.human_id, len(record.calls)) == ("", "", 1)


def test_a_line_over_the_limit_is_skipped_and_counted(tmp_path: Path):
    """
    A huge result is known to be there and no more; the rest is whole.
    """
    session = Session()
    session.prompt("the request")
    session.runs("Bash", "x" * 100_000, command="cat big")
    session.says("Done.")

    record = read(session.write(tmp_path), limits=Limits(longest_line=50_000))

    assert (record.request, record.skipped) == ("the request", 1)
    assert record.calls[0].outcome is not None
    assert record.calls[0].outcome.state == "unknown"


def test_a_prompt_over_the_limit_is_out_of_reach(tmp_path: Path):
    """
    The prompt before it would be the wrong request.
    """
    session = Session()
    session.prompt("an earlier request")
    session.says("Done.")
    session.prompt("x" * 100_000)
    session.says("Done.")

    record = read(session.write(tmp_path), limits=Limits(longest_line=50_000))

    assert (record.request, record.out_of_reach) == ("", True)


IMAGE = {"type": "image", "source": {"type": "base64", "data": "x" * 200_000}}
SHORT_LINES = Limits(longest_line=50_000)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("fix it" + "x" * 200_000, id="text"),
        pytest.param([{"type": "text", "text": "like this"}, IMAGE], id="an image behind a text"),
        pytest.param([IMAGE], id="an image"),
    ],
)
def test_a_prompt_over_the_limit_has_its_identity(content: object, tmp_path: Path):
    """
    The turn stays the same one, whatever notification starts a further prompt id.
    """
    session = Session()
    session.prompt("an earlier request", prompt_id="p0")
    session.says("Done.")
    session.prompt(content, prompt_id="p1", uuid="human")
    session.says("Waiting.")
    session.prompt(notification("b1"), prompt_id="p2", origin={"kind": "task-notification"})

    record = read(session.write(tmp_path), limits=SHORT_LINES)

    assert (record.human_id, record.prompt_ids, record.out_of_reach) == ("human", ("p1", "p2"), True)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        pytest.param({"promptId": "p1"}, "p1", id="by its prompt id"),
        pytest.param({}, "head:", id="by its beginning"),
    ],
)
def test_a_prompt_over_the_limit_without_a_uuid_has_an_id_that_stays(
    ends: dict[str, str], expected: str, tmp_path: Path
):
    """
    Two stops of one turn agree on it.
    """
    session = Session()
    entry = {**ends, "type": "user", "message": {"role": "user", "content": "x" * 200_000}}
    session.add(entry, chained=False)
    first = read(session.write(tmp_path), limits=SHORT_LINES)
    session.says("Done.")

    record = read(session.write(tmp_path), limits=SHORT_LINES)

    assert record.human_id == first.human_id
    assert record.human_id.startswith(expected)


LONG = "x" * 200_000


def long_call(session: Session) -> None:
    session.runs("mcp__llm__ask", "ok", messages=[{"role": "user", "content": LONG}])


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda s: s.prompt([{"type": "document", "source": {"data": LONG}}], isMeta=True), id="a PDF"),
        pytest.param(
            lambda s: s.prompt(notification("b1", result=LONG), origin={"kind": "task-notification"}), id="notification"
        ),
        pytest.param(lambda s: s.prompt(notification("b1", result=LONG)), id="notification of an old client"),
        pytest.param(lambda s: s.prompt("The talk so far" + LONG, isCompactSummary=True), id="summary"),
        pytest.param(lambda s: s.prompt("dispatch" + LONG, isSidechain=True), id="sidechain"),
        pytest.param(
            lambda s: s.add(
                {"type": "api-request-blob", "body": {"message": {"role": "user", "content": LONG}}}, chained=False
            ),
            id="blob",
        ),
        pytest.param(
            lambda s: s.attachment("x", message={"role": "user", "content": LONG}, note='"type":"user"'),
            id="attachment",
        ),
        pytest.param(long_call, id="call"),
        pytest.param(lambda s: s.runs("Bash", "x", details={"stdout": LONG}, command="cat x"), id="result's details"),
    ],
)
def test_a_line_over_the_limit_that_nobody_typed_is_no_prompt(write: object, tmp_path: Path):
    """
    Its two ends tell who wrote it; what the turn did before stays known.
    """
    session = Session()
    session.prompt("the request", uuid="human")
    session.runs("Edit", "ok", file_path="a.py")
    write(session)  # type: ignore[operator]
    session.says("Done.")

    record = read(session.write(tmp_path), limits=SHORT_LINES)

    assert (record.human_id, record.request, record.skipped) == ("human", "the request", 1)
    assert record.calls[0].name == "Edit"


def test_a_notification_over_the_limit_is_delivered(tmp_path: Path):
    """
    Its first words name the task, and its entry the prompt id.
    """
    session = Session()
    session.prompt("go", prompt_id="p1")
    session.queue("enqueue", notification("b1"))
    session.prompt(notification("b1", result=LONG), origin={"kind": "task-notification"}, prompt_id="p2")

    record = read(session.write(tmp_path), limits=SHORT_LINES)

    assert (record.wakeups_pending, record.ended_tasks, record.prompt_ids) == ((), {"b1"}, ("p1", "p2"))


def test_a_line_over_the_limit_behind_the_prompt_is_not_the_turns(tmp_path: Path):
    """
    What lies before the turn is neither skipped nor out of its reach.
    """
    session = Session()
    session.prompt("first")
    session.runs("Bash", "x" * 100_000, command="cat big")
    session.prompt("second")
    session.says("Done.")

    record = read(session.write(tmp_path), limits=Limits(longest_line=50_000, reach=60_000))

    assert (record.request, record.skipped, record.out_of_reach) == ("second", 0, False)
