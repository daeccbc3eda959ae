"""
This process's own environment, as far as it can be trusted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from .trust import trusted


def trusted_environ() -> Mapping[str, str]:
    """
    Give the environment without what the project has set that the client was started in, for a hook that has not read its event.
    """
    folders = [os.environ.get("CLAUDE_PROJECT_DIR", "")]
    with suppress(OSError):  # the working directory may be gone, and what stood there with it
        folders.append(os.getcwd())  # noqa: PTH109
    return trusted(os.environ, [folder for folder in folders if folder]).environ
