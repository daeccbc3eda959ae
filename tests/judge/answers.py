"""
Answers of a scripted endpoint, and the shape of what is asked and written down.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from turngate.costing.records import Call, CallEnd
from turngate.judge.judgement import Judgement
from turngate.judge.scripted_api import Sends

AskOnce = Callable[..., Judgement]

CLEAN: dict[str, Any] = {"findings": []}
CLAIM: dict[str, Any] = {"findings": [{"fault": "claim", "quote": "All tests pass.", "reason": "No test was run."}]}
USAGE: dict[str, Any] = {"input_tokens": 700, "output_tokens": 50}


def sends(body: object, status: int = 200) -> Sends:
    return Sends(status, json.dumps(body).encode())


def ended(call: Call) -> CallEnd:
    assert call.end is not None
    return call.end
