"""
No secret is in the line of a call, wherever its text was cut.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from turngate.stopgate.evidence.builder import build_turn
from turngate.stopgate.transcript import read

from ..transcripts import Session, notification
from .one_call import bash, line_of

SECRET = "sk-ant-api03-" + "Ab3" * 30


@pytest.mark.parametrize("offset", range(0, 240, 7))
def test_a_secret_at_any_cut_is_masked_first(offset: int, tmp_path: Path):
    """
    In the command, in the result and in the error, wherever the cut falls.
    """
    text = "x" * offset + " " + SECRET + " " + "y" * (240 - offset)

    asked = line_of("Bash", f"{text}\n{text}", tmp_path, bash(f"echo {text}"))
    failed = line_of("mcp__a__b", text, tmp_path, {"q": text}, error=True)

    for line in (asked.line, failed.line):
        assert "sk-ant" not in line
        assert "Ab3Ab3" not in line


HIDING = [
    pytest.param("", id="plain"),
    pytest.param("PASSWORD=" + "b4D" * 1_000 + "\n", id="behind a secret that leaves little"),
    pytest.param("\u200b" * 3_000, id="behind what is not seen"),
]
KEY_BLOCK = "\n".join(["-----BEGIN PRIVATE KEY-----", *["Ab3Ab3" * 10 + "AAAA"] * 100, "-----END PRIVATE KEY-----"])
LONG_SECRETS = [
    pytest.param(KEY_BLOCK, id="a private key"),
    pytest.param(KEY_BLOCK.replace("\n", "\n" + "Ab3Ab3" * 40 + "\n"), id="a key longer than any"),
    pytest.param("eyJhbGciOiJIUzI1NiJ9." + "Ab3Ab3" * 600 + ".Ab3", id="a long token"),
    pytest.param('PASSPHRASE="' + "Ab3 Ab3 " * 200 + '"', id="a passphrase"),
]


@pytest.mark.parametrize("hiding", HIDING)
@pytest.mark.parametrize(
    ("edge", "newer"),
    [(200, 0), (600, 0), (1_000, 0), (1_400, 0), (3_000, 0), (3_400, 0), (4_000, 0), (200, 1_010), (600, 1_010)],
)
def test_a_secret_at_the_edge_of_what_is_kept_is_not_shown(hiding: str, edge: int, newer: int, tmp_path: Path):
    """
    Of a long text the ends are kept, and of old calls less: no cut goes through a secret before it is masked.
    """
    text = hiding + "x" * max(0, edge - len(hiding) - 10) + " " + SECRET + " y" * 12_000
    session = Session()
    session.prompt("go")
    session.runs("Bash", text, command=f"pytest {text}")
    session.runs("Bash", f"Exit code 1\n{text}", error=True, command=text)
    session.runs("mcp__a__b", text, error=True, q=text)
    session.runs("AskUserQuestion", text, questions=[{"question": text}])
    session.runs("Agent", "", details={"isAsync": True, "agentId": "a1"}, description=text)
    session.queued(notification("a1", summary=text, result=text), "task-notification")
    for number in range(newer):
        session.runs("Bash", "x", error=True, command=f"echo {number}")

    shown = repr(build_turn(read(session.write(tmp_path)), reply=""))

    assert "Ab3" not in shown
    assert "sk-ant" not in shown


@pytest.mark.parametrize("behind", [1, 150, 900, 1_500, 2_500])
@pytest.mark.parametrize("secret", LONG_SECRETS)
def test_the_end_of_a_long_secret_is_not_shown(secret: str, behind: int, tmp_path: Path):
    """
    What is kept of a long text may begin within a secret, of which nothing but its beginning says that it is one.
    """
    text = "noise\n" * 4_000 + secret + "\n" + "y" * behind
    session = Session()
    session.prompt("go")
    session.says(text)
    session.prompt("go on")
    session.runs("Bash", text, command=f"cat > key <<EOF\n{text}\nEOF")
    session.runs("Bash", f"Exit code 1\n{text}", error=True, command="cat key")
    session.runs("Agent", text, description="Look")
    session.queued(notification("a1", result=text), "task-notification")

    assert "Ab3" not in repr(build_turn(read(session.write(tmp_path)), reply=""))
