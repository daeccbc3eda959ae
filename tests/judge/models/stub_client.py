"""
A program called `claude` that does as a test says, and writes down how it was started.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

USAGE: dict[str, Any] = {"input_tokens": 700, "output_tokens": 50, "inference_geo": "", "service_tier": "standard"}
MODEL = "claude-sonnet-5-5"

_HEAD = """#!{python} -IS
import json, os, subprocess, sys, time
given = sys.stdin.buffer.read().decode()
with open({log!r}, "a") as log:
    log.write(json.dumps(dict(argv=sys.argv[1:], environ=dict(os.environ), given=given, cwd=os.getcwd(), inside=os.listdir("."))) + "\\n")
"""


class StubClient:
    """
    The program, in a folder of its own; `body` is Python.
    """

    def __init__(self, folder: Path, body: str) -> None:
        self.folder = folder / "bin"
        self.folder.mkdir(parents=True)
        self.path = self.folder / "claude"
        self._log = folder / "runs.jsonl"
        self.path.write_text(_HEAD.format(python=sys.executable, log=str(self._log)) + body)
        self.path.chmod(0o755)

    @property
    def runs(self) -> list[dict[str, Any]]:
        """
        How it was started, each time.
        """
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []


def result(text: str = "", **more: Any) -> dict[str, Any]:
    """
    The account that client 2.1.328 gives of a run, as far as anybody reads it.
    """
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "api_error_status": None,
        "stop_reason": "end_turn",
        "num_turns": 1,
        "result": text,
        "total_cost_usd": 0.5,
        "usage": USAGE,
        "modelUsage": {MODEL: {"inputTokens": 700, "outputTokens": 50, "costUSD": 0.5}},
        **more,
    }


def failure(text: str, **more: Any) -> dict[str, Any]:
    """
    The account of a run whose request failed.
    """
    usage = {"input_tokens": 0, "output_tokens": 0}
    stopped = {"is_error": True, "stop_reason": "stop_sequence", "terminal_reason": "api_error"}
    return result(text, **{**stopped, "usage": usage, "modelUsage": {}, **more})


def says(account: object, code: int = 0) -> str:
    """
    The body of a client that prints this account and ends.
    """
    return f"print({json.dumps(account)!r})\nsys.exit({code})\n"


def verdict(**body: Any) -> str:
    """
    The body of a client whose model gives this verdict.
    """
    return says(result(json.dumps(body)))


def only(environ: Mapping[str, str], *ours: str) -> dict[str, str]:
    """
    Leave out the variables that are set anew in each run.
    """
    return {name: value for name, value in environ.items() if name not in ours}
