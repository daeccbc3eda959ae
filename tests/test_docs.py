"""
The documents: what they name exists, and what exists is named.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from turngate.costing.outcomes import OUTCOMES
from turngate.judge.settings import JudgeSettings
from turngate.stopgate.cli import main
from turngate.stopgate.in_process import GRACE_S
from turngate.stopgate.settings import KEYS, variable_of

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
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


def test_the_first_screen_of_the_readme_has_both_commands() -> None:
    """
    Who opens the project sees at once what to type.
    """
    screen = "\n".join(README.read_text().splitlines()[:60])

    assert "make demo" in screen
    assert "make test" in screen


def test_the_settings_snippet_is_one_that_the_client_takes() -> None:
    """
    Both stop events run the hook, with a timeout in seconds: above our own deadline, and not one meant as milliseconds.
    """
    (snippet,) = fenced(README, "json")
    events = json.loads(snippet)["hooks"]

    assert set(events) == {"Stop", "SubagentStop"}
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


def test_the_outcomes_page_has_every_outcome() -> None:
    """
    Each code that a decision may have is explained, and no other.
    """
    named = re.findall(r"`((?:pass|block|shadow|jobs)_[a-z_]+)`", (ROOT / "docs/outcomes.md").read_text())

    assert set(named) == set(OUTCOMES)
