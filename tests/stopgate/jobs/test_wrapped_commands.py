"""
What wrapping a command changes, and what it does not.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.stopgate.jobs.check import checked

from .job_commands import NOT_BASH, PASSED, REFUSED

ANY = [command for _, command in PASSED] + [refused.command for _, refused in REFUSED]
"""Inside of quotes even a text that is refused is only text."""

WRAPPABLE = [
    refused.command
    for _, refused in REFUSED
    # A here-document or a comment takes in what follows on its last line, and `return` or `exit` is not followed.
    if "<<" not in refused.command and "#" not in refused.command
]

WRAPPED = ("( {} )", "if true; then {}; fi", "run_it() {{ {}; }}; run_it")


def ended(command: str) -> str:
    """
    Give the command without the `;` or line end that a wrapper adds itself.
    """
    return re.sub(r"(?<!\\)[\s;]+\Z", "", command)


@given(command=st.sampled_from(ANY))
def test_a_quoted_command_is_no_command(command: str) -> None:
    """
    In single quotes all of it is one word, whatever it is.
    """
    quoted = "'" + command.replace("'", "'\\''") + "'"

    assert checked(f"echo {quoted}").outcome == "jobs_pass"


@given(command=st.sampled_from(ANY))
def test_a_command_in_a_comment_is_no_command(command: str) -> None:
    """
    Up to the end of its line.
    """
    comment = " ".join(command.split())

    assert checked(f"ls # {comment}\n").outcome == "jobs_pass"


@pytest.mark.parametrize("wrapper", WRAPPED)
def test_a_wrapped_command_is_refused_like_a_bare_one(wrapper: str) -> None:
    """
    In a subshell, in a branch, and in a function that is called: every command of the table.
    """
    wrapped = [_wrapped(command, wrapper) for command in WRAPPABLE]

    assert [command for command in wrapped if checked(command).outcome != "jobs_deny"] == []


def _wrapped(command: str, wrapper: str) -> str:
    text = ended(command)
    return (wrapper.replace("{};", "{}") if re.search(r"(?<!\\)&\Z", text) else wrapper).format(text)


@given(command=st.sampled_from([command for kind, command in PASSED if kind != NOT_BASH]))
def test_a_function_that_is_not_called_starts_nothing(command: str) -> None:
    """
    A definition runs nothing.
    """
    text = ended(command)

    assert checked(f"unused() {{ {text}\n}}; ls").outcome in ("jobs_pass", "jobs_unparsed")


@given(text=st.text(alphabet="ab &|;()<>'\"`$\\\n{}#=x", max_size=40))
def test_any_text_has_an_answer(text: str) -> None:
    """
    Whatever it is, it raises nothing.
    """
    assert checked(text).outcome in ("jobs_pass", "jobs_deny", "jobs_unparsed")
