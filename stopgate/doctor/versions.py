"""
The versions of what works together: turngate, Python and the client.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from ..relay import VERSION
from .finding import Finding, ok, warn
from .scene import Scene

TASKS_SINCE: Final = (2, 1, 145)
"""The first client that tells which background tasks run."""

_WAIT_S: Final = 15.0


def check(scene: Scene) -> Iterator[Finding]:
    """
    Ask the client for its version; nothing else of it runs.
    """
    yield ok("versions", f"turngate {VERSION}, Python {platform.python_version()}")
    program = shutil.which("claude", path=scene.environ.get("PATH"))
    if program is None:
        yield warn(
            "client", "there is no `claude` on the PATH", "install the client, or put it on the PATH of your shell"
        )
        return
    said = _said_by(program, scene)
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", said)
    if not found:
        yield warn("client", f"{program} does not say its version", "see whether the client itself works")
        return
    version = tuple(int(part) for part in found.groups())
    if version < TASKS_SINCE:
        needed = ".".join(map(str, TASKS_SINCE))
        text = f"client {found[0]} does not tell of background tasks: they hold nothing"
        yield warn("client", text, f"update the client to {needed} or newer")
    else:
        yield ok("client", f"client {found[0]}")


def _said_by(program: str, scene: Scene) -> str:
    environ = {name: scene.environ[name] for name in ("HOME", "PATH", "CLAUDE_CONFIG_DIR") if name in scene.environ}
    with suppress(OSError, subprocess.SubprocessError):
        ran = subprocess.run(  # noqa: S603
            (program, "--version"),
            env=environ,
            capture_output=True,
            check=False,
            timeout=_WAIT_S,
            stdin=subprocess.DEVNULL,
        )
        return ran.stdout.decode("utf-8", "replace").strip()
    return ""
