"""
The places: where settings and state lie for this user.

Paths are text, not `Path`: the hook asks for them, and `pathlib` alone would cost it 11 ms. None means that there is no
such place: no variable names it, and neither a variable nor the system knows a home directory.
"""

# ruff: noqa: PTH100, PTH117
from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Literal


def config_file(environ: Mapping[str, str]) -> str | None:
    """
    Give the user's settings file: `TURNGATE_CONFIG`, else `config.toml` in the config directory.
    """
    if named := environ.get("TURNGATE_CONFIG"):
        return _absolute(named, environ)

    folder = config_dir(environ)
    return folder and os.path.join(folder, "config.toml")


def config_dir(environ: Mapping[str, str]) -> str | None:
    """
    Give the user's config directory, where settings, prices and rubrics of their own lie.
    """
    if named := environ.get("TURNGATE_CONFIG"):
        file = _absolute(named, environ)
        return file and os.path.dirname(file)

    return _user_dir("config", environ)


def state_dir(environ: Mapping[str, str]) -> str | None:
    """
    Give the state directory: `TURNGATE_STATE_DIR`, else the user's.
    """
    if named := environ.get("TURNGATE_STATE_DIR"):
        return _absolute(named, environ)

    return _user_dir("state", environ)


def expand_home(path: str, environ: Mapping[str, str]) -> str:
    """
    Replace a leading `~` by the user's home directory, where there is one.
    """
    if path != "~" and not path.startswith("~/"):
        return path

    home = _home(environ)
    return path if home is None else (home + path[1:]) or "/"


def _user_dir(kind: Literal["config", "state"], environ: Mapping[str, str]) -> str | None:
    if not sys.platform.startswith("linux"):
        return _as_platformdirs_says(kind)

    # The same answer as platformdirs gives here, without its 6 to 18 ms.
    base = environ.get(f"XDG_{kind.upper()}_HOME", "")
    if not os.path.isabs(base):
        base = _absolute("~/.config" if kind == "config" else "~/.local/state", environ) or ""
    return os.path.join(base, "turngate") if base else None


def _as_platformdirs_says(kind: Literal["config", "state"]) -> str | None:
    import platformdirs

    try:
        folder = platformdirs.user_config_dir if kind == "config" else platformdirs.user_state_dir
        return folder("turngate", appauthor=False)
    except RuntimeError:
        return None


def _absolute(path: str, environ: Mapping[str, str]) -> str | None:
    path = expand_home(path, environ)
    if path.startswith("~/") or path == "~":
        return None

    try:
        return os.path.abspath(path)
    except OSError:  # relative, and the working directory is gone
        return None


def _home(environ: Mapping[str, str]) -> str | None:
    home = environ.get("HOME", "")
    if os.path.isabs(home):
        return home.rstrip("/")

    home = _home_in_system(environ)
    return home.rstrip("/") if os.path.isabs(home) else None


def _home_in_system(environ: Mapping[str, str]) -> str:
    try:
        import pwd
    except ImportError:  # Windows
        return environ.get("USERPROFILE", "")

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
