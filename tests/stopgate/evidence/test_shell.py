"""
A shell command as the simple commands that it runs.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.stopgate.evidence.shell import commands


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("a b", [["a", "b"]], id="one"),
        pytest.param("a && b || c ; d | e & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]], id="operators"),
        pytest.param("a\nb", [["a"], ["b"]], id="lines"),
        pytest.param("a &&\n b \\\n c", [["a"], ["b", "c"]], id="continued lines"),
        pytest.param("(a; b) && { c; }", [["a"], ["b"], ["c"]], id="groups"),
        pytest.param("X=1 Y='2 3' a Z=4", [["a", "Z=4"]], id="assignments in front"),
        pytest.param("a 'b && c' \"d | e\" f\\ g", [["a", "b && c", "d | e", "f g"]], id="quotes"),
        pytest.param('a "b \\" c" d', [["a", 'b " c', "d"]], id="escaped quote"),
        pytest.param("a 2>&1 >out <in b", [["a", "b"]], id="redirections"),
        pytest.param("a # b && c\nd", [["a"], ["d"]], id="comment"),
        pytest.param("a b#c", [["a", "b#c"]], id="a hash inside a word"),
        pytest.param("cat <<EOF\nx && y\nEOF\nb", [["cat"], ["b"]], id="here-document"),
        pytest.param("cat <<-'E F'\n\tx & y\n\tE F\nb", [["cat"], ["b"]], id="indented here-document"),
        pytest.param("a $(b; c) `d; e` ${f:-;}", [["a", "$(b; c)", "`d; e`", "${f:-;}"]], id="substitutions"),
        pytest.param('a "$(b "c;d")"', [["a", '$(b "c;d")']], id="quotes in a substitution"),
        pytest.param("if a; then b; fi; while c; do d; done", [["a"], ["b"], ["c"], ["d"]], id="keywords"),
        pytest.param("a 'unclosed && b", [["a", "unclosed && b"]], id="unclosed quote"),
        pytest.param("", [], id="empty"),
        pytest.param("  ;; && ", [], id="operators alone"),
    ],
)
def test_a_line_is_split_as_the_shell_splits_it(line: str, words: list[list[str]]):
    """
    Quotes, groups, comments and here-documents count; what stands in a substitution is part of a word.
    """
    assert [list(command.words) for command in commands(line)] == words


@pytest.mark.parametrize(
    ("line", "then"),
    [
        pytest.param("a && b", ["&&", ""], id="and"),
        pytest.param("a; b;", [";", ""], id="semicolons"),
        pytest.param("(a; b) | c", [";", "|", ""], id="behind a group"),
        pytest.param("a |& b || c & d", ["|&", "||", "&", ""], id="others"),
        pytest.param("a \n\n b", ["\n", ""], id="empty lines"),
    ],
)
def test_each_command_knows_what_follows_it(line: str, then: list[str]):
    """
    By what follows, one knows whose exit status the line has.
    """
    assert [command.then for command in commands(line)] == then


def test_files_written_by_redirection_are_known():
    """
    Descriptors are no files.
    """
    (command,) = commands("a > x 2>>y &>z 2>&1 >&2 < w")

    assert command.writes_to == ("x", "y", "z")


def test_a_negated_command_is_marked():
    """
    Its status is turned round.
    """
    assert [command.negated for command in commands("! a; b")] == [True, False]


@given(st.text(alphabet="ab '\"\\$(){}`;&|<>\n#=EOF", max_size=60))
def test_no_line_raises(line: str):
    """
    What does not parse is words.
    """
    commands(line)
