"""
The library: a rubric's words, which are data with a name and a version.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from .tokens import estimate


class Rubric(NamedTuple):
    """
    What a judge is asked.
    """

    id: str
    version: int
    system: str
    """The whole text for the judge: the same bytes for every turn, so that it can be cached."""
    faults: tuple[str, ...]
    """The names that a finding may carry."""
    hash: str
    """Of `system`, 12 hex digits: written with every verdict."""
    tokens: int = 0
    """What `system` costs at most, as measured; 0 where nobody measured it."""

    @property
    def label(self) -> str:
        """
        Id and version, for example `turn_end@1`.
        """
        return f"{self.id}@{self.version}"


class UnknownRubric(LookupError):
    """
    No rubric of that name.
    """


class BadRubric(ValueError):
    """
    A rubric's file cannot be used; the message names file, key and value.
    """


_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")
_TOP_KEYS: Final = ("id", "version", "intro", "faults", "answer")
_OPTIONAL_KEYS: Final = ("tokens",)
_LEAST_OF_ESTIMATE: Final = 0.75
_FAULT_KEYS: Final = ("name", "definition", "counts", "counts_not", "examples")


def load(name: str = "turn_end", folder: Path | None = None) -> Rubric:
    """
    Return the rubric `<folder>/<name>.toml`, or the packaged one where there is no folder or no such file in it.

    Raises `UnknownRubric` and `BadRubric`.
    """
    return _parsed(name, *_content(name, folder))


@lru_cache(maxsize=16)
def _parsed(name: str, place: str, content: bytes) -> Rubric:
    # A service loads the same words at each stop.
    import tomllib  # only a turn that is judged needs it

    try:
        data = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadRubric(f"{place}: not readable as TOML: {error}") from error
    return _rubric(place, name, data)


def _content(name: str, folder: Path | None) -> tuple[str, bytes]:
    if not _NAME.fullmatch(name):
        raise UnknownRubric(f"unknown rubric {name!r}: a name is made of lower-case letters, digits and _")
    if folder is not None and (own := folder / f"{name}.toml").is_file():
        try:
            return str(own), own.read_bytes()
        except OSError as error:
            raise BadRubric(f"{own}: not readable: {error.strerror}") from error

    packaged = Path(__file__).parent
    if not (resource := packaged / f"{name}.toml").is_file():
        known = sorted(entry.name.removesuffix(".toml") for entry in packaged.iterdir() if entry.name.endswith(".toml"))
        where = f" and no {name}.toml in {folder}" if folder is not None else ""
        raise UnknownRubric(f"unknown rubric {name!r}: expected one of {', '.join(map(repr, known))}{where}")
    return resource.name, resource.read_bytes()


def _rubric(place: str, name: str, data: dict[str, Any]) -> Rubric:
    from hashlib import sha256

    _check_keys(place, "", data, _TOP_KEYS, _OPTIONAL_KEYS)
    if data["id"] != name:
        raise BadRubric(f"{place}: id: expected the file's own name {name!r}, found {data['id']!r}")
    version = data["version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise BadRubric(f"{place}: version: expected a whole number from 1, found {version!r}")

    faults = _faults(place, data["faults"])
    parts = (_text(place, "intro", data["intro"]), *map(_fault_text, faults), _text(place, "answer", data["answer"]))
    system = "\n\n".join(parts)
    names = tuple(fault["name"] for fault in faults)
    return Rubric(name, version, system, names, sha256(system.encode()).hexdigest()[:12], _tokens(place, data, system))


def _tokens(place: str, data: dict[str, Any], system: str) -> int:
    tokens = data.get("tokens", 0)
    if not isinstance(tokens, int) or isinstance(tokens, bool):
        raise BadRubric(f"{place}: tokens: expected a whole number, found {tokens!r}")
    if tokens and tokens < (least := int(_LEAST_OF_ESTIMATE * estimate(system))):
        raise BadRubric(f"{place}: tokens: too few for this text, expected at least {least}, found {tokens}")
    return tokens


def _faults(place: str, value: object) -> list[dict[str, str]]:
    if not isinstance(value, list) or not value:
        raise BadRubric(f"{place}: faults: expected at least one [[faults]] table, found {value!r}")

    faults: list[dict[str, str]] = []
    for number, fault in enumerate(cast("list[object]", value), start=1):
        where = f"faults[{number}]."
        if not isinstance(fault, dict):
            raise BadRubric(f"{place}: {where[:-1]}: expected a table, found {fault!r}")
        fault = cast("dict[str, Any]", fault)
        _check_keys(place, where, fault, _FAULT_KEYS)
        texts = {key: _text(place, where + key, fault[key]) for key in _FAULT_KEYS}
        if not _NAME.fullmatch(texts["name"]) or texts["name"] in (known["name"] for known in faults):
            raise BadRubric(f"{place}: {where}name: expected a new name of lower-case letters, found {texts['name']!r}")
        faults.append(texts)
    return faults


def _fault_text(fault: dict[str, str]) -> str:
    return (
        f"{fault['name']}: {fault['definition']}\n"
        f"Counts: {fault['counts']}\n"
        f"Not: {fault['counts_not']}\n"
        f"Examples: {fault['examples']}"
    )


def _check_keys(
    place: str, where: str, table: dict[str, Any], keys: tuple[str, ...], optional: tuple[str, ...] = ()
) -> None:
    for key in keys:
        if key not in table:
            raise BadRubric(f"{place}: {where}{key}: missing")
    for key in table:
        if key not in keys + optional:
            raise BadRubric(f"{place}: {where}{key}: unknown key, expected one of {', '.join(keys + optional)}")


def _text(place: str, key: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadRubric(f"{place}: {key}: expected text, found {value!r}")
    return value.strip()
