"""
The gate's settings: one table of keys, read from the project's file, the user's file and the environment, in rising order.

Project files are not trusted: a cloned repository must not be able to redirect text or keys, nor to make the gate stricter or
blind. So a project's `.turngate.toml` may set few keys, and the variables that come from the project's own client settings are taken
out of the environment before anything is read from it: `TURNGATE_*` and `ANTHROPIC_*`, and with them `HOME`, `XDG_*` or a proxy,
which would lead to other settings or another host. Only the client's own `CLAUDE_*` stay.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

from ..judge.settings import BACKENDS, CACHES, EFFORTS, JudgeSettings
from .places import config_file

PROJECT_FILE: Final = ".turngate.toml"
CLIENT_FILES: Final = (".claude/settings.json", ".claude/settings.local.json")
"""Both lie in the project; the second is meant to stay out of the repository, but nothing makes sure of it."""

DEFAULT_ACTIONS: Final[Mapping[str, str]] = {
    "claim": "hold",
    "promise": "hold",
    "defer": "hold",
    "cave": "hold",
    "opener": "hold_once",
}
ACTIONS: Final = ("off", "note", "hold_once", "hold")
"""From the softest to the strictest."""

_FILE_LIMIT = 1_000_000


class BadSetting(ValueError):
    """
    A value that cannot be used; the text names file, key and value in one line.
    """


class Settings(NamedTuple):
    """
    All that a user may set. The fields are the keys of the settings file, with `_` for the dot.
    """

    gate_mode: str = "block"
    gate_continuations: int = 2
    gate_events: tuple[str, ...] = ("Stop", "SubagentStop")
    gate_message: bool = True
    gate_style: str = "decision"
    background_mode: str = "block"
    background_exempt_types: tuple[str, ...] = ()
    background_exempt_commands: tuple[str, ...] = ()
    background_holds_per_task: int = 1
    evidence_checks: tuple[str, ...] = ()
    rubric_action: Mapping[str, str] = DEFAULT_ACTIONS
    record_turns: bool = False
    judge: JudgeSettings = JudgeSettings()

    def action(self, fault: str) -> str:
        """
        Give what is done about a fault. A fault of a user's own rubric is held unless set otherwise.
        """
        return self.rubric_action.get(fault, "hold")


class Trusted(NamedTuple):
    """
    The environment without what the project's client settings put into it, but for the client's own variables.
    """

    environ: Mapping[str, str]
    taken: frozenset[str] = frozenset()
    """The names of the variables that were taken out."""
    notices: tuple[str, ...] = ()
    """What was taken out and would have mattered, one line each."""


class Reading(NamedTuple):
    """
    Settings as read.
    """

    settings: Settings
    notices: tuple[str, ...] = ()
    """What was refused in the project's files, one line each."""


class _Key(NamedTuple):
    parse: Callable[[object], object]
    expected: str
    in_project: bool = False
    judge: str = ""
    """The field of `JudgeSettings`, where the key is one of the judge's."""


def trusted(environ: Mapping[str, str], project_folders: Sequence[str]) -> Trusted:
    """
    Give the part of the environment that no project has set. `project_folders` are those that the client may take settings from.
    """
    taken: set[str] = set()
    notices: list[str] = []
    for path in (os.path.join(folder, name) for folder in project_folders for name in CLIENT_FILES):
        for variable in _client_variables(path):
            if variable in environ and not variable.startswith("CLAUDE"):
                taken.add(variable)
                if variable.startswith(("TURNGATE_", "ANTHROPIC_")):
                    notices.append(f"{path}: env.{variable} is ignored: a project may not set it")
    kept = {name: value for name, value in environ.items() if name not in taken}
    return Trusted(kept, frozenset(taken), tuple(notices))


def read_settings(environ: Mapping[str, str], *, project_folders: Sequence[str] = ()) -> Reading:
    """
    Read the settings for one stop from a trusted environment, the user's file and those of the project.

    Raises `BadSetting` for a value of the user's own that cannot be used. A project's value that cannot or may not be used is left
    out and named in the notices. Unknown keys change nothing.
    """
    notices: list[str] = []
    values: dict[str, object] = {}
    for folder in project_folders:
        values |= dict(_project_values(os.path.join(folder, PROJECT_FILE), notices))
    values |= dict(_user_values(config_file(environ)))
    values |= dict(_variables(environ))
    return Reading(_settings(values), tuple(notices))


def _client_variables(path: str) -> tuple[str, ...]:
    try:
        document = json.loads(_content(path) or b"{}")
    except (OSError, ValueError, RecursionError):
        return ()
    variables = cast("dict[str, object]", document).get("env") if isinstance(document, dict) else None
    return tuple(cast("dict[str, object]", variables)) if isinstance(variables, dict) else ()


def _content(path: str) -> bytes:
    """
    Give the file's content, empty where there is no plain file of a sensible size.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return b""
    with os.fdopen(descriptor, "rb") as file:
        # A named pipe or a device must not be waited for.
        if not _is_plain(descriptor):
            raise OSError("not a plain file")
        return file.read(_FILE_LIMIT)


def _is_plain(descriptor: int) -> bool:
    from stat import S_ISREG

    return S_ISREG(os.fstat(descriptor).st_mode)


def _document(path: str) -> Mapping[str, object]:
    try:
        content = _content(path)
    except OSError as error:
        raise BadSetting(f"{path}: cannot be read: {error.strerror or error}") from error
    if not content:
        return {}
    # The parser is imported only where there is a file to parse.
    import tomllib

    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise BadSetting(f"{path}: not TOML: {' '.join(str(error).split())[:200]}") from error


def _flat(document: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in document.items():
        if isinstance(value, dict):
            yield from _flat(cast("dict[str, object]", value), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _user_values(path: str | None) -> Iterator[tuple[str, object]]:
    for key, value in _flat(_document(path)) if path else ():
        if _known(key):
            yield key, _parsed(path or "", key, value)


def _variables(environ: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    for key in KEYS:
        variable = variable_of(key)
        if variable in environ:
            yield key, _parsed("the environment", variable, environ[variable], key)


def variable_of(key: str) -> str:
    """
    Give the environment variable of a settings key, for example `TURNGATE_JUDGE_MODEL`.
    """
    return f"TURNGATE_{key.replace('.', '_').upper()}"


def _project_values(path: str, notices: list[str]) -> Iterator[tuple[str, object]]:
    try:
        document = _document(path)
    except BadSetting as error:
        notices.append(str(error))
        return
    for key, value in _flat(document):
        try:
            yield key, _project_value(path, key, value)
        except BadSetting as error:
            notices.append(str(error))


def _project_value(path: str, key: str, value: object) -> object:
    known = _known(key)
    if known is None or not known.in_project:
        raise BadSetting(f"{path}: {key} = {_shown(value)}: a project may not set it")
    parsed = _parsed(path, key, value)
    if key == "gate.mode" and parsed != "shadow":
        raise BadSetting(f"{path}: {key} = {_shown(value)}: a project may only set 'shadow'")
    if key.startswith("rubric.action."):
        default = DEFAULT_ACTIONS.get(key.removeprefix("rubric.action."), "hold")
        if parsed == "off" or ACTIONS.index(cast("str", parsed)) > ACTIONS.index(default):
            raise BadSetting(f"{path}: {key} = {_shown(value)}: a project may only soften it, down to 'note'")
    return parsed


def _parsed(place: str, name: str, value: object, key: str = "") -> object:
    known = cast("_Key", _known(key or name))
    try:
        return known.parse(value)
    except (ValueError, TypeError, LookupError, OverflowError) as error:
        raise BadSetting(f"{place}: {name} = {_shown(value)}: expected {known.expected}") from error


def _known(key: str) -> _Key | None:
    if key.startswith("rubric.action.") and key.count(".") == _FAULT_DEPTH:
        return _ACTION
    return KEYS.get(key)


def _shown(value: object) -> str:
    # Somebody may have pasted a key where its name belongs.
    from ..rubric.masking import clean, mask

    text = mask(clean(repr(value)))
    return text if len(text) <= 60 else text[:59] + "…"


def _settings(values: Mapping[str, object]) -> Settings:
    gate: dict[str, object] = {}
    judge: dict[str, object] = {}
    actions = dict(DEFAULT_ACTIONS)
    for key, value in values.items():
        if key.startswith("rubric.action."):
            actions[key.removeprefix("rubric.action.")] = cast("str", value)
        elif field := KEYS[key].judge:
            judge[field] = value
        else:
            gate[key.replace(".", "_")] = value
    return Settings()._replace(**gate, rubric_action=actions, judge=JudgeSettings()._replace(**judge))  # pyright: ignore[reportArgumentType]


def _choice(*choices: str) -> Callable[[object], object]:
    def parse(value: object) -> object:
        if value not in choices:
            raise ValueError
        return value

    return parse


def _switch(value: object) -> object:
    if isinstance(value, bool):
        return value
    return {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}[str(value).lower()]


def _whole(least: int, most: int) -> Callable[[object], object]:
    def parse(value: object) -> object:
        if isinstance(value, bool | float) or not least <= int(cast("str", value)) <= most:
            raise ValueError
        return int(cast("str", value))

    return parse


def _seconds(value: object) -> object:
    number = float(cast("str", value))
    if isinstance(value, bool) or not 0.1 <= number <= 600:
        raise ValueError
    return number


def _words(value: object) -> object:
    """
    Read a list of texts; in a variable they are separated by commas.
    """
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in cast("list[object]", words)):
        raise TypeError
    return tuple(word.strip() for word in cast("list[str]", words) if word.strip())


def _text(value: object) -> object:
    if not isinstance(value, str) or len(value) > 1_000 or not value.isprintable():
        raise TypeError
    return value.strip()


def _variable_name(value: object) -> object:
    if not isinstance(value, str) or not value.isidentifier():
        raise ValueError
    return value


def _money(value: object) -> object:
    from decimal import Decimal, InvalidOperation

    try:
        amount = Decimal(str(value))
    except InvalidOperation as error:
        raise ValueError from error
    if isinstance(value, bool) or not amount.is_finite() or amount < 0:
        raise ValueError
    return format(amount, "f")


def _endpoint(value: object) -> object:
    text = cast("str", _text(value))
    if text and not text.startswith(("http://", "https://")):
        raise ValueError
    return text


def _event_names(value: object) -> object:
    names = cast("tuple[str, ...]", _words(value))
    if not set(names) <= {"Stop", "SubagentStop"}:
        raise ValueError
    return names


def _choices(choices: tuple[str, ...]) -> str:
    return " or ".join(repr(choice) for choice in choices)


_GATE_MODES = ("block", "shadow", "off")
_STYLES = ("decision", "context", "auto")
_BACKGROUND_MODES = ("block", "headless", "off")
_LIST = "a list of texts (in a variable: separated by commas)"
_FAULT_DEPTH = "rubric.action.claim".count(".")
_ACTION = _Key(_choice(*ACTIONS), _choices(ACTIONS), in_project=True)

KEYS: Final[Mapping[str, _Key]] = {
    "gate.mode": _Key(_choice(*_GATE_MODES), _choices(_GATE_MODES), in_project=True),
    "gate.continuations": _Key(_whole(0, 2), "0, 1 or 2"),
    "gate.events": _Key(_event_names, "a list of 'Stop' and 'SubagentStop'"),
    "gate.message": _Key(_switch, "true or false"),
    "gate.style": _Key(_choice(*_STYLES), _choices(_STYLES)),
    "background.mode": _Key(_choice(*_BACKGROUND_MODES), _choices(_BACKGROUND_MODES), in_project=True),
    "background.exempt_types": _Key(_words, _LIST, in_project=True),
    "background.exempt_commands": _Key(_words, _LIST, in_project=True),
    "background.holds_per_task": _Key(_whole(0, 100), "a whole number from 0 to 100", in_project=True),
    "evidence.checks": _Key(_words, _LIST, in_project=True),
    **{f"rubric.action.{fault}": _ACTION for fault in DEFAULT_ACTIONS},
    "record.turns": _Key(_switch, "true or false"),
    "judge.backend": _Key(_choice(*BACKENDS), _choices(BACKENDS), judge="backend"),
    "judge.model": _Key(_text, "a model's id", judge="model"),
    "judge.base_url": _Key(_endpoint, "an address that starts with http:// or https://", judge="base_url"),
    "judge.api_key_env": _Key(_variable_name, "the name of a variable, not the key itself", judge="api_key_env"),
    "judge.deadline_s": _Key(_seconds, "seconds from 0.1 to 600", judge="deadline_s"),
    "judge.max_input_tokens": _Key(_whole(500, 100_000), "a whole number from 500 to 100000", judge="max_input_tokens"),
    "judge.max_tokens": _Key(_whole(64, 64_000), "a whole number from 64 to 64000", judge="max_tokens"),
    "judge.effort": _Key(_choice(*EFFORTS), _choices(EFFORTS), judge="effort"),
    "judge.cache": _Key(_choice(*CACHES), _choices(CACHES), judge="cache"),
    "rubric.name": _Key(_text, "a rubric's name", judge="rubric_name"),
    "budget.usd_per_day": _Key(_money, "an amount in US dollars", judge="usd_per_day"),
    "budget.usd_per_session": _Key(_money, "an amount in US dollars", judge="usd_per_session"),
}
