"""
The evidence of a turn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from turngate.rubric.turn import Check, Facts, Turn
from turngate.stopgate.events import Cron
from turngate.stopgate.evidence.builder import build_turn
from turngate.stopgate.transcript import Record, read

from ..transcripts import Session, notification

SECRET = "ghp_" + "a1B2" * 9


def turn_of(session: Session, folder: Path, **given: Any) -> Turn:
    given.setdefault("reply", "Done.")
    return build_turn(read(session.write(folder)), **given)


def started() -> Session:
    session = Session()
    session.prompt("go")
    return session


def edit(session: Session, file: str = "/home/dev/demo/a.py") -> None:
    session.runs("Edit", "updated", file_path=file)


def check(session: Session, command: str = "pytest -q") -> None:
    session.runs("Bash", "ok", command=command)


def test_a_turn_without_a_record_has_the_reply(tmp_path: Path):
    """
    Where no transcript can be read the judge still sees what the event has.
    """
    turn = build_turn(read(str(tmp_path / "absent")), reply="All tests pass.")

    assert turn == Turn(request="", reply="All tests pass.", facts=Facts())


def test_every_text_is_masked_and_clean(tmp_path: Path):
    """
    Nothing in a turn holds a secret, a control character or a lone surrogate.
    """
    nasty = f"key {SECRET} \x1b[31m\ud800\u202e"
    session = Session()
    session.prompt(nasty)
    session.says(nasty)
    session.prompt(nasty)
    session.runs("Edit", nasty, file_path=f"/home/dev/demo/{nasty}")
    session.runs("Bash", nasty, command=f"pytest {nasty}")
    session.runs("Bash", "", details={"backgroundTaskId": "b1"}, command=nasty)
    session.runs("Agent", "", details={"isAsync": True, "agentId": "a1"}, description=nasty)
    session.queued(nasty)
    session.queued(notification("a1", summary=nasty, result=nasty), "task-notification")

    turn = turn_of(session, tmp_path, reply=nasty, crons=[Cron(nasty, nasty)], holds=[nasty])

    shown = repr(turn)
    assert turn.later_prompts
    assert turn.facts.uncollected_background
    assert "ghp_" not in shown
    assert "a1B2a1B2" not in shown
    for hidden in ("\\x1b", "\\ud800", "\\u202e"):
        assert hidden not in shown


@pytest.mark.parametrize("offset", range(0, 160, 6))
def test_a_secret_at_the_cut_of_the_previous_reply_is_masked_first(offset: int):
    """
    Only the end of it is kept; the cut never leaves half a secret.
    """
    record = Record(previous_reply="x" * 3_000 + f" {SECRET} " + "y " * 950 + "z" * offset)

    assert "a1B2" not in build_turn(record, reply="").previous_reply


def test_huge_prompts_and_replies_are_bounded(tmp_path: Path):
    """
    Pasted logs of megabytes keep their start and their end, so that masking them does not cost the judge its time.
    """
    huge = "Fix this: " + "line\n" * 400_000 + "Thanks!"
    session = Session()
    session.prompt(huge)

    turn = turn_of(session, tmp_path, reply=huge)

    for text in (turn.request, turn.reply):
        assert text.startswith("Fix this:")
        assert text.endswith("Thanks!")
        assert len(text) < 301_000


@pytest.mark.parametrize("length", [299_000, 302_350, 302_450, 309_000, 400_000])
@pytest.mark.parametrize("edge", [100_000, 100_380, 100_400, -202_000, -201_990, -200_000])
def test_a_secret_at_the_edge_of_what_is_masked_is_not_shown(edge: int, length: int):
    """
    Of a huge text the middle is left out with a mark; a secret that the cut goes through is no part of what is kept.
    """
    text = "word " * (length // 5)
    at = edge if edge > 0 else len(text) + edge
    text = f"{text[: at - 20]} {SECRET} {text[at + 22 :]}"

    turn = build_turn(Record(request=text, later_prompts=(text,)), reply=text)

    for shown in (turn.request, turn.reply, *turn.later_prompts):
        assert "ghp_" not in shown
        assert "a1B2" not in shown
        assert ("characters left out" in shown) == (len(text) > 302_410)


def test_the_count_of_a_cut_is_the_requests_own(tmp_path: Path):
    """
    What a prompt of 80,000 characters loses is said once, and right.
    """
    session = Session()
    session.prompt("word " * 16_000)

    assert turn_of(session, tmp_path).request.strip() == "word " * 15_999 + "word"


@pytest.mark.parametrize(
    ("write", "files"),
    [
        pytest.param(lambda s: edit(s), ("a.py",), id="Edit"),
        pytest.param(lambda s: (edit(s), edit(s, "/etc/b")), ("a.py", "/etc/b"), id="two"),
        pytest.param(lambda s: (edit(s), edit(s)), ("a.py",), id="one twice"),
        pytest.param(lambda s: s.runs("Write", "", file_path="c"), ("c",), id="Write"),
        pytest.param(lambda s: s.runs("NotebookEdit", "", notebook_path="n"), ("n",), id="NotebookEdit"),
        pytest.param(lambda s: s.runs("Edit", "no", error=True, file_path="d"), (), id="failed"),
        pytest.param(lambda s: s.calls("Edit", file_path="d"), (), id="no result"),
        pytest.param(lambda s: s.runs("Bash", "", command="sed -i s/a/b/ e"), ("e",), id="by the shell"),
        pytest.param(lambda s: s.runs("Read", "", file_path="f"), (), id="read"),
    ],
)
def test_edited_files_are_those_that_were_written(write: object, files: tuple[str, ...], tmp_path: Path):
    """
    By the call and its result, seen from the working directory.
    """
    session = started()
    write(session)  # type: ignore[operator]

    assert turn_of(session, tmp_path).facts.edited_files == files


@pytest.mark.parametrize(
    ("write", "checks"),
    [
        pytest.param(lambda s: check(s), [Check("pytest -q", passed=True)], id="passed"),
        pytest.param(
            lambda s: check(s, "pytest; echo; sed -i s/a/b/ x; make"),
            [Check("pytest", None, edited_after=True), Check("make", passed=True)],
            id="edited between two in one line",
        ),
        pytest.param(lambda s: (check(s), edit(s)), [Check("pytest -q", True, edited_after=True)], id="edited after it"),
        pytest.param(lambda s: (edit(s), check(s)), [Check("pytest -q", passed=True)], id="edited before it"),
        pytest.param(
            lambda s: (check(s), edit(s), check(s)),
            [Check("pytest -q", True, edited_after=True), Check("pytest -q", passed=True)],
            id="edited after the first",
        ),
        pytest.param(
            lambda s: s.runs("Bash", "Exit code 1\nx", error=True, command="pytest"), [Check("pytest", passed=False)], id="failed"
        ),
        pytest.param(
            lambda s: s.runs("Bash", "x", error=True, command="pytest"), [Check("pytest", None)], id="an error without a number"
        ),
        pytest.param(lambda s: check(s, "pytest | tail"), [Check("pytest", None)], id="behind a pipe"),
        pytest.param(lambda s: s.calls("Bash", command="pytest"), [Check("pytest", None)], id="no result"),
        pytest.param(
            lambda s: s.runs("Bash", "", details={"backgroundTaskId": "b1"}, command="pytest"),
            [Check("pytest", None)],
            id="in the background",
        ),
        pytest.param(
            lambda s: (
                s.runs("Bash", "", details={"backgroundTaskId": "b1"}, command="pytest"),
                s.prompt(notification("b1", summary="Background command completed (exit code 0)")),
            ),
            [Check("pytest", passed=True)],
            id="in the background, and over",
        ),
        pytest.param(
            lambda s: s.runs("Bash", "", details={"interrupted": True}, command="pytest"), [Check("pytest", None)], id="interrupted"
        ),
        pytest.param(
            lambda s: s.runs("Bash", "The user doesn't want to proceed with this tool use. x", error=True, command="pytest"),
            [],
            id="refused, so never run",
        ),
        pytest.param(lambda s: check(s, "ls"), [], id="none"),
        pytest.param(lambda s: check(s, "./verify"), [Check("./verify", passed=True)], id="the project's own"),
    ],
)  # fmt: skip
def test_checks_and_whether_they_passed(write: object, checks: list[Check], tmp_path: Path):
    """
    Yes, no, or not known.
    """
    session = started()
    write(session)  # type: ignore[operator]

    assert list(turn_of(session, tmp_path, checks=["./verify*"]).facts.checks) == checks


def interrupted(session: Session) -> None:
    session.runs("Bash", "", details={"interrupted": True}, command="pytest")


def turned_away(session: Session) -> None:
    session.runs("Bash", "<tool_use_error>Sibling tool call errored</tool_use_error>", error=True, command="pytest")


def wrote_and_failed(session: Session) -> None:
    session.runs("Bash", "Exit code 1\nx", error=True, command="cat > a.py <<E\nx\nE\npython a.py")


@pytest.mark.parametrize(
    "said",
    [
        "Sibling tool call errored",
        "InputValidationError: Bash failed due to the following issue: x",
        "Cancelled",
        "Cancelled: parallel tool call Bash(ls) errored",
        "This command requires approval",
        "AbortError",
        "Error: No such tool available: Bash",
        "Error: PreToolUse:Bash hook error: [x]: no",
        "cd in '/x' was blocked. For security, only allowed folders may be entered.",
        "This Bash command contains multiple operations. The following part requires approval: x",
        'Working directory "/x" no longer exists. Restart.',
    ],
)
@pytest.mark.parametrize("form", ["{}", "<tool_use_error>{}</tool_use_error>"])
def test_a_check_that_was_not_run_has_not_failed(said: str, form: str, tmp_path: Path):
    """
    The client gives it an error, and no exit code.
    """
    session = started()
    session.runs("Bash", form.format(said), error=True, command="pytest")

    assert not [check for check in turn_of(session, tmp_path).facts.checks if check.passed is not None]


@pytest.mark.parametrize(
    "said",
    [
        "cd in '/x' was blocked. For security, only allowed folders may be entered.",
        "This Bash command contains multiple operations. The following part requires approval: x",
        'Working directory "/x" no longer exists. Restart.',
        "<tool_use_error>Blocked: sleep 9</tool_use_error>",
        "<tool_use_error>Anything else</tool_use_error>",
    ],
)
def test_a_check_that_the_client_turned_away_checks_no_edit(said: str, tmp_path: Path):
    """
    The edit before it still stands after the last check.
    """
    session = started()
    check(session)
    edit(session)
    session.runs("Bash", said, error=True, command="pytest")

    assert turn_of(session, tmp_path).facts.edited_after_last_check is True


@pytest.mark.parametrize("tool", ["Write", "Bash"])
@pytest.mark.parametrize(
    ("file", "cwd", "is_work"),
    [
        pytest.param("/tmp/x.py", "/home/dev/demo", False, id="temporary"),
        pytest.param("/private/tmp/x.py", "/home/dev/demo", False, id="temporary on macOS"),
        pytest.param("/var/folders/a/x.py", "/home/dev/demo", False, id="temporary of a user on macOS"),
        pytest.param("/scratch/x.py", "/home/dev/demo", False, id="in TMPDIR"),
        pytest.param("~/.claude/x.md", "/home/dev/demo", False, id="the client's own"),
        pytest.param("/home/other/.claude/plans/x.md", "/home/dev/demo", False, id="a plan"),
        pytest.param("/tmp/demo/x.py", "/tmp/demo", True, id="work in a temporary folder"),
        pytest.param("/tmp/demo/x.py", "/private/tmp/demo", True, id="work behind a link of macOS"),
        pytest.param("x.py", "/tmp/demo", True, id="relative work in a temporary folder"),
        pytest.param("/tmp/demo2/x.py", "/tmp/demo", False, id="a folder of a longer name"),
        pytest.param("/home/dev/demo/.claude/x.md", "/home/dev/demo", True, id="the project's own settings"),
        pytest.param("/home/dev/other/x.py", "/home/dev/demo", True, id="another project"),
    ],
)
def test_scratch_outside_the_working_directory_is_no_edit(
    tool: str, file: str, cwd: str, is_work: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """
    By one rule for tools and the shell: temporary files and the client's own are not the work.
    """
    monkeypatch.setenv("TMPDIR", "/scratch/")
    session = started()
    check(session)
    given: dict[str, Any] = {"file_path": file} if tool == "Write" else {"command": f"echo a > {file}"}
    session.runs(tool, "", **given)

    facts = turn_of(session, tmp_path, cwd=cwd).facts

    assert bool(facts.edited_files) is is_work
    assert facts.edited_after_last_check is (True if is_work else None)


@pytest.mark.parametrize(("code", "passed"), [(0, True), (1, False), (None, None)])
def test_the_exit_code_of_a_background_check_may_be_collected(code: int | None, passed: object, tmp_path: Path):
    """
    A task that is read to its end tells how it ended.
    """
    session = started()
    session.runs("Bash", "", details={"backgroundTaskId": "b1"}, command="pytest")
    task = {"task_id": "b1", "status": "completed", "exitCode": code}
    session.runs("TaskOutput", "x", details={"retrieval_status": "success", "task": task}, task_id="b1")

    assert turn_of(session, tmp_path).facts.checks == (Check("pytest", passed),)  # type: ignore[arg-type]


def test_calls_that_a_record_only_counts_are_counted():
    """
    By tool, where they stood.
    """
    calls = build_turn(Record(calls_left_out={"Read": 3, "Bash": 1}), reply="").tool_calls

    assert [call.line for call in calls] == ["Read", "Read", "Read", "Bash"]


@pytest.mark.parametrize(
    ("steps", "after"),
    [
        pytest.param([edit, check], False, id="checked afterwards"),
        pytest.param([check, edit], True, id="edited afterwards"),
        pytest.param([edit, check, edit], True, id="edited again"),
        pytest.param([check, edit, interrupted], True, id="a check after it was broken off"),
        pytest.param([check, edit, turned_away], True, id="a check after it never ran"),
        pytest.param([edit, interrupted], None, id="no check that ended"),
        pytest.param([lambda s: check(s, "pytest && sed -i s/a/b/ x")], True, id="edited afterwards in one line"),
        pytest.param([lambda s: check(s, "sed -i s/a/b/ x && pytest")], False, id="checked afterwards in one line"),
        pytest.param([check, wrote_and_failed], True, id="edited by a line that failed"),
        pytest.param([edit], None, id="no check"),
        pytest.param([check], None, id="no edit"),
        pytest.param([], None, id="neither"),
    ],
)
def test_whether_an_edit_came_after_the_last_check(steps: list[object], after: bool | None, tmp_path: Path):
    """
    Not known where nothing was edited or no command is recognised as a check.
    """
    session = started()
    for step in steps:
        step(session)  # type: ignore[operator]

    assert turn_of(session, tmp_path).facts.edited_after_last_check is after


def launch(session: Session) -> None:
    session.runs("Bash", "", details={"backgroundTaskId": "b1"}, command="make all", description="The build")


@pytest.mark.parametrize(
    ("write", "given", "lost"),
    [
        pytest.param(lambda s: None, {}, ("b1: The build",), id="neither running nor heard of"),
        pytest.param(lambda s: None, {"running_task_ids": {"b1"}}, (), id="running"),
        pytest.param(lambda s: s.queue("enqueue", notification("b1")), {}, (), id="notification waits"),
        pytest.param(lambda s: s.prompt(notification("b1")), {}, (), id="notified"),
        pytest.param(lambda s: s.runs("TaskStop", "ok", task_id="b1"), {}, (), id="stopped"),
        pytest.param(lambda s: s.runs("KillShell", "ok", shell_id="b1"), {}, (), id="killed"),
        pytest.param(
            lambda s: s.runs("TaskOutput", "x", details={"task": {"task_id": "b1", "status": "completed"}}, task_id="b1"),
            {},
            (),
            id="read to its end",
        ),
        pytest.param(
            lambda s: s.runs("BashOutput", "<status>running</status>", bash_id="b1"), {}, ("b1: The build",), id="looked at"
        ),
        pytest.param(
            lambda s: (s.prompt(notification("b1")), s.runs("SendMessage", "sent", to="b1")),
            {},
            ("b1: The build",),
            id="resumed after its end",
        ),
    ],
)  # fmt: skip
def test_background_work_that_nobody_collected(
    write: object, given: dict[str, Any], lost: tuple[str, ...], tmp_path: Path
):
    """
    Launched in this turn, and then neither running, nor notified, nor read to its end, nor stopped.
    """
    session = started()
    launch(session)
    write(session)  # type: ignore[operator]

    assert turn_of(session, tmp_path, **given).facts.uncollected_background == lost


def test_the_events_own_facts(tmp_path: Path):
    """
    Wake-ups, holds and the permission mode come from the event and the store.
    """
    session = started()
    session.attachment("plan_mode")

    facts = turn_of(session, tmp_path, crons=[Cron("*/15 * * * *", "check\nagain")], holds=["No test ran."]).facts

    assert facts.wakeups == ("*/15 * * * *: check again",)
    assert facts.holds == ("No test ran.",)
    assert facts.plan_mode
    assert not turn_of(session, tmp_path, permission_mode="default").facts.plan_mode
    assert turn_of(started(), tmp_path, permission_mode="plan").facts.plan_mode


@pytest.mark.parametrize("record", [Record(out_of_reach=True), Record(skipped=1)])
def test_what_is_out_of_reach_is_said(record: Record):
    """
    A cut record proves nothing by what it does not show.
    """
    assert build_turn(record, reply="").facts.calls_out_of_reach


def test_thinking_and_memory_never_reach_the_turn(tmp_path: Path):
    """
    Nor do other agents' entries, skills, or what hooks say.
    """
    session = started()
    session.block({"type": "thinking", "thinking": "HIDDEN"})
    session.block({"type": "redacted_thinking", "data": "HIDDEN"})
    session.prompt("HIDDEN", isMeta=True)
    session.prompt("HIDDEN", isSidechain=True)
    session.says("HIDDEN", isSidechain=True)
    session.attachment("nested_memory", content="HIDDEN")
    session.attachment("hook_additional_context", hookEvent="Stop", content=["HIDDEN"])
    session.says("Done.")

    assert "HIDDEN" not in repr(turn_of(session, tmp_path))
