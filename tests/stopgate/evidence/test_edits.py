"""
Whether a command edits files.
"""

from __future__ import annotations

import pytest

from turngate.stopgate.evidence.edits import edits_in


@pytest.mark.parametrize(
    ("line", "files"),
    [
        pytest.param("sed -i 's/a/b/' x.py y.py", ("x.py", "y.py"), id="sed"),
        pytest.param("cat > x.py <<'EOF'\na > b\nEOF", ("x.py",), id="cat"),
        pytest.param("echo a >> x.md", ("x.md",), id="echo"),
        pytest.param("echo a | tee out.txt", ("out.txt",), id="tee"),
        pytest.param("cat a b | sudo tee -a out.txt", ("out.txt",), id="tee as root"),
        pytest.param("cat <<EOF | tee x.py\na\nEOF", ("x.py",), id="tee of a here-document"),
        pytest.param("tee x.py <<'EOF'\na | b\nEOF", ("x.py",), id="tee with a here-document"),
        pytest.param("make | tee out.txt", None, id="tee that keeps a log"),
        pytest.param("ls | tee out.txt", None, id="tee of a list"),
        pytest.param("pytest 2>&1 |& tee out.txt", None, id="tee that keeps both streams"),
        pytest.param("sed -i -e s/a/b/ -e s/c/d/ x.py", ("x.py",), id="sed with options"),
        pytest.param("sed -i '' s/a/b/ x.py", ("x.py",), id="sed of BSD"),
        pytest.param("patch --dry-run -p1 < x", None, id="patch that only tries"),
        pytest.param("git apply x.patch", (), id="git apply"),
        pytest.param("git checkout -- a.py", (), id="git checkout"),
        pytest.param("git stash pop", (), id="git stash"),
        pytest.param("patch -p1 < x", (), id="patch"),
        pytest.param("sed s/a/b/ x.py", None, id="sed that prints"),
        pytest.param("pytest > out.log 2>&1", None, id="a log"),
        pytest.param("echo a > /dev/null", None, id="the null device"),
        pytest.param("cat > /tmp/x", None, id="a temporary file"),
        pytest.param("git checkout -b x", None, id="a new branch"),
        pytest.param("git commit -m 'sed -i x'", None, id="a message"),
        pytest.param("perl -pi -e s/a/b/ x.py", ("x.py",), id="perl"),
        pytest.param("perl -i.bak -pe s/a/b/ x.py", ("x.py",), id="perl that keeps a copy"),
        pytest.param("perl -Mstrict -ne print x.py", None, id="perl that prints"),
        pytest.param("sed -E -i '' s/a/b/ x.py", ("x.py",), id="sed of BSD with an option before"),
        pytest.param("git cherry-pick x", (), id="git cherry-pick"),
        pytest.param("git mv a b", (), id="git mv"),
        pytest.param("git rm --cached a", None, id="git rm of the index alone"),
        pytest.param("git pull", None, id="git pull, which may bring nothing"),
        pytest.param("black .", None, id="a formatter, which may change nothing"),
        pytest.param("rm -rf .cache", None, id="rm of what may be no work"),
        pytest.param("ls", None, id="nothing"),
    ],
)
def test_edits_by_the_shell_are_known_by_structure(line: str, files: tuple[str, ...] | None):
    """
    Only what surely writes into a project's files counts.
    """
    edits = edits_in(line)

    assert all(edit.on_zero for edit in edits)
    assert bool(edits) == (files is not None)
    assert tuple(file for edit in edits for file in edit.files) == (files or ())


@pytest.mark.parametrize(
    ("line", "on_zero", "on_other"),
    [
        pytest.param("cat > a.py <<E\nx\nE\npython a.py", True, True, id="before what failed"),
        pytest.param("sed -i s/a/b/ x; pytest", True, True, id="before a check"),
        pytest.param("sed -i s/a/b/ x && pytest", True, False, id="either may have failed"),
        pytest.param("cd a && sed -i s/a/b/ x; pytest", True, False, id="in a folder that may be missing"),
        pytest.param("pytest && sed -i s/a/b/ x", True, False, id="behind what passed"),
        pytest.param("pytest && sed -i s/a/b/ x; echo done", False, False, id="behind what may have failed"),
        pytest.param("cd a && sed -i s/a/b/ x; echo done", True, False, id="behind cd"),
        pytest.param("pytest; sed -i s/a/b/ x", True, False, id="the last"),
        pytest.param("test -f x || sed -i s/a/b/ x", False, False, id="behind or"),
        pytest.param("if a; then sed -i s/a/b/ x; fi; b", False, False, id="in a branch"),
        pytest.param("a || exit 0; sed -i s/a/b/ x; b", False, False, id="behind a way out"),
    ],
)
def test_an_edit_that_may_not_have_come_about_is_not_sure(line: str, on_zero: object, on_other: object):
    """
    By the line's exit status and the commands around.
    """
    (edit,) = edits_in(line)

    assert (edit.on_zero, edit.on_other) == (on_zero, on_other)
