"""
Turngate's settings: whether they can be used, whether every key is one, and what a project tried.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Final

from ..places import config_file
from ..settings import KEYS, is_key, keys_in, variable_of
from .finding import Finding, bad, ok, warn
from .scene import Scene

_OTHER_VARIABLES: Final = (
    "TURNGATE_CONFIG",
    "TURNGATE_STATE_DIR",
    "TURNGATE_GUARD",
    "TURNGATE_SHARED",
    "TURNGATE_REMOTE_TOKEN",
    "TURNGATE_SERVICE_TOKEN",
)


def check(scene: Scene) -> Iterator[Finding]:
    """
    Look at the user's file, the variables and the project's file.
    """
    path = config_file(scene.safe.environ)
    if scene.trouble:
        yield bad("turngate settings", scene.trouble, "put the value right: until then every stop passes")
    else:
        yield ok("turngate settings", f"{path or 'the defaults'} can be used")
    yield from _unknown_keys(path)
    yield from _overruled(scene, path)
    yield from _variables(scene)
    for notice in scene.notices:
        yield warn("project", notice, "take it out of the project's file, or set it in your own")
    for notice in scene.safe.notices:
        yield warn("project", notice, "take it out of the project's file, or set it in your own")
    yield from _mode(scene)


def _unknown_keys(path: str | None) -> Iterator[Finding]:
    for key in keys_in(path) if path else ():
        if not is_key(key):
            yield warn(
                "turngate settings", f"{path}: {key} is no key, and changes nothing", _suggested(key, list(KEYS))
            )


def _overruled(scene: Scene, path: str | None) -> Iterator[Finding]:
    for key in keys_in(path) if path else ():
        if is_key(key) and variable_of(key) in scene.safe.environ:
            yield ok("turngate settings", f"{variable_of(key)} comes before {key} of {path}")


def _variables(scene: Scene) -> Iterator[Finding]:
    environ = scene.environ
    known = {variable_of(key): key for key in KEYS}
    for name in sorted(name for name in environ if name.startswith("TURNGATE_")):
        is_action = name.startswith("TURNGATE_RUBRIC_ACTION_")
        is_tests = name.startswith(("TURNGATE_TEST_", "TURNGATE_E2E_"))
        if name not in known and name not in _OTHER_VARIABLES and not is_action and not is_tests:
            yield warn(
                "variables", f"{name} is no variable of ours, and changes nothing", _suggested(name, list(known))
            )
    if environ.get("TURNGATE_GUARD"):
        yield bad(
            "variables", "TURNGATE_GUARD is set: every hook does nothing", "take it out of your shell's start files"
        )


def _mode(scene: Scene) -> Iterator[Finding]:
    source = variable_of("gate.mode")
    by = f"by the variable {source}" if source in scene.safe.environ else "by the settings"
    fix = f"unset {source}" if source in scene.safe.environ else 'set gate.mode = "block"'
    if scene.settings.gate_mode == "off":
        yield bad("mode", f"the gate is off, {by}", fix)
    elif scene.settings.gate_mode == "shadow":
        yield warn("mode", f"shadow, {by}: everything is judged, nothing is held", fix)
    if scene.settings.gate_continuations == 0:
        yield warn("mode", "gate.continuations is 0: nothing is held", "set gate.continuations = 2")


def _suggested(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"do you mean {near[0]}?" if near else "take it out: docs/settings.md has all keys"
