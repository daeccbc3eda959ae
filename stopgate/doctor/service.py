"""
The service: whether it answers, is of this version, and lets nobody else in; or why there is none.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from ...judge.service.sockets import PATH_LIMIT, SOCKET_NAME
from ..failed_start import last_failure
from ..relay import VERSION
from ..service_commands import ServiceTrouble, standing
from .finding import Finding, bad, ok, warn
from .scene import Scene


def check(scene: Scene) -> Iterator[Finding]:
    """
    Ask it how it stands, where one is running.
    """
    folder = scene.state
    if folder is None:
        return
    path = os.path.join(folder, SOCKET_NAME)
    if len(os.fsencode(path)) > PATH_LIMIT:
        text = f"{path}: the path is too long for a socket: every stop is decided without a service"
        yield warn("service", text, "name a shorter folder by TURNGATE_STATE_DIR")
        return
    try:
        found = standing(scene.safe.environ)
    except ServiceTrouble as error:
        yield bad("service", str(error), "run `turngate stop`; kill the process that it names, if it does not end")
        return
    if found is None:
        yield from _none(scene, folder)
        return
    yield from _running(str(found.get("version")), path)


def _none(scene: Scene, folder: str) -> Iterator[Finding]:
    failure = last_failure(folder)
    if failure:
        yield bad("service", f"the last start failed: {failure}", "put that right; `turngate serve` shows it again")
    elif not scene.settings.service_autostart:
        yield warn(
            "service", "none is running, and service.autostart is off: stops take longer", "run `turngate serve`"
        )
    else:
        yield ok("service", "none is running; the next stop starts one")


def _running(version: str, path: str) -> Iterator[Finding]:
    if version != VERSION:
        yield warn("service", f"version {version} is running, and this is {VERSION}", "run `turngate stop`")
    else:
        yield ok("service", f"version {version} answers at {path}")
    mode = stat.S_IMODE(os.stat(path).st_mode)  # noqa: PTH116
    if mode & 0o077:
        yield bad("service", f"{path} is open to others: mode {mode:o}", f"chmod 600 {path}")
