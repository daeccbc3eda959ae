"""
The gate's settings: one table of keys, read from the project's file, the user's file and the environment, in rising order.

Project files are not trusted: a cloned repository must not be able to redirect text or keys, nor to make the gate stricter or
blind. So a project's `.turngate.toml` may set few keys; what its client settings put into the environment is kept out by `trust`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

from ..judge.settings import BACKENDS, CACHES, EFFORTS, VARIABLE_NAME, JudgeSettings
from .places import config_file
from .small_files import read_small

PROJECT_FILE: Final = ".turngate.toml"
DEFAULT_ACTIONS: Final[Mapping[str, str]] = {
    "claim": "hold",
    "promise": "hold",
    "defer": "hold",
    "cave": "hold",
    "opener": "hold_once",
}
ACTIONS: Final = ("off", "note", "hold_once", "hold")
"""From the softest to the strictest."""


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
    jobs_mode: str = "deny"
    jobs_allow: tuple[str, ...] = ()
    rubric_action: Mapping[str, str] = DEFAULT_ACTIONS
    record_turns: bool = False
    ledger_url: str = ""
    """Empty: the SQLite file in the state directory."""
    service_autostart: bool = True
    service_http_port: int = 0
    """0: no port, the Unix socket alone."""
    service_idle_exit_s: int = 1800
    """0: never."""
    judge: JudgeSettings = JudgeSettings()

    def action(self, fault: str) -> str:
        """
        Give what is done about a fault. A fault of a user's own rubric is held unless set otherwise.
        """
        return self.rubric_action.get(fault, "hold")


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
    shown: bool = True
    """Whether a bad value is repeated: not where somebody may have pasted a key."""


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


def ledger_url(environ: Mapping[str, str]) -> str:
    """
    Give the ledger's address as far as it can be read, whatever else is wrong with the settings.
    """
    try:
        variable = variable_of("ledger.url")
        if variable in environ:
            return cast("str", _parsed("the environment", variable, environ[variable], "ledger.url"))
        path = config_file(environ)
        found = dict(_flat(_document(path))).get("ledger.url", "") if path else ""
        return cast("str", _parsed(path or "", "ledger.url", found))
    except BadSetting:
        return ""


def keys_in(path: str) -> list[str]:
    """
    Give all keys of a settings file, known or not; none where it cannot be read.
    """
    try:
        return [key for key, _ in _flat(_document(path))]
    except BadSetting:
        return []


def is_key(key: str) -> bool:
    """
    Say whether there is such a key.
    """
    return _known(key) is not None


def _document(path: str) -> Mapping[str, object]:
    try:
        content = read_small(path, _FILE_LIMIT)
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


def _flat(document: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """
    Give the keys with dots; none of ours lies deeper than `_DEPTH`.
    """
    level: list[tuple[str, object]] = list(document.items())
    for _ in range(_DEPTH):
        yield from ((name, value) for name, value in level if not isinstance(value, dict))
        tables = [(name, cast("dict[str, object]", value)) for name, value in level if isinstance(value, dict)]
        level = [(f"{name}.{inner}", value) for name, table in tables for inner, value in table.items()]


def _user_values(path: str | None) -> Iterator[tuple[str, object]]:
    for key, value in _flat(_document(path)) if path else ():
        if _known(key):
            yield key, _parsed(path or "", key, value)


def _variables(environ: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    own = (f"rubric.action.{name.removeprefix(_ACTION_VARIABLE).lower()}" for name in environ if _is_action(name))
    for key in (*KEYS, *own):
        variable = variable_of(key)
        if variable in environ:
            yield key, _parsed("the environment", variable, environ[variable], key)


def _is_action(variable: str) -> bool:
    return variable.startswith(_ACTION_VARIABLE) and len(variable) > len(_ACTION_VARIABLE)


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
            if len(notices) >= _MOST_NOTICES:
                return


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
        shown = _shown(value) if known.shown else "…"
        raise BadSetting(f"{place}: {name} = {shown}: expected {known.expected}") from error


def _known(key: str) -> _Key | None:
    if key.startswith("rubric.action.") and key.count(".") == _DEPTH - 1:
        return _ACTION
    return KEYS.get(key)


def _shown(value: object) -> str:
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
    kept = tuple(word.strip() for word in cast("list[str]", words) if word.strip())
    if len(kept) > _MOST_WORDS or any(len(word) > _LONGEST_WORD for word in kept):
        raise ValueError
    return kept


def _text(value: object) -> object:
    if not isinstance(value, str) or len(value) > 1_000 or not value.isprintable() or not value.strip():
        raise TypeError
    return value.strip()


def _variable_name(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(VARIABLE_NAME, value):
        raise ValueError
    return value


def _money(value: object) -> object:
    from decimal import Decimal, InvalidOperation

    try:
        amount = Decimal(str(value))
    except InvalidOperation as error:
        raise ValueError from error
    least = Decimal("1e-9")
    if isinstance(value, bool) or not amount.is_finite() or not (amount == 0 or least <= amount <= _MOST_USD):
        raise ValueError
    return format(amount, "f")


def _ledger_url(value: object) -> object:
    text = cast("str", _text(value)) if value != "" else ""
    if text and not text.startswith(("postgresql://", "postgres://")):
        raise ValueError
    return text


def _endpoint(value: object) -> object:
    text = cast("str", _text(value)) if value != "" else ""
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
_JOBS_MODES = ("deny", "ask", "off")
_LIST = "a list of at most 200 texts of 500 characters (in a variable: separated by commas)"
_ACTION_VARIABLE = "TURNGATE_RUBRIC_ACTION_"
_DEPTH = 3
_FILE_LIMIT = 100_000
_MOST_WORDS = 200
_LONGEST_WORD = 500
_MOST_NOTICES = 5
_MOST_USD = 10**9
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
    "jobs.mode": _Key(_choice(*_JOBS_MODES), _choices(_JOBS_MODES)),
    "jobs.allow": _Key(_words, _LIST, in_project=True),
    **{f"rubric.action.{fault}": _ACTION for fault in DEFAULT_ACTIONS},
    "record.turns": _Key(_switch, "true or false"),
    "ledger.url": _Key(_ledger_url, "an address that starts with postgresql://", shown=False),
    "service.autostart": _Key(_switch, "true or false"),
    "service.http_port": _Key(_whole(0, 65_535), "a port from 1 to 65535, or 0 for none"),
    "service.idle_exit_s": _Key(_whole(0, 10**9), "whole seconds, or 0 for never"),
    "judge.backend": _Key(_choice(*BACKENDS), _choices(BACKENDS), judge="backend"),
    "judge.model": _Key(_text, "a model's id", judge="model"),
    "judge.base_url": _Key(_endpoint, "an address that starts with http:// or https://", judge="base_url", shown=False),
    "judge.api_key_env": _Key(
        _variable_name, "the name of a variable in capitals, not the key itself", judge="api_key_env", shown=False
    ),
    "judge.deadline_s": _Key(_seconds, "seconds from 0.1 to 600", judge="deadline_s"),
    "judge.max_input_tokens": _Key(_whole(500, 100_000), "a whole number from 500 to 100000", judge="max_input_tokens"),
    "judge.max_tokens": _Key(_whole(64, 64_000), "a whole number from 64 to 64000", judge="max_tokens"),
    "judge.effort": _Key(_choice(*EFFORTS), _choices(EFFORTS), judge="effort"),
    "judge.cache": _Key(_choice(*CACHES), _choices(CACHES), judge="cache"),
    "rubric.name": _Key(_text, "a rubric's name", judge="rubric_name"),
    "budget.usd_per_day": _Key(_money, "an amount in US dollars", judge="usd_per_day"),
    "budget.usd_per_session": _Key(_money, "an amount in US dollars", judge="usd_per_session"),
}
