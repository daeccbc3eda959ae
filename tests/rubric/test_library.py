"""
The library of rubrics.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from turngate.rubric.library import BadRubric, UnknownRubric, load

OWN = """
id = "short"
version = 3
intro = "Judge."
answer = "Answer in JSON."

[[faults]]
name = "claim"
definition = "says what is not so."
counts = "a"
counts_not = "b"
examples = "c"
"""


def test_the_packaged_rubric_has_the_five_faults() -> None:
    """
    Its label names id and version, its system text names each fault.
    """
    rubric = load()

    assert rubric.label == "turn_end@2"
    assert rubric.faults == ("claim", "promise", "opener", "defer", "cave")
    assert all(f"\n{fault}: " in rubric.system for fault in rubric.faults)
    assert len(rubric.hash) == 12


def test_the_system_text_is_the_same_bytes_in_every_process() -> None:
    """
    A text that changed between two processes would never be read from the cache.
    """
    code = "from turngate.rubric.library import load; print(load().system, end='')"

    seen = {
        subprocess.run(
            [sys.executable, "-I", "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }

    assert seen == {load().system.encode()}


def test_a_users_rubric_stands_in_front_of_the_packaged_one(tmp_path: Path) -> None:
    """
    A folder's file is read by its name; a name that the folder lacks is the packaged one.
    """
    (tmp_path / "short.toml").write_text(OWN)

    own = load("short", tmp_path)

    assert own.label == "short@3"
    assert own.system == "Judge.\n\nclaim: says what is not so.\nCounts: a\nNot: b\nExamples: c\n\nAnswer in JSON."
    assert load("turn_end", tmp_path) == load()


def test_changed_words_have_another_hash(tmp_path: Path) -> None:
    """
    A verdict can be traced to the words that it answers.
    """
    (tmp_path / "short.toml").write_text(OWN)
    before = load("short", tmp_path).hash
    (tmp_path / "short.toml").write_text(OWN.replace("Judge.", "Judge well."))

    assert load("short", tmp_path).hash != before


@pytest.mark.parametrize("name", ["nope", "../turn_end", "", "turn_end\x00", "Turn_End", "x" * 10_000])
def test_an_unknown_name_is_said_in_one_line(name: str, tmp_path: Path) -> None:
    """
    No path is built from a name that is no name.
    """
    with pytest.raises(UnknownRubric, match="unknown rubric") as raised:
        load(name, tmp_path)

    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param("version = 3", "version = 0", "version: expected a whole number from 1, found 0", id="version"),
        pytest.param(
            "version = 3", "version = true", "version: expected a whole number from 1, found True", id="version-bool"
        ),
        pytest.param(
            'id = "short"', 'id = "other"', "id: expected the file's own name 'short', found 'other'", id="id"
        ),
        pytest.param('intro = "Judge."', 'intro = " "', "intro: expected text, found ' '", id="empty"),
        pytest.param('counts = "a"', "counts = 1", "faults[1].counts: expected text, found 1", id="type"),
        pytest.param('name = "claim"', 'name = "A b"', "faults[1].name: expected a new name", id="fault-name"),
        pytest.param('examples = "c"', "", "faults[1].examples: missing", id="missing"),
        pytest.param("version = 3", "version = 3\nmodel = 1", "model: unknown key", id="unknown-key"),
        pytest.param("[[faults]]", "[faults]", "faults: expected at least one [[faults]] table", id="no-list"),
        pytest.param(
            "version = 3", "version = 3\ntokens = 2", "tokens: too few for this text, expected at least", id="tokens"
        ),
        pytest.param(
            "version = 3", 'version = 3\ntokens = "9"', "tokens: expected a whole number, found '9'", id="tokens-text"
        ),
        pytest.param("version = 3", "version =", "not readable as TOML", id="syntax"),
    ],
)
def test_a_bad_file_is_named_with_key_and_value(old: str, new: str, said: str, tmp_path: Path) -> None:
    """
    One line says which file, which key and which value.
    """
    file = tmp_path / "short.toml"
    file.write_text(OWN.replace(old, new))

    with pytest.raises(BadRubric) as raised:
        load("short", tmp_path)

    assert str(raised.value).startswith(f"{file}: {said}")
    assert "\n" not in str(raised.value)


def test_bytes_that_are_no_text_are_a_bad_rubric(tmp_path: Path) -> None:
    """
    Not a traceback.
    """
    (tmp_path / "short.toml").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(BadRubric, match="not readable as TOML"):
        load("short", tmp_path)
