"""
The coding agent's client as a judge's program: where it lies, who is signed in, and what of a person's environment it needs.

Nothing is started here, and nothing is spent: a stop must not wait for a client only to learn that nobody is signed in.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

NAME: Final = "claude"

GUARD: Final = "TURNGATE_GUARD"
"""Set for every client that turngate starts: the hooks in there do nothing."""

KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
"""What the client pays with, the first that is set; with none of them its own log-in."""

VARIABLES: Final = (
    *("HOME", "PATH", "USER", "LANG", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "ANTHROPIC_BASE_URL", *KEYS),
    *("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"),
    *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""All that the client gets of the environment, where it is set."""

_LONGEST_FILE: Final = 8_000_000
_USUAL_PLACES: Final = (".local/bin", ".claude/local")
"""Below the home; the client's own installers put it there."""


class Login(NamedTuple):
    """
    A client that can be asked.
    """

    program: str
    variables: tuple[tuple[str, str], ...]
    """With the person's secrets."""
    key_variable: str
    """What pays; empty where it is the client's own log-in."""


class NoLogin(NamedTuple):
    """
    Why the client cannot be asked, in one line.
    """

    reason: str


def find_login(environ: Mapping[str, str], *, without_api_key: bool = False) -> Login | NoLogin:
    """
    Look for the client and for somebody who is signed in, in a trusted environment. Reads at most two small files.

    `without_api_key`: no key is used, and so none is handed on.
    """
    if os.name != "posix":
        return NoLogin("the client cannot be asked on this system")
    kept = {name: environ[name] for name in VARIABLES if environ.get(name)}
    if without_api_key:
        kept.pop("ANTHROPIC_API_KEY", None)
    kept["PATH"] = _absolute(kept.get("PATH", os.defpath))
    program = _program(kept)
    if not program:
        return NoLogin(f"the client {NAME!r} is not on the PATH")
    paid_by = next((name for name in KEYS if kept.get(name)), "")
    if not paid_by and not _has_own_login(kept):
        return NoLogin(f"the client {NAME!r} is not signed in: run it and type /login")
    return Login(program, tuple(sorted(kept.items())), paid_by)


def _absolute(path: str) -> str:
    # A relative entry would be looked up in the project, which is not trusted.
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if folder.startswith("/"))


def _program(environ: Mapping[str, str]) -> str:
    folders = environ["PATH"].split(os.pathsep)
    if environ.get("HOME", "").startswith("/"):
        folders += [os.path.join(environ["HOME"], place) for place in _USUAL_PLACES]
    candidates = (os.path.join(folder, NAME) for folder in folders if folder)
    return next((path for path in candidates if os.path.isfile(path) and os.access(path, os.X_OK)), "")  # noqa: PTH113


def _has_own_login(environ: Mapping[str, str]) -> bool:
    """
    Say whether the client keeps a log-in: in a file of its own; on macOS in the keychain, and its account in its state file.
    """
    home = environ.get("HOME", "")
    config = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    if b'"accessToken"' in _content(os.path.join(config, ".credentials.json")):
        return True
    if sys.platform != "darwin":
        return False
    state = os.path.join(environ.get("CLAUDE_CONFIG_DIR") or home, ".claude.json")
    return b'"oauthAccount"' in _content(state)


def _content(path: str) -> bytes:
    if not path.startswith("/"):
        return b""
    with suppress(OSError, ValueError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(_LONGEST_FILE) or b""
    return b""
