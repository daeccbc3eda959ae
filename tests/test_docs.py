"""
The documents: what they name exists, and what exists is named.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from turngate.costing.outcomes import OUTCOMES
from turngate.judge.settings import JudgeSettings
from turngate.stopgate.cli import main, whole_parser
from turngate.stopgate.in_process import GRACE_S
from turngate.stopgate.settings import KEYS, variable_of
from turngate.stopgate.settings_page import renewed

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "plugin/README.md"]
EACH_PAGE = pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])

OTHER_VARIABLES = {
    *("TURNGATE_CONFIG", "TURNGATE_STATE_DIR", "TURNGATE_GUARD"),
    *("TURNGATE_SERVICE_TOKEN", "TURNGATE_REMOTE_TOKEN"),
    *("TURNGATE_SHARED", "TURNGATE_TEST_CLIENT", "TURNGATE_TEST_TOKENIZERS"),
    *("TURNGATE_TEST_POSTGRES", "TURNGATE_TEST_PROMETHEUS", "TURNGATE_TEST_CHROMIUM"),
}
"""Variables of ours that are no settings."""

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")


COMMAND_LINE = re.compile(
    r"^(?:.*&& )?(?:sudo (?:-u \S+ )?|[A-Z_]+=\S+ )*(?:~/\S*/)?turngate ([a-z](?:[^\n#;&>|]|(?<=\S)\|(?=\S))*)",
    re.MULTILINE,
)
"""A command to its end: a `|` within a word parts what may stand there, one between words pipes on."""


def fenced(page: Path, language: str) -> list[str]:
    """
    The code blocks of that language.
    """
    return [code for name, code in FENCED.findall(page.read_text()) if name == language]


def code_of(page: Path) -> str:
    """
    All that the page shows as code: what stands in its prose is no command.
    """
    text = page.read_text()
    return "\n".join([*(code for _, code in FENCED.findall(text)), *SPAN.findall(FENCED.sub("", text))])


def command_lines(page: Path) -> set[str]:
    """
    The command lines of `turngate` that a page shows, each also without what stands in square brackets.
    """
    text = page.read_text()
    code = [*(code for _, code in FENCED.findall(text)), *SPAN.findall(FENCED.sub("", text))]
    shown = [line.strip() for part in code for line in COMMAND_LINE.findall(part)]
    without = [re.sub(r"\[[^]]*\]", "", line) for line in shown]
    return {re.sub(r"[\[\]]", "", line).replace("...", "") for line in [*shown, *without]}


def alternatives(line: str) -> Iterator[str]:
    """
    The line with each of the words that a `|` parts.
    """
    found = re.search(r"\S*\|\S*", line)
    for word in found[0].split("|") if found else ():
        yield from alternatives(line.replace(found[0], word, 1) if found else line)
    if not found:
        yield line


def anchors(page: Path) -> set[str]:
    """
    The headings as links name them.
    """
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def flat(document: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in document.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")  # pyright: ignore[reportUnknownArgumentType]
        else:
            yield f"{prefix}{name}"


@EACH_PAGE
def test_every_make_target_named_exists(page: Path) -> None:
    """
    A page names only targets that the Makefile has.
    """
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for names in re.findall(r"\bmake ([a-z]+(?:\|[a-z]+)*)", code_of(page)) for name in names.split("|")}

    assert targets >= {"demo", "test"}
    assert named - targets == set()


@EACH_PAGE
def test_every_subcommand_named_exists(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A page names only commands that `turngate` has.
    """
    for command in sorted(set(re.findall(r"(?<![\w.-])turngate ([a-z]+)", code_of(page)))):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0, f"turngate {command}: {capsys.readouterr().err}"


@EACH_PAGE
def test_every_command_line_is_one_that_turngate_takes(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    What a page shows can be typed: commands, options and their values are those of the real parser.
    """
    refused = [
        f"turngate {line}: {capsys.readouterr().err}"
        for shown in sorted(command_lines(page))
        for line in alternatives(shown)
        if not is_taken(shlex.split(line))
    ]

    assert refused == []


def is_taken(words: list[str]) -> bool:
    """
    Whether the real parser takes the words, or they only name commands.
    """
    if names_commands(PARSER, words):
        return True
    try:
        PARSER.parse_args(words)
    except SystemExit as ended:
        return ended.code == 0
    return True


def names_commands(parser: argparse.ArgumentParser, words: list[str]) -> bool:
    commands = commands_of(parser)
    return not words or (words[0] in commands and names_commands(commands[words[0]], words[1:]))


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return {
        name: inner
        for action in parser._actions  # pyright: ignore[reportPrivateUsage]
        if isinstance(action, argparse._SubParsersAction)  # pyright: ignore[reportPrivateUsage]
        for name, inner in action.choices.items()
    }


PARSER = whole_parser()


@EACH_PAGE
def test_every_relative_link_resolves(page: Path) -> None:
    """
    A link leads to a file of the project and, with an anchor, to a heading in it.
    """
    for link in LINK.findall(FENCED.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT), link
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@EACH_PAGE
def test_every_variable_named_is_read(page: Path) -> None:
    """
    A `TURNGATE_*` variable in a page is that of a settings key, or one of the few others.
    """
    named = set(re.findall(r"\bTURNGATE_[A-Z][A-Z_]*[A-Z]\b(?!_)", code_of(page)))

    assert named - {variable_of(key) for key in KEYS} - OTHER_VARIABLES == set()


def test_every_command_has_an_example_in_its_help() -> None:
    """
    Each one ends with a line that can be typed, and that the parser takes.
    """
    examples = {parser.prog: parser.epilog or "" for parser in leaves(PARSER)}

    assert "turngate lab replay" in examples
    assert [prog for prog, text in examples.items() if not text.startswith(f"example: {prog}")] == []
    assert [text for text in examples.values() if not is_taken(shlex.split(text.partition(" > ")[0])[2:])] == []


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """
    The parsers of commands that have none below them.
    """
    commands = commands_of(parser)
    for command in commands.values():
        yield from leaves(command)
    if not commands:
        yield parser


def test_the_first_screen_of_the_readme_has_both_commands() -> None:
    """
    Who opens the project sees at once what to type.
    """
    screen = "\n".join(README.read_text().splitlines()[:60])

    assert "make demo" in screen
    assert "make test" in screen


def test_the_settings_snippet_is_one_that_the_client_takes() -> None:
    """
    It runs the hook before a Bash call, with a timeout in seconds: above our own deadline, and not one meant as milliseconds.
    """
    (snippet,) = fenced(ROOT / "docs/jobs.md", "json")
    events = json.loads(snippet)["hooks"]

    assert [group["matcher"] for group in events["PreToolUse"]] == ["Bash"]
    assert set(events) == {"PreToolUse"}
    for groups in events.values():
        ((hook,),) = [group["hooks"] for group in groups]
        assert hook["type"] == "command"
        python, *options, script = hook["command"].split()
        assert (python, options) == ("~/.turngate/bin/python", ["-I", "-S"])
        assert script.partition("/site-packages/turngate/")[2] == "stopgate/__main__.py"
        assert (ROOT / "stopgate/__main__.py").is_file()
        assert "$" not in hook["command"]
        assert JudgeSettings().deadline_s + GRACE_S < hook["timeout"] <= 60


@EACH_PAGE
def test_every_settings_file_shown_is_valid(page: Path) -> None:
    """
    A TOML snippet with one of our sections has only keys that are read.
    """
    sections = {key.partition(".")[0] for key in KEYS}
    for snippet in fenced(page, "toml"):
        keys = set(flat(tomllib.loads(snippet)))
        if {key.partition(".")[0] for key in keys} <= sections:
            assert keys - set(KEYS) == set()


def test_the_settings_page_has_every_key() -> None:
    """
    The table of settings has each key once, marked where a project may set it.
    """
    rows = [line for line in (ROOT / "docs/settings.md").read_text().splitlines() if line.startswith("| `")]
    marked = {key: "**project**" in row for row in rows for key in SPAN.findall(row.split("|")[1])}
    expected = {key: entry.in_project for key, entry in KEYS.items() if not key.startswith("rubric.action.")}

    assert marked == {**expected, "rubric.action.<fault>": True}


def test_the_settings_page_is_made_of_the_code() -> None:
    """
    Its table is what `python -m turngate.stopgate.settings_page docs/settings.md` writes.
    """
    page = (ROOT / "docs/settings.md").read_text()

    assert page == renewed(page)


def test_troubleshooting_has_every_outcome_that_troubles() -> None:
    """
    Each code has a row of its own that says what to do.
    """
    rows = re.findall(r"^\| `([a-z_]+)` \| (.+) \|$", (ROOT / "docs/troubleshooting.md").read_text(), re.MULTILINE)

    assert sorted(code for code, _ in rows) == sorted(OUTCOMES)
    assert all(len(advice) > 20 for _, advice in rows)


def test_the_outcomes_page_has_every_outcome() -> None:
    """
    Each code that a decision may have is explained, and no other.
    """
    named = re.findall(r"`((?:pass|block|shadow|jobs)_[a-z_]+)`", (ROOT / "docs/outcomes.md").read_text())

    assert set(named) == set(OUTCOMES)
