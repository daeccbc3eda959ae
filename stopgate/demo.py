"""
The demo: a false claim is held and withdrawn, and a stop waits for background work, told as a timeline.

Client and judge's model are played from a script, on loopback and without a key. The hook is the real process, its figures are read
back from its ledger, and what does not come as told ends the demo: it is a check as well.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from ..costing.database import open_database
from ..costing.ledger import Ledger
from ..costing.outcomes import Outcome
from ..costing.records import Call, Decision
from ..costing.screen import money, one_line
from ..costing.usage import Usage, total
from ..judge.scripted_api import ScriptedMessagesApi
from .played_client import SESSION_ID, Answered, PlayedClient, Task

Say = Callable[[str], None]

FAKE_KEY: Final = "not-a-key-turngate-demo"

PROMPT: Final = "Write retry.ts: one line that calls an async function up to three times."
RETRY: Final = (
    "export const retry = <T>(call: () => Promise<T>, times = 3): Promise<T> =>"
    " call().catch((error) => (times > 1 ? retry(call, times - 1) : Promise.reject(error)));\n"
)
CLAIM: Final = "Wrote retry.ts.\n\nDone. All tests pass."
GAP: Final = "No test ran in this turn. Run them now, or say plainly that they were not run."
WITHDRAWN: Final = "Correction: no tests ran; the repo has none."

NEXT_PROMPT: Final = "Build the project in the background, and tell me how it went."
BUILD: Final = Task("b7build01", "npm run build", "Build the project")
TOO_EARLY: Final = "The build is running in the background."
BUILT: Final = "The build has finished with exit code 0."

VERDICTS: Final[tuple[dict[str, Any], ...]] = (
    {"findings": [{"fault": "claim", "quote": "All tests pass.", "reason": GAP}]},
    {"findings": []},
    {"findings": []},
)

_WIDTH: Final = 100
_INDENT: Final = " " * 10

_OPENING: Final = """\
turngate demo: two turns of a coding agent, and what the gate at their end does. Client and model are
played from a script on this machine, with no key and no network; the hook and its ledger are real.

"""


class NotAsTold(Exception):
    """
    Something came otherwise than the demo tells it; one line that says what.
    """


def play(say: Say) -> None:
    """
    Play both stories in a temporary directory and tell them line by line.

    Raises NotAsTold, or StoreError where the ledger cannot be read.
    """
    hook = _hook()
    with (
        tempfile.TemporaryDirectory(prefix="turngate-demo-") as folder,
        ScriptedMessagesApi(VERDICTS, key=FAKE_KEY) as api,
    ):
        # The real path, as a client names it: on some systems the temporary directory is a link.
        stage = _Stage(Path(folder).resolve(), hook, api.url, say)
        say(_OPENING)
        _false_claim(stage)
        _background_work(stage)
        if len(api.requests) != len(VERDICTS):
            raise NotAsTold(f"{len(api.requests)} requests reached the model: expected {len(VERDICTS)}")
        say(_total(stage.decisions()))
        say(_next_steps(hook))


def _false_claim(stage: _Stage) -> None:
    stage.title("A false claim")
    stage.prompt(PROMPT)
    stage.writes("retry.ts", RETRY)
    stage.stops(CLAIM, "block_verdict", calls=1, reason=GAP)
    stage.stops(WITHDRAWN, "pass_clean", calls=1)


def _background_work(stage: _Stage) -> None:
    stage.title("Background work")
    stage.prompt(NEXT_PROMPT)
    stage.starts(BUILD)
    stage.stops(TOO_EARLY, "block_background", calls=0, running=[BUILD])
    stage.collects(BUILD)
    stage.stops(BUILT, "pass_clean", calls=1)


class _Stage:
    """
    Plays each step, tells it, and checks what the gate made of it.
    """

    def __init__(self, folder: Path, hook: str, api_url: str, say: Say) -> None:
        self._state = folder / "state"
        self._say = say
        self._stories = self._stops = self._calls = 0
        project = folder / "project"
        project.mkdir()
        self._client = PlayedClient(project, folder / "session.jsonl", hook, _environ(folder, self._state, api_url))

    def title(self, text: str) -> None:
        self._stories += 1
        self._say(f"{self._stories}. {text}\n\n")

    def prompt(self, text: str) -> None:
        self._client.prompt(text)
        self._tell("prompt", text)

    def writes(self, name: str, content: str) -> None:
        file = self._client.writes(name, content)
        self._tell("tool", f"Write {name}, really written: {file.stat().st_size} bytes")

    def starts(self, task: Task) -> None:
        self._client.starts(task)
        self._tell("tool", f"Bash {task.command}, in the background as {task.id}")

    def collects(self, task: Task) -> None:
        self._client.collects(task, "built\n")
        self._tell("tool", f"Read the output of {task.id}; meanwhile the client notifies that it has completed")

    def stops(
        self, reply: str, outcome: Outcome, *, calls: int, reason: str = "", running: Sequence[Task] = ()
    ) -> None:
        self._tell("reply", reply)
        self._stops += 1
        try:
            answered = self._client.stops(reply, running)
        except (OSError, ValueError, subprocess.TimeoutExpired) as exc:
            raise NotAsTold(f"stop {self._stops}: the hook gave no answer: {exc}") from exc

        self._expect("exit code of the hook", answered.code, 0)
        self._expect("standard error of the hook", answered.stderr.decode("utf-8", "replace"), "")
        decision = self._decision()
        self._check(answered, decision, outcome, calls)
        if reason:
            self._expect("the reason", answered.reason, reason)
        for task in running:
            self._expect(f"{task.id} in the reason", task.id in answered.reason, True)
        self._tell_gate(answered, decision)

    def decisions(self) -> list[Decision]:
        """
        All decisions that the hook recorded, newest last.
        """
        with open_database(str(self._state)) as database:
            return Ledger(database).decisions(session_id=SESSION_ID)

    def _decision(self) -> Decision:
        decisions = self.decisions()
        self._expect("decisions in the ledger", len(decisions), self._stops)
        return decisions[-1]

    def _check(self, answered: Answered, decision: Decision, outcome: Outcome, calls: int) -> None:
        line = decision.line
        self._expect(f"outcome{line.detail and f' ({one_line(line.detail)})'}", line.outcome, outcome)
        self._expect("model calls", len(decision.calls), calls)
        if outcome.startswith("block_"):
            self._expect("the stop is held", bool(answered.reason), True)
        else:
            self._expect("standard output of a pass", answered.stdout, b"")

    def _expect(self, what: str, seen: object, told: object) -> None:
        if seen != told:
            raise NotAsTold(f"stop {self._stops}: {what}: expected {told!r}, and there is {seen!r}")

    def _tell_gate(self, answered: Answered, decision: Decision) -> None:
        line = decision.line
        if answered.reason:
            self._tell("gate", f"held ({line.outcome}, {line.hook_ms:,} ms). The agent goes on, and is told:")
            self._tell("", "\n".join(f"  {part}" for part in answered.reason.splitlines()))
        else:
            self._tell("gate", f"passed silently ({line.outcome}, {line.hook_ms:,} ms)")
        if not decision.calls:
            self._tell("", "no model call: no tokens, no cost")
        for call in decision.calls:
            self._calls += 1
            self._tell(f"call {self._calls}", _figures(call))
        self._say("\n")

    def _tell(self, who: str, text: str) -> None:
        lines = [line for part in text.splitlines() if part for line in _folded(part)]
        names = itertools.chain([who], itertools.repeat(""))
        self._say("".join(f"{name:<{len(_INDENT)}}{line}\n" for name, line in zip(names, lines, strict=False)))


def _hook() -> str:
    places = [str(Path(sys.executable).parent), sysconfig.get_path("scripts")]
    found = shutil.which("turngate-hook", path=os.pathsep.join(places))
    if found is None:
        raise NotAsTold(f"there is no turngate-hook in {' or '.join(dict.fromkeys(places))}: install turngate anew")
    return found


def _environ(folder: Path, state: Path, api_url: str) -> dict[str, str]:
    home = folder / "home"
    home.mkdir()
    # Without these, Windows starts no program.
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "TURNGATE_STATE_DIR": str(state),
        # Nothing is to run on when the demo is over.
        "TURNGATE_SERVICE_AUTOSTART": "off",
        "TURNGATE_CONFIG": str(folder / "config.toml"),
        "TURNGATE_JUDGE_BASE_URL": api_url,
        # Just after an installation the SDK's first import alone can take longer than the usual deadline.
        "TURNGATE_JUDGE_DEADLINE_S": "60",
        "ANTHROPIC_API_KEY": FAKE_KEY,
    }


def _figures(call: Call) -> str:
    usage, cost, latency_ms = _known(call)
    return f"{_tokens(usage)}; {money(cost)}; answered in {latency_ms:,} ms"


def _known(call: Call) -> tuple[Usage, Decimal, int]:
    end = call.end
    if end is None or end.usage is None or end.cost_usd is None or end.latency_ms is None:
        raise NotAsTold(f"call {call.id}: tokens, cost or latency are unknown")
    return end.usage, end.cost_usd, end.latency_ms


def _tokens(usage: Usage) -> str:
    """
    Give the tokens in words. The cached ones are part of the input.
    """
    written = usage.cache_write_5m_tokens + usage.cache_write_1h_tokens
    parts = [f"{usage.cache_read_tokens:,} from the cache"] if usage.cache_read_tokens else []
    parts += [f"{written:,} written to it" if parts else f"{written:,} written to the cache"] if written else []
    return f"{usage.prompt_tokens:,} input tokens ({', '.join(parts) or 'none cached'}), {usage.output_tokens:,} output"


def _total(decisions: Sequence[Decision]) -> str:
    calls = [call for decision in decisions for call in decision.calls]
    known = [_known(call) for call in calls]
    tokens = _tokens(total(usage for usage, _, _ in known))
    cost = sum((cost for _, cost, _ in known), Decimal(0))
    priced = sorted({f"{call.start.model} by {call.end.price_source}" for call in calls if call.end})
    return f"""\
Total: {len(decisions)} stops, {len(calls)} model calls; {tokens}; {money(cost)}
Prices: {", ".join(priced)}. The scripted model takes four bytes for a token and answers at once;
a real one counts a little otherwise and needs a second or two. The rubric is written to the cache when
the call before is less than five minutes old, and read from there afterwards.
"""


def _next_steps(hook: str) -> str:
    return f"""
Where to go next
  The README has the snippet for your client's settings, and what a call costs. Your hook is
  {hook}
  Here each stop loaded the judge's SDK in a process of its own; in use a resident service does it once.
  Then look back with `turngate log`, `turngate show ID` and `turngate cost`, which lie beside the hook.
"""


def _folded(line: str) -> list[str]:
    margin = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, _WIDTH - len(_INDENT), subsequent_indent=margin, break_long_words=False)
