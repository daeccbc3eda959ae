"""
The free check: which tasks count, and the sentence that names them.
"""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.stopgate.background import counting, hold_text
from turngate.stopgate.events import BackgroundTask


def a_task(id: str = "b1", type: str = "shell", status: str = "running", **more: str) -> BackgroundTask:  # noqa: A002
    return BackgroundTask(id, type, status, **more)


@pytest.mark.parametrize(
    ("task", "counts"),
    [
        pytest.param(a_task(type="shell"), True, id="a shell"),
        pytest.param(a_task(type="local_bash"), True, id="pitfall 4: a shell under its raw name"),
        pytest.param(a_task(type="subagent"), True, id="a subagent"),
        pytest.param(a_task(type="something_new"), True, id="a type nobody knows"),
        pytest.param(a_task(type=""), True, id="no type"),
        pytest.param(a_task(type="monitor"), False, id="pitfall 3: a monitor never ends"),
        pytest.param(a_task(type="teammate"), False, id="pitfall 2: a teammate is always running"),
        pytest.param(a_task(type="in_process_teammate"), False, id="a teammate under its raw name"),
        pytest.param(a_task(status="pending"), False, id="pending"),
        pytest.param(a_task(status="Running"), False, id="the status is exact"),
        pytest.param(a_task(status="completed"), False, id="completed"),
        pytest.param(a_task(status=""), False, id="no status"),
    ],
)
def test_a_task_counts_by_status_and_type(task: BackgroundTask, counts: bool) -> None:
    """
    Running tasks count, of whatever type, except those that never end or belong to others.
    """
    assert bool(counting([task])) is counts


def test_settings_exempt_more_types_and_commands() -> None:
    """
    A project names its dev servers by patterns on the command, and types that never end.
    """
    tasks = [
        a_task("b1", command="npm run dev -- --port 3000"),
        a_task("b2", command="npm run build"),
        a_task("b3", type="watcher"),
        a_task("b4", command="tail -f app.log"),
    ]

    counted = counting(tasks, exempt_types=["watcher"], exempt_commands=["npm run dev*", "tail -f *"])

    assert [task.id for task in counted] == ["b2"]


def test_names_the_task_and_three_ways_on() -> None:
    """
    The agent reads what runs, and that collecting, stopping or saying so are all right.
    """
    text = hold_text([a_task("b7", "shell", description="Run the slow build", command="make slow")])

    assert text == (
        "Background work of this turn is still running:\n"
        "- b7 (shell): Run the slow build\n"
        "Collect the result before you end the turn; or stop the task with TaskStop if it is no longer needed; "
        "or, if it is meant to keep running, say so plainly and end."
    )


def test_names_five_tasks_and_counts_the_rest() -> None:
    """
    A long list is cut, and what is left out is counted.
    """
    text = hold_text([a_task(f"b{number}") for number in range(8)])

    assert "b4" in text
    assert "b5" not in text
    assert "and 3 more" in text


def test_a_description_is_cut_at_80_characters() -> None:
    """
    One long description does not take the whole text.
    """
    line = hold_text([a_task("b1", description="x" * 200)]).splitlines()[1]

    assert line == f"- b1 (shell): {'x' * 79}…"


def test_a_secret_in_a_command_is_not_repeated() -> None:
    """
    Pitfall 39: what names a task goes to the model and into the log, so it is masked, and masked before it is cut.
    """
    secret = "ghp_" + "a1B2" * 9
    task = a_task("b1", command="x" * 50 + " curl -H 'Authorization: Bearer " + secret + "' http://h/")

    assert secret[:12] not in hold_text([task])


@given(
    st.lists(
        st.builds(
            BackgroundTask,
            id=st.text(st.characters(codec="utf-8"), max_size=300),
            type=st.text(st.characters(codec="utf-8"), max_size=100),
            status=st.just("running"),
            description=st.text(st.characters(codec="utf-8"), max_size=300),
            command=st.text(st.characters(codec="utf-8"), max_size=300),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_the_text_is_never_long_and_has_no_control_characters(tasks: list[BackgroundTask]) -> None:
    """
    At most 600 characters, at most eight lines, whatever the tasks are called.
    """
    text = hold_text(tasks)

    assert len(text) <= 600
    assert len(text.split("\n")) <= 8
    assert all(character == "\n" or unicodedata.category(character) != "Cc" for character in text)
