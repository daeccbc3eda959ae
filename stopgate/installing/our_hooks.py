"""
Our hooks in the client's settings: what is written there, and how they are told from those of others.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

from ..settings import Settings

STOP_EVENTS: Final = ("Stop", "SubagentStop")
EVENTS: Final = (*STOP_EVENTS, "SessionStart", "PreToolUse")
MATCHERS: Final[Mapping[str, str]] = {"PreToolUse": "Bash"}

SHORT_TIMEOUT_S: Final = 5
"""Where no judge is asked."""

STOP_TIMEOUT_S: Final = 15
SPARE_S: Final = 7.0
"""Between the judge's deadline and the hook's timeout, in which a slow machine says that nobody answered."""

_ASSIGNMENT: Final = re.compile(r"\A\s*(?:[A-Za-z_][A-Za-z0-9_]*=[A-Za-z0-9_./:,@%+~-]*\s+)*")
_MENTIONED: Final = re.compile(r"turngate-hook|turngate[/\\.]stopgate|stopgate[/\\]__main__\.py")
_SCRIPT: Final = re.compile(r"(?:^|[/\\])stopgate[/\\]__main__\.py$")
_PROGRAM: Final = re.compile(r"(?:^|[/\\])turngate-hook(?:\.exe)?$")
_MODULES: Final = ("turngate.stopgate", "turngate.stopgate.hook", "turngate.stopgate.__main__")


class Wanted(NamedTuple):
    """
    One hook that the settings should have.
    """

    event: str
    command: str
    timeout_s: int

    @property
    def matcher(self) -> str:
        """
        Give the tool that it is for; empty where the event knows no tools.
        """
        return MATCHERS.get(self.event, "")

    def hook(self, replaced: str = "") -> dict[str, object]:
        """
        Give it as the client's settings have it. Variables that stood before the command that it replaces stay there.
        """
        return {"type": "command", "command": assigned_before(replaced) + self.command, "timeout": self.timeout_s}

    def group(self) -> dict[str, object]:
        """
        Give the entry of its event.
        """
        matcher = {"matcher": self.matcher} if self.matcher else {}
        return {**matcher, "hooks": [self.hook()]}


def wanted_hooks(events: Sequence[str], settings: Settings, command: str) -> tuple[Wanted, ...]:
    """
    Give the hooks for these events.
    """
    return tuple(Wanted(event, command, timeout_s(event, settings)) for event in EVENTS if event in events)


def timeout_s(event: str, settings: Settings) -> int:
    """
    Give the hook's timeout, in seconds as the client takes it: clearly above our own deadline.
    """
    if event not in STOP_EVENTS:
        return SHORT_TIMEOUT_S
    return max(STOP_TIMEOUT_S, math.ceil(settings.judge.deadline_s + SPARE_S))


def our_command(python: str = sys.executable) -> str:
    """
    Give the command that runs the hook of this installation, by absolute paths and out of reach of the project's Python.
    """
    # The interpreter's own path and not what it links to: that is how Python finds the environment.
    script = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__main__.py")  # noqa: PTH100
    words = (os.path.abspath(python), "-I", "-S", script)  # noqa: PTH100
    if sys.platform == "win32":
        return " ".join(f'"{word}"' if " " in word else word for word in words)
    return shlex.join(words)


def is_ours(hook: Mapping[str, object]) -> bool:
    """
    Say whether the hook runs turngate and nothing else, from whatever path and version.
    """
    words = _words(hook)
    if not words:
        return False
    if _PROGRAM.search(words[0]):
        return len(words) == 1
    options = [word for word in words[1:-1] if not re.fullmatch(r"-[IsSEPBq]+", word)]
    if _SCRIPT.search(words[-1]):
        is_installed = "turngate" in words[-1] or os.path.isfile(os.path.join(os.path.dirname(words[-1]), "relay.py"))  # noqa: PTH113
        return "python" in words[0].lower() and not options and is_installed
    if _PROGRAM.search(words[-1]):
        return "python" in words[0].lower() and not options
    return words[-1] in _MODULES and options == ["-m"] and "python" in words[0].lower()


def mentions_us(hook: Mapping[str, object]) -> bool:
    """
    Say whether the hook runs turngate, perhaps among other things.
    """
    return _MENTIONED.search(" ".join((_text(hook, "command"), *_arguments(hook)))) is not None


def assigned_before(command: str) -> str:
    """
    Give the variables that stand before the program's name, as written.
    """
    found = _ASSIGNMENT.match(command)
    return found[0].lstrip() if found else ""


def _words(hook: Mapping[str, object]) -> list[str]:
    if hook.get("type") != "command":
        return []
    command = _ASSIGNMENT.sub("", _text(hook, "command"), count=1)
    try:
        # In Windows' paths a backslash escapes nothing.
        words = shlex.split(command.replace("\\", "/") if "\\" in command else command)
    except ValueError:
        return []
    return [*words, *_arguments(hook)]


def _text(hook: Mapping[str, object], key: str) -> str:
    value = hook.get(key)
    return value if isinstance(value, str) else ""


def _arguments(hook: Mapping[str, object]) -> list[str]:
    value = hook.get("args")
    return [str(word) for word in cast("list[object]", value)] if isinstance(value, list) else []
