"""
What installing and uninstalling change in the text of a settings file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .client_settings import ClientFile, FoundHook, hooks_in, parsed_settings
from .json_spans import Node, with_element, with_member, with_value, without
from .our_hooks import Wanted, is_ours


def with_our_hooks(file: ClientFile, wanted: Sequence[Wanted]) -> str:
    """
    Give the settings with these hooks of ours and no others; a second time nothing changes. Raises `BadClientSettings`.
    """
    text = _without_superfluous(file, wanted)
    for hook in wanted:
        text = _with_hook(file, text, hook)
    return text


def without_our_hooks(file: ClientFile) -> str:
    """
    Give the settings without our hooks, and without what they alone were in. Raises `BadClientSettings`.
    """
    return _without_superfluous(file, ())


def our_hooks_in(root: Node) -> list[FoundHook]:
    """
    Give our hooks.
    """
    return [found for found in hooks_in(root) if is_ours(found.hook)]


def _without_superfluous(file: ClientFile, wanted: Sequence[Wanted]) -> str:
    text = file.text
    while True:
        root = parsed_settings(file, text)
        superfluous = _superfluous(our_hooks_in(root), {hook.event: hook for hook in wanted})
        if superfluous is None:
            return text
        text = _without_hook(text, root, superfluous)


def _superfluous(ours: Sequence[FoundHook], wanted: Mapping[str, Wanted]) -> FoundHook | None:
    seen: set[str] = set()
    for found in ours:
        hook = wanted.get(found.event)
        is_misplaced = hook is not None and bool(hook.matcher) and found.matcher != hook.matcher
        if hook is None or is_misplaced or found.event in seen:
            return found
        seen.add(found.event)
    return None


def _without_hook(text: str, root: Node, found: FoundHook) -> str:
    way = _way(root, found)
    # From the hook up: what was emptied goes with it.
    for parent, index in reversed(way):
        if len(parent.children) > 1 or parent is root:
            return without(text, parent, index)
    return text


def _way(root: Node, found: FoundHook) -> list[tuple[Node, int]]:
    """
    Give each container on the way to a hook, with the index of the child that leads on; of a group, the group itself leads on.
    """
    hooks_index = next(index for index, child in enumerate(root.children) if child.key == "hooks")
    hooks = root.children[hooks_index].node
    event = hooks.children[found.event_index].node
    listed = event.children[found.group_index].node.member("hooks")
    if listed is None:
        raise LookupError(found.event)
    return [(root, hooks_index), (hooks, found.event_index), (event, found.group_index), (listed, found.hook_index)]


def _with_hook(file: ClientFile, text: str, wanted: Wanted) -> str:
    root = parsed_settings(file, text)
    found = next((ours for ours in our_hooks_in(root) if ours.event == wanted.event), None)
    if found is not None:
        new = wanted.hook(str(found.hook.get("command", "")))
        if new == found.hook:
            return text
        listed, index = _way(root, found)[-1]
        return with_value(text, listed.children[index].node, new)

    hooks = root.member("hooks")
    if hooks is None:
        return with_member(text, root, "hooks", {wanted.event: [wanted.group()]})
    event = hooks.member(wanted.event)
    if event is None:
        return with_member(text, hooks, wanted.event, [wanted.group()])
    return with_element(text, event, wanted.group())
