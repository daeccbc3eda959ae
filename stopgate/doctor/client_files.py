"""
The client's settings: whether our hooks are there, once, and may do what they should.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..installing.client_settings import FoundHook
from ..installing.our_hooks import EVENTS, STOP_EVENTS, is_ours, mentions_us, timeout_s
from .finding import Finding, bad, ok, warn
from .scene import Scene, SettingsRead

LONGEST_TIMEOUT_S = 600
"""More was meant as milliseconds."""


def check(scene: Scene) -> Iterator[Finding]:
    """
    Look at every settings file that counts here.
    """
    for file in scene.files:
        yield from _file(file)
    yield from _switched_off(scene)
    yield from _installed(scene)
    for file in scene.files:
        for found in file.hooks:
            yield from _ours(scene, file, found) if mentions_us(found.hook) else _anothers(file, found)


def _file(file: SettingsRead) -> Iterator[Finding]:
    if file.trouble:
        yield bad("settings", file.trouble, "put the file right; until then the client may leave out what is in it")
    else:
        yield ok("settings", f"{file.path} can be read")


def _switched_off(scene: Scene) -> Iterator[Finding]:
    for file in scene.files:
        if file.says("disableAllHooks") is True:
            yield bad("hooks", f"{file.path}: disableAllHooks is true: no hook runs", "take disableAllHooks out of it")
        if file.scope == "managed" and file.says("allowManagedHooksOnly") is True and not file.ours:
            text = f"{file.path}: allowManagedHooksOnly is true: hooks of yours do not run"
            yield bad("hooks", text, "ask whoever manages this machine to put the hooks in there")


def _installed(scene: Scene) -> Iterator[Finding]:
    places = [(file.path, found.event) for file in scene.files for found in file.ours]
    if scene.plugin:
        places += [(f"the plugin {scene.plugin.name}", event) for event in EVENTS]
    there = {event for _, event in places}
    if not there:
        yield bad("install", "no settings file has our hooks, and the plugin is not on", "run `turngate install`")
        return
    for event in EVENTS:
        if event not in there and (event not in STOP_EVENTS or event in scene.settings.gate_events):
            yield warn("install", f"there is no hook at {event}", "run `turngate install`")
    yield from _double(places)


def _double(places: list[tuple[str, str]]) -> Iterator[Finding]:
    by_event = Counter(event for _, event in places)
    twice = [event for event, times in by_event.items() if times > 1]
    where = list(dict.fromkeys(path for path, event in places if event in twice))
    if not twice:
        yield ok("install", f"our hooks are in {places[0][0]}")
        return
    text = f"installed twice: {' and '.join(where)} at {', '.join(twice)}: each stop is decided twice"
    plugin = "the plugin, or run `turngate uninstall`" if any("the plugin" in path for path in where) else ""
    yield warn(
        "install",
        text,
        f"keep one: switch off {plugin}" if plugin else "run `turngate uninstall` and `turngate install`",
    )


def _ours(scene: Scene, file: SettingsRead, found: FoundHook) -> Iterator[Finding]:
    where, hook = f"{file.path}: our hook at {found.event}", found.hook
    wanted = timeout_s(found.event, scene.settings)
    limit = hook.get("timeout")
    if hook.get("async") is True:
        yield bad("hooks", f"{where} is async: nobody waits for its answer", 'take out "async"')
    if isinstance(limit, int | float) and not isinstance(limit, bool):
        if limit > LONGEST_TIMEOUT_S:
            yield bad("hooks", f"{where} has a timeout of {limit:g}: that is in seconds", f'write "timeout": {wanted}')
        elif found.event in STOP_EVENTS and limit <= scene.settings.judge.deadline_s:
            text = f"{where} is killed after {limit:g} s, before the judge's deadline of {scene.settings.judge.deadline_s:g} s"
            yield bad("hooks", text, f'write "timeout": {wanted}')
    if found.event == "PreToolUse" and found.matcher not in ("Bash", "*", ""):
        yield warn("hooks", f"{where} has the matcher {found.matcher!r}", 'write "matcher": "Bash"')
    if not is_ours(hook):
        yield warn("hooks", f"{where} runs other things too", "run `turngate install`, and take that hook out by hand")


def _anothers(file: SettingsRead, found: FoundHook) -> Iterator[Finding]:
    if found.event not in STOP_EVENTS:
        return
    kind = found.hook.get("type")
    if kind in ("prompt", "agent"):
        text = f"{file.path}: a hook of type {kind} at {found.event} asks a model of its own at every stop, and may hold it without end"
        yield warn("other hooks", text, "take it out, or expect two judges at every stop")
    else:
        text = f"{file.path}: another hook at {found.event} may hold a stop too, beyond our two"
        yield warn("other hooks", text, "nothing, if it is meant to be there")
