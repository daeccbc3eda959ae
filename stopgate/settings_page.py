"""
The table of docs/settings.md, made of the keys that are read: `python -m turngate.stopgate.settings_page docs/settings.md` renews it.

Keys, defaults, values and what a project may set come from the code; here stand only the words.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from .settings import DEFAULT_ACTIONS, KEYS, Settings

BEGIN: Final = "<!-- by stopgate/settings_page.py: change it there, then python -m turngate.stopgate.settings_page docs/settings.md -->"
END: Final = "<!-- end of the table -->"

_ACTION_ROW: Final = "rubric.action.<fault>"

_LIMITS: Final = {"gate.mode": "only `shadow`", _ACTION_ROW: "softer, down to `note`"}
"""Where a project may set a key, but not to everything."""

_ABOUT: Final = {
    "gate.mode": "`shadow`: everything is judged and logged, and nothing is held",
    "gate.continuations": "holds per human turn",
    "gate.events": "at which stops the gate is asked",
    "gate.message": "one short line to the person with each hold",
    "gate.style": "`context`: no red label, for clients from 2.1.163; `auto`: by the client's version",
    "background.mode": "whether running tasks hold; `headless`: only where nobody attends",
    "background.exempt_types": "more task types that never hold; `monitor`, `teammate` and `in_process_teammate` never do",
    "background.exempt_commands": "patterns on a task's command, for example `npm run dev*`",
    "background.holds_per_task": "how often one task may be named in a session",
    "evidence.checks": "a project's own check commands, as patterns, for example `./verify*`",
    "jobs.mode": "the [jobs check](jobs.md) of Bash commands; `ask`: the person is asked",
    "jobs.allow": "patterns on a refused part of a command, for example `npm run dev*`",
    _ACTION_ROW: "`hold_once`: alone, once per session; `note`: only logged",
    "record.turns": "keep what was judged, without secrets, for the lab",
    "ledger.url": "the ledger and the counts of holds in PostgreSQL; else the SQLite file in the state directory. Needs "
    "`pip install 'psycopg[binary]'` beside turngate",
    "service.autostart": "a hook that finds no [service](service.md) starts one",
    "service.http_port": "a port of 127.0.0.1 for metrics and a team's judge, behind a token",
    "service.idle_exit_s": "seconds without a request after which the service ends; with a port it never does",
    "judge.backend": "[who is asked](judges.md). `auto`: `anthropic` where there is a key, else `claude-cli` where you are signed in; "
    "`remote`: [a team's service](team.md); `scripted` is for tests: the next line of `scripted.jsonl` in the state directory is the "
    "answer",
    "judge.model": "the model that is asked",
    "judge.base_url": "any endpoint that speaks the Messages API; else `ANTHROPIC_BASE_URL`, else the vendor's. For `remote`: the "
    "address of the service",
    "judge.api_key_env": "which variable has the key. For `remote` the token is in `TURNGATE_REMOTE_TOKEN`, unless you name another "
    "variable here",
    "judge.deadline_s": "over all tries, from the hook's start; keep it below the hook's timeout",
    "judge.max_input_tokens": "ceiling of the whole request",
    "judge.max_tokens": "ceiling of the answer",
    "judge.effort": "how hard the model thinks",
    "judge.cache": "`auto`: the rubric is cached when the last call is under five minutes old",
    "rubric.name": "a packaged rubric, or [one of your own](#a-rubric-of-your-own)",
    "budget.usd_per_day": "after which no model is asked; a day is a UTC day. Calls that are under way do not count yet",
    "budget.usd_per_session": "the same for one session of the client",
}


def table() -> str:
    """
    Give the table in Markdown, one row for each key, those of a section together. Raises `KeyError` for a key without words.
    """
    rows = [_row(key) for key in _rows()]
    return "\n".join(["| key | default | values | what it does | |", "|---|---|---|---|---|", *rows]) + "\n"


def renewed(page: str) -> str:
    """
    Give the page with the table of today between the marks. Raises `ValueError` where it has not both.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks the line {END if begin else BEGIN!r}")
    return f"{before}{BEGIN}\n\n{table()}\n{END}{after}"


def _rows() -> list[str]:
    """
    The keys in the order of the code; the faults share a row.
    """
    return list(dict.fromkeys(_ACTION_ROW if key.startswith("rubric.action.") else key for key in KEYS))


def _row(name: str) -> str:
    key = next(key for key in KEYS if key.startswith("rubric.action.")) if name == _ACTION_ROW else name
    values = re.sub(r"'([^']+)'", r"`\1`", KEYS[key].expected)
    project = ""
    if KEYS[key].in_project:
        project = f"**project**: {_LIMITS[name]}" if name in _LIMITS else "**project**"
    default = _actions() if name == _ACTION_ROW else _shown(_default(key))
    return re.sub(r" +\|", " |", f"| `{name}` | {default} | {values} | {_ABOUT[name]} | {project} |")


def _actions() -> str:
    usual = max(DEFAULT_ACTIONS.values(), key=list(DEFAULT_ACTIONS.values()).count)
    others = [f"{fault} `{action}`" for fault, action in DEFAULT_ACTIONS.items() if action != usual]
    return "; ".join([f"`{usual}`", *others])


def _default(key: str) -> object:
    settings = Settings()
    field = KEYS[key].judge
    return getattr(settings.judge, field) if field else getattr(settings, key.replace(".", "_"))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(f"`{word}`" for word in value)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, float | int):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return f"`{value}`" if value else ""


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(renewed(page.read_text()))
