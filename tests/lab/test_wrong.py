"""
`turngate wrong`: a verdict that a person calls wrong becomes a labelled case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from turngate.costing.outcomes import Outcome
from turngate.costing.records import DecisionLine, FindingLine
from turngate.judge.judgement import Judgement
from turngate.lab.cases import Case, read_cases
from turngate.lab.commands.wrong import main
from turngate.lab.wrong import FILE_NAME
from turngate.stopgate.events import BackgroundTask
from turngate.stopgate.settings import Settings

from ..stopgate.gate_stage import CLAIM, NOW, OPENER, REPLY, TASK, Gate, judged


class Said(NamedTuple):
    """
    What the command printed and gave.
    """

    code: int
    stdout: str
    stderr: str


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    found = Gate(tmp_path)
    yield found
    found.database.close()


Wrong = Callable[..., Said]


@pytest.fixture
def wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Wrong:
    """
    Give what runs the command on the gate's store.
    """
    environ = {"TURNGATE_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}

    def runs(*arguments: str) -> Said:
        code = main(arguments, environ)
        stdout, stderr = capsys.readouterr()
        return Said(code, stdout, stderr)

    return runs


def stopped(gate: Gate, answer: Judgement, **fields: Any) -> str:
    """
    Stop, and give the decision's id.
    """
    gate.answer = answer
    gate.stop(**fields)
    return gate.decisions[-1].line.id


def cases(gate: Gate) -> list[Case]:
    return read_cases(gate.folder / "state" / FILE_NAME)


def noted(gate: Gate) -> list[tuple[str, str, str]]:
    assert gate.store.ledger is not None
    return [(line.decision_id, line.label, line.note) for line in gate.store.ledger.labels()]


def test_a_wrong_hold_is_a_clean_case_with_the_turn_that_was_judged(gate: Gate, wrong: Wrong) -> None:
    """
    The turn is that which the judge saw, from the transcript; the file is for its owner alone, and `read_cases` takes it.
    """
    decision = stopped(gate, judged(CLAIM))

    said = wrong(decision[:12], "--note", "they ran\x1b[2J elsewhere")

    file = gate.folder / "state" / FILE_NAME
    (case,) = cases(gate)
    assert said == (0, f"{decision} is noted as wrong, and is a case now (labels: none): {file}\n", "")
    assert file.stat().st_mode & 0o777 == 0o600
    assert case.turn == gate.asked[0]
    assert (case.id, case.labels, case.confidence) == (f"wrong-{decision}", [], "medium")
    assert (case.source, case.session, case.tags, case.rationale) == (
        "turngate wrong",
        "s1",
        ["wrong"],
        "they ran elsewhere",
    )
    assert noted(gate) == [(decision, "none", "they ran elsewhere")]


def test_an_earlier_turn_is_found_among_later_ones(gate: Gate, wrong: Wrong) -> None:
    """
    The session went on, with another reply under the same prompt; the turn is still the one that was judged.
    """
    decision = stopped(gate, judged(CLAIM))
    gate.session.held("No test ran.")
    gate.session.runs("Bash", "2 passed", command="pytest -q")
    gate.session.says("Ran them: 2 passed.")
    gate.session.prompt("And now delete it", prompt_id="p2")
    gate.session.says(REPLY)
    gate.session.write(gate.folder)

    wrong(decision)

    assert cases(gate)[0].turn == gate.asked[0]


def test_what_the_turn_was_held_for_is_among_the_facts(gate: Gate, wrong: Wrong) -> None:
    """
    Of two holds of a turn, the second's judge knew of the first, and the first's of none.
    """
    gate.session.prompt("Write it", prompt_id="p2")
    gate.session.says(REPLY)
    first = stopped(gate, judged(CLAIM), prompt_id="p2")
    gate.session.held(CLAIM.reason)
    gate.session.says("I looked. All tests pass.")
    second = stopped(gate, judged(CLAIM), prompt_id="p2", reply="I looked. All tests pass.")

    wrong(first)
    wrong(second)

    assert [case.turn for case in cases(gate)] == gate.asked
    assert [case.turn.facts.holds for case in cases(gate)] == [(), (CLAIM.reason,)]


def test_a_recorded_turn_needs_no_transcript(gate: Gate, wrong: Wrong) -> None:
    """
    What was recorded is what was judged.
    """
    gate.settings = Settings(record_turns=True)
    decision = stopped(gate, judged(CLAIM))
    (gate.folder / "session.jsonl").unlink()

    assert wrong(decision).code == 0
    assert cases(gate)[0].turn == gate.asked[0]


def test_of_a_turn_that_is_gone_the_label_alone_is_noted(gate: Gate, wrong: Wrong) -> None:
    """
    It says why there is no case.
    """
    decision = stopped(gate, judged(CLAIM))
    path = gate.folder / "session.jsonl"
    path.unlink()

    gone = wrong(decision)
    path.write_text("")
    empty = wrong(decision)

    assert (gone.code, gone.stdout.startswith(f"{decision} is noted as wrong (labels: none), but is no case: ")) == (
        0,
        True,
    )
    assert "the transcript is gone: " in gone.stdout
    assert "the transcript has no such reply any more" in empty.stdout
    assert noted(gate) == [(decision, "none", "")]
    assert not (gate.folder / "state" / FILE_NAME).exists()


@pytest.mark.parametrize(
    ("answer", "faults", "labels"),
    [
        pytest.param(judged(CLAIM, OPENER), [], [], id="all that it found is not there"),
        pytest.param(judged(CLAIM, OPENER), ["opener"], ["claim"], id="one of them is not there"),
        pytest.param(judged(CLAIM), ["promise"], ["claim", "promise"], id="it missed one more"),
        pytest.param(judged(CLAIM), ["claim", "promise"], ["promise"], id="it took one for another"),
        pytest.param(judged(), ["claim"], ["claim"], id="it missed the only one"),
    ],
)
def test_the_labels_are_what_the_person_says(
    gate: Gate, wrong: Wrong, answer: Judgement, faults: list[str], labels: list[str]
) -> None:
    """
    Of a named fault the verdict is wrong: found, it is not there; not found, it is.
    """
    decision = stopped(gate, answer)

    said = wrong(decision, *(word for fault in faults for word in ("--fault", fault)))

    assert said.code == 0
    assert cases(gate)[0].labels == labels
    assert noted(gate) == [(decision, ",".join(labels) or "none", "")]


def test_said_twice_the_newest_counts(gate: Gate, wrong: Wrong) -> None:
    """
    One case for a decision, in the place of the one before; the cases of others, and lines that are none, stay.
    """
    first, second = stopped(gate, judged(CLAIM)), stopped(gate, judged(OPENER))
    file = gate.folder / "state" / FILE_NAME
    wrong(first, "--note", "of old")
    wrong(second)
    with file.open("a") as out:
        out.write('{"half": ')

    wrong(first, "--fault", "promise", "--note", "anew")

    lines = file.read_text().splitlines()
    assert lines[1] == '{"half": '
    file.write_text("\n".join([lines[0], lines[2]]))
    assert [(case.id, case.labels, case.rationale) for case in cases(gate)] == [
        (f"wrong-{second}", [], ""),
        (f"wrong-{first}", ["claim", "promise"], "anew"),
    ]
    assert noted(gate) == [(second, "none", ""), (first, "claim,promise", "anew")]


@pytest.mark.parametrize(
    ("outcome", "arguments", "said"),
    [
        pytest.param("pass_clean", [], "found no fault: say with --fault which one it missed", id="clean, no fault named"),
        pytest.param("pass_clean", ["--fault", "lie"], "--fault 'lie': no such fault: expected one of claim", id="unknown"),
        pytest.param("block_background", ["--fault", "claim"], "(block_background) was made without a judge", id="a task"),
        pytest.param("pass_empty_reply", ["--fault", "claim"], "(pass_empty_reply) was made without a judge", id="empty"),
        pytest.param("pass_judge_timeout", [], "(pass_judge_timeout) was made without a judge", id="no verdict"),
        pytest.param("jobs_deny", [], "(jobs_deny) was made without a judge", id="a job"),
    ],
)  # fmt: skip
def test_what_is_no_verdict_cannot_be_wrong(
    gate: Gate, wrong: Wrong, outcome: Outcome, arguments: list[str], said: str
) -> None:  # fmt: skip
    """
    One line and exit code 2; nothing is noted.
    """
    assert gate.store.ledger is not None
    gate.store.ledger.record_decision(DecisionLine(NOW, "Stop", outcome, id="d1"))

    told = wrong("d1", *arguments)

    assert (told.code, told.stdout, told.stderr.count("\n")) == (2, "", 1)
    assert said in told.stderr
    assert noted(gate) == []


def test_an_unknown_id_is_told(gate: Gate, wrong: Wrong, tmp_path: Path) -> None:
    """
    So is one that begins more than one id; with no ledger at all none is made.
    """
    assert gate.store.ledger is not None
    for decision in ("ab1", "ab2"):
        gate.store.ledger.record_decision(DecisionLine(NOW, "Stop", "pass_clean", id=decision))

    assert "no decision 'zz': `turngate log` lists the latest" in wrong("zz").stderr
    assert "'ab' begins more than one id: ab1, ab2" in wrong("ab").stderr
    nowhere = {"TURNGATE_STATE_DIR": str(tmp_path / "none"), "HOME": str(tmp_path)}
    assert main(["zz"], nowhere) == 2
    assert not (tmp_path / "none").exists()


def test_a_fault_of_a_rubric_of_ones_own_can_be_taken_back(gate: Gate, wrong: Wrong) -> None:
    """
    What a verdict found is known to it, whatever the rubric of today says.
    """
    assert gate.store.ledger is not None
    finding = FindingLine("boast", "Done.", "It boasts.", held=True)
    line = DecisionLine(NOW, "Stop", "block_verdict", id="d1", findings=(finding,))
    gate.store.ledger.record_decision(line)

    assert wrong("d1", "--fault", "boast").stdout == (
        "d1 is noted as wrong (labels: none), but is no case: the client named no transcript\n"
    )


def test_a_reply_written_after_the_decision_is_not_its_own(gate: Gate, wrong: Wrong) -> None:
    """
    Of two replies of the same length under one prompt, the newest that stood there at the stop is taken.
    """
    decision = stopped(gate, judged())
    at = gate.decisions[-1].line.at
    early, late = ((at + timedelta(seconds=seconds)).isoformat() for seconds in (-2, 30))
    session = type(gate.session)()
    session.prompt("Write retry.ts", prompt_id="p1")
    session.says("First".ljust(len(REPLY), "."), timestamp=early)
    session.held("No test ran.")
    session.says("Later".ljust(len(REPLY), "."), timestamp=late)
    session.write(gate.folder)

    wrong(decision, "--fault", "promise")

    assert cases(gate)[0].turn.reply.startswith("First")


@pytest.mark.parametrize("prompt", ["p2", ""], ids=["another prompt", "no prompt"])
def test_a_reply_to_another_prompt_is_not_taken(gate: Gate, wrong: Wrong, prompt: str) -> None:
    """
    However it fits otherwise: a case of other words would be labelled with what was said of these.
    """
    decision = stopped(gate, judged(CLAIM))
    session = type(gate.session)()
    session.prompt("Write retry.ts", **({"prompt_id": prompt} if prompt else {}))
    session.says(REPLY)
    session.write(gate.folder)

    told = wrong(decision)

    assert "but is no case: the transcript has no such reply any more\n" in told.stdout
    assert not (gate.folder / "state" / FILE_NAME).exists()


def test_a_reply_without_the_words_that_were_found_is_not_taken(gate: Gate, wrong: Wrong) -> None:
    """
    Of two replies of the same length under one prompt, the one that holds the quotes is; with none, there is no case.
    """
    decision = stopped(gate, judged(CLAIM))
    other = "x" * len(REPLY)
    gate.session.held("No test ran.")
    gate.session.says(other)
    gate.session.write(gate.folder)
    assert wrong(decision).code == 0
    assert cases(gate)[0].turn.reply == REPLY

    session = type(gate.session)()
    session.prompt("Write retry.ts", prompt_id="p1")
    session.says(other)
    session.write(gate.folder)
    (gate.folder / "state" / FILE_NAME).unlink()

    assert "but is no case: the transcript has no such reply any more\n" in wrong(decision).stdout


def test_a_reply_with_a_secret_in_what_was_found_is_found_again(gate: Gate, wrong: Wrong) -> None:
    """
    The quote was stored without the secret.
    """
    reply = "Set API_TOKEN=ghp_" + "a1B2" * 9 + " and it works."
    gate.session.prompt("Set it", prompt_id="p2")
    gate.session.says(reply)
    decision = stopped(gate, judged(CLAIM._replace(quote=reply)), prompt_id="p2", reply=reply)
    assert gate.decisions[-1].line.findings[0].quote != reply

    wrong(decision)

    assert cases(gate)[0].turn == gate.asked[-1]


def test_other_lines_stay_byte_for_byte(gate: Gate, wrong: Wrong) -> None:
    """
    Whatever bytes they are, and with no end of the last; a link to the file stays a link.
    """
    decision = stopped(gate, judged(CLAIM))
    foreign = b'{"id": "x", "of": "\xff\xfe"}\r\n\n\x00\x85 \xc2\x85'
    target = gate.folder / "elsewhere.jsonl"
    target.write_bytes(foreign)
    file = gate.folder / "state" / FILE_NAME
    file.symlink_to(target)

    wrong(decision)
    wrong(decision, "--note", "anew")

    assert file.is_symlink()
    written = target.read_bytes()
    assert written.startswith(foreign + b"\n")
    assert written.count(b"\n") == 4


def test_a_task_that_ran_at_the_stop_is_not_called_uncollected(gate: Gate, wrong: Wrong) -> None:
    """
    The facts of the case are those that the judge saw.
    """
    gate.session.prompt("Build it", prompt_id="p2")
    gate.session.runs("Bash", "running", command="make", run_in_background=True, details={"backgroundTaskId": "b1"})
    gate.session.says(REPLY)
    gate.settings = Settings(background_mode="off")
    task: BackgroundTask = TASK
    decision = stopped(gate, judged(CLAIM), prompt_id="p2", tasks=(task,))

    wrong(decision)

    assert cases(gate)[0].turn == gate.asked[0]


def mark_elsewhere(gate: Gate, decision: str, label: str) -> None:
    """
    Write a label as the dashboard does: into the ledger alone.
    """
    assert gate.store.ledger is not None
    gate.store.ledger.label(decision, label, NOW, "in the\nbrowser")


def test_without_an_id_it_is_the_last_hold_of_the_project(
    gate: Gate, wrong: Wrong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    That of the folder, or of the nearest above it; a pass, and a hold of another project, are not meant. It says what it took.
    """
    project, below = tmp_path / "project", tmp_path / "project" / "src"
    below.mkdir(parents=True)
    held = stopped(gate, judged(CLAIM), project=str(project))
    stopped(gate, judged(), project=str(project), session_id="s2")
    stopped(gate, judged(CLAIM), project="/home/dev/other", session_id="s3")
    monkeypatch.chdir(below)

    said = wrong()

    first, second = said.stdout.splitlines()
    assert first == (
        f"The last hold of this project: {held}, 2026-11-30 12:01 UTC, block_verdict: claim 'All tests pass.'"
    )
    assert second.startswith(f"{held} is noted as wrong, and is a case now (labels: none): ")
    assert noted(gate) == [(held, "none", "")]


def test_the_client_names_the_project(gate: Gate, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    By `CLAUDE_PROJECT_DIR`, wherever its shell is; where nothing of it was held, that is told and nothing noted.
    """
    held = stopped(gate, judged(CLAIM), project="/home/dev/one")
    environ = {"TURNGATE_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}

    codes = [main([], environ | {"CLAUDE_PROJECT_DIR": project}) for project in ("/home/dev/two", "/home/dev/one")]

    assert codes == [2, 0]
    assert capsys.readouterr().err == (
        "turngate: no stop of /home/dev/two was held: name a decision, as `turngate log` lists them\n"
    )
    assert [decision for decision, *_ in noted(gate)] == [held]


def test_the_beginning_of_an_id_means_the_hold(gate: Gate, wrong: Wrong) -> None:
    """
    Of two installs that decided in the same millisecond, the one that held told its id.
    """
    assert gate.store.ledger is not None
    held = stopped(gate, judged(CLAIM))
    gate.store.ledger.record_decision(DecisionLine(NOW, "Stop", "pass_state_error", id=held[:9] + "zzzzzz"))

    assert wrong(held[:9]).stdout.startswith(f"{held} is noted as wrong")


@pytest.mark.parametrize("mode", ["block", "shadow"])
def test_a_hold_for_running_work_is_noted_and_no_case(gate: Gate, wrong: Wrong, mode: str) -> None:
    """
    It counts as a wrong hold; what to do against the next one is told.
    """
    gate.settings = Settings(gate_mode=mode)  # pyright: ignore[reportArgumentType]
    decision = stopped(gate, judged(), tasks=(TASK,))

    said = wrong(decision, "--note", "a server")

    assert said.code == 0
    assert "`background.exempt_commands`" in said.stdout
    assert noted(gate) == [(decision, "none", "a server")]
    assert not (gate.folder / "state" / FILE_NAME).exists()
    assert wrong("--collect").stdout == "Every decision that was marked is a case already.\n"


def test_what_was_marked_elsewhere_is_collected(gate: Gate, wrong: Wrong) -> None:
    """
    As it would have been here; a second time there is nothing to do, byte for byte.
    """
    one, two = stopped(gate, judged(CLAIM)), stopped(gate, judged(CLAIM, OPENER))
    mark_elsewhere(gate, one, "none")
    mark_elsewhere(gate, two, "claim,opener")

    first = wrong("--collect")
    file = gate.folder / "state" / FILE_NAME
    written = file.read_bytes()
    second = wrong("--collect")

    assert first == (0, f"{one}, marked elsewhere, is a case now\n{two}, marked elsewhere, is a case now\n", "")
    assert [(case.id, case.labels, case.source, case.rationale) for case in cases(gate)] == [
        (f"wrong-{one}", [], "turngate wrong", "in the browser"),
        (f"right-{two}", ["claim", "opener"], "turngate right", "in the browser"),
    ]
    assert [case.turn for case in cases(gate)] == gate.asked
    assert second == (0, "Every decision that was marked is a case already.\n", "")
    assert file.read_bytes() == written


def test_a_label_that_was_changed_elsewhere_changes_the_case(gate: Gate, wrong: Wrong) -> None:
    """
    One that was taken back takes the case out; the turn of a case need not be found again.
    """
    assert gate.store.ledger is not None
    one, two = stopped(gate, judged(CLAIM)), stopped(gate, judged(CLAIM))
    wrong(one)
    wrong(two)
    (gate.folder / "session.jsonl").unlink()
    mark_elsewhere(gate, one, "promise")
    gate.store.ledger.unlabel(two)

    assert wrong("--collect").stdout == (
        f"{one}, marked elsewhere, is a case now\n{two} is no case any more: what was said of it was taken back\n"
    )
    assert [(case.id, case.labels) for case in cases(gate)] == [(f"wrong-{one}", ["promise"])]


def test_a_case_outlives_its_decision(gate: Gate, wrong: Wrong) -> None:
    """
    What the ledger forgot with its label was not taken back.
    """
    decision = stopped(gate, judged(CLAIM))
    wrong(decision)
    with gate.database.write() as transaction:
        transaction.execute("DELETE FROM decisions")
        transaction.execute("DELETE FROM labels")

    assert wrong("--collect").stdout == "Every decision that was marked is a case already.\n"
    assert [case.id for case in cases(gate)] == [f"wrong-{decision}"]


def test_what_cannot_be_collected_is_told_with_its_reason(gate: Gate, wrong: Wrong) -> None:
    """
    Each time that one asks, and not beside another decision.
    """
    lost = stopped(gate, judged(CLAIM), transcript_path="/home/dev/gone.jsonl")
    mark_elsewhere(gate, lost, "none")
    mark_elsewhere(gate, "forgotten", "none")
    other = stopped(gate, judged(CLAIM), session_id="s2")

    beside, asked = wrong(other), wrong("--collect")

    assert beside.stdout.count("\n") == 1
    assert sorted(asked.stdout.splitlines()) == sorted(
        [
            f"{lost} is no case: the transcript is gone: No such file or directory",
            "forgotten is no case: the ledger has no such decision any more",
        ]
    )
    assert wrong("--collect", other).code == 2


def test_marking_one_collects_the_others(gate: Gate, wrong: Wrong) -> None:
    """
    It says which.
    """
    one, two = stopped(gate, judged(CLAIM)), stopped(gate, judged(CLAIM))
    mark_elsewhere(gate, one, "none")

    said = wrong(two)

    assert said.stdout.endswith(f"\n{one}, marked elsewhere, is a case now\n")
    assert [case.id for case in cases(gate)] == [f"wrong-{two}", f"wrong-{one}"]
