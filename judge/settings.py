"""
What a user may set about the judge. Who reads it from files and variables is not known here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from pathlib import Path

Backend = Literal["auto", "anthropic", "claude-cli", "bedrock", "vertex", "remote", "scripted", "off"]
Cache = Literal["auto", "on", "off"]
Effort = Literal["low", "medium", "high"]

BACKENDS: tuple[str, ...] = get_args(Backend)
CACHES: tuple[str, ...] = get_args(Cache)
EFFORTS: tuple[str, ...] = get_args(Effort)

VARIABLE_NAME = r"[A-Z_][A-Z0-9_]{0,63}"


class JudgeSettings(NamedTuple):
    """
    Which model is asked, where, with what, and how much it may take.
    """

    backend: Backend = "auto"
    model: str = "claude-sonnet-5-5"
    base_url: str = ""
    """Of a team's service, where the back end is `remote`. Empty: `ANTHROPIC_BASE_URL`, else the vendor's endpoint."""
    api_key_env: str = "ANTHROPIC_API_KEY"
    """The name of the variable that holds the key, or a service's token where it is not the default; never the key itself."""
    deadline_s: float = 8.0
    """Over all tries of one judgement, counted from the hook's start."""
    max_input_tokens: int = 2500
    max_tokens: int = 1024
    effort: Effort = "medium"
    cache: Cache = "auto"
    rubric_name: str = "turn_end"
    rubric_folder: Path | None = None
    """Where a user's own rubrics lie, beside the packaged ones."""
    usd_per_day: str | None = None
    """A plain decimal, for one UTC day; None is no limit."""
    usd_per_session: str | None = None

    def __repr__(self) -> str:
        # A key may stand by mistake where a variable's name or an address is meant.
        shown = self._asdict()
        if not re.fullmatch(VARIABLE_NAME, self.api_key_env):
            shown["api_key_env"] = "..."
        if "@" in self.base_url:
            shown["base_url"] = "..."
        return f"JudgeSettings({', '.join(f'{name}={value!r}' for name, value in shown.items())})"
