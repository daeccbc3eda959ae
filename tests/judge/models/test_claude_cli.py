"""
The client as a judge: how it is started, what each of its endings comes to, and that nothing of it is left.

The program is a stand-in here; the real client is in `tests/e2e/test_claude_cli.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sysconfig
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from turngate.costing.ledger import Ledger
from turngate.judge.connect import Judge, NoJudge, Target, connect
from turngate.judge.context import CallContext
from turngate.judge.judgement import Judgement
from turngate.judge.models import claude_cli
from turngate.judge.models.client_login import GUARD
from turngate.judge.open_models import OpenModels
from turngate.judge.settings import JudgeSettings
from turngate.rubric.turn import Turn
from turngate.stopgate.hook import GUARD as HOOKS_GUARD

from ..answers import ended
from .stub_client import USAGE, StubClient, failure, only, result, says, verdict

CLAIM = {"fault": "claim", "quote": "All tests pass.", "reason": "No test was run."}
TOKEN = "sk-ant-oat01-0123456789abcdef"  # no real one

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the client is not asked on this system")

AskClient = Callable[..., Judgement]


@pytest.fixture(autouse=True)
def _own_scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))


def judge_by(stub: StubClient, ledger: Ledger, *, deadline_s: float = 20.0, **settings: Any) -> Judge:
    """
    Give the judge of somebody whose client this is.
    """
    environ = {"PATH": f"{stub.folder}:/usr/bin:/bin", "HOME": "/nonexistent", "CLAUDE_CODE_OAUTH_TOKEN": TOKEN}
    judge = connect(
        JudgeSettings(backend="claude-cli", **settings),
        {**environ, "TURNGATE_JUDGE_MODEL": "x", "ANTHROPIC_LOG": "debug", "CLAUDE_PROJECT_DIR": "/project"},
        ledger,
        CallContext(decision_id="d1", session_id="s1"),
        deadline_at=time.monotonic() + deadline_s,
    )
    assert isinstance(judge, Judge), judge
    return judge


@pytest.fixture(name="ask")
def ask_fixture(tmp_path: Path, ledger: Ledger, turn: Turn) -> AskClient:
    """
    Ask a client whose body is this.
    """

    def ask(body: str, **more: Any) -> Judgement:
        return judge_by(StubClient(tmp_path, body), ledger, **more)(turn)

    return ask


def scratch(folder: Path) -> list[str]:
    return [path.name for path in (folder / "tmp").iterdir()]


def test_the_client_is_started_alone(tmp_path: Path, ledger: Ledger, turn: Turn) -> None:
    """
    No tools, settings, memory or session; an empty folder to work in; and of the environment only what a person's log-in takes.
    """
    stub = StubClient(tmp_path, verdict(findings=[]))

    judged = judge_by(stub, ledger)(turn)

    (run,) = stub.runs
    assert judged.outcome == "answered"
    argv = run["argv"]
    system = argv.pop(argv.index("--system-prompt") + 1)
    assert "findings" in system
    assert argv == [
        *("--print", "--model", "claude-sonnet-5-5", "--tools", "", "--system-prompt"),
        *("--setting-sources", "", "--strict-mcp-config", "--no-session-persistence"),
        *("--max-turns", "1", "--output-format", "json", "--effort", "medium"),
    ]
    assert turn.reply in run["given"]
    assert run["inside"] == []
    assert run["cwd"].startswith(str(tmp_path / "tmp" / "turngate-judge-"))
    assert only(run["environ"], "TMPDIR", "LC_CTYPE") == {
        "PATH": f"{stub.folder}:/usr/bin:/bin",
        "HOME": "/nonexistent",
        "CLAUDE_CODE_OAUTH_TOKEN": TOKEN,
        "TURNGATE_GUARD": "1",
        "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
        "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
        "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_THINKING": "1",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4096",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_PROMPT_CACHING": "1",
    }
    assert run["environ"]["TMPDIR"] == str(Path(run["cwd"]).parent)
    assert scratch(tmp_path) == []


def test_the_guard_is_the_one_that_the_hook_looks_for() -> None:
    """
    A hook inside of the judge's client does nothing.
    """
    assert GUARD == HOOKS_GUARD


def test_a_call_is_written_down_at_the_list_price_of_the_clients_usage(ask: AskClient, ledger: Ledger) -> None:
    """
    Tokens are the client's, the price is ours and not the client's, and its source says that a subscription may pay.
    """
    judged = ask(verdict(findings=[CLAIM]))

    (call,) = ledger.calls()
    end = ended(call)
    assert judged.verdict is not None
    assert judged.verdict.findings == ((CLAIM["fault"], CLAIM["quote"], CLAIM["reason"]),)
    assert judged.calls == (call.id,)
    assert (call.start.backend, call.start.model, call.start.session_id) == ("claude-cli", "claude-sonnet-5-5", "s1")
    assert call.start.endpoint.endswith("/bin/claude")
    assert (end.outcome, end.model_answered) == ("answered", "claude-sonnet-5-5")
    assert end.usage is not None
    assert (end.usage.input_tokens, end.usage.output_tokens) == (700, 50)
    # 700 at 2 dollars and 50 at 10 dollars a million: the list price of claude-sonnet-5-5.
    assert str(end.cost_usd) == "0.0019"
    assert end.price_source.endswith(", list price")
    assert end.raw_usage == USAGE


@pytest.mark.parametrize(
    ("body", "outcome", "call_outcome", "detail"),
    [
        pytest.param(
            says(result('Here it is:\n```json\n{"findings": []}\n```')), "answered", "answered", "", id="prose-around"
        ),
        pytest.param(
            says([{"type": "system"}, result('{"findings": []}')]), "answered", "answered", "", id="all-messages"
        ),
        pytest.param(
            says(result("It looks fine to me.")), "unreadable", "unreadable", "no JSON object", id="no-verdict"
        ),
        pytest.param(
            says(failure("API Error: safeguards flagged this", stop_reason="refusal", usage=USAGE), 1),
            *("refused", "refused", "the model declined to judge"),
            id="refusal",
        ),
        pytest.param(
            says(failure("API Error: too long an answer", api_error="max_output_tokens", usage=USAGE), 1),
            *("unreadable", "unreadable", "cut off by max_tokens"),
            id="cut-off",
        ),
        pytest.param(
            says(failure("Not logged in · Please run /login"), 1),
            *("error", "error", "the client says: Not logged in · Please run /login"),
            id="not-signed-in",
        ),
        pytest.param(
            says(failure("Failed to authenticate. API Error: 401", api_error_status=401), 1),
            *("error", "rejected", "the client says: Failed to authenticate. API Error: 401"),
            id="log-in-refused",
        ),
        pytest.param(
            says(
                {**failure(""), "subtype": "error_max_turns", "result": None, "errors": ["Reached maximum of turns"]}, 1
            ),
            *("error", "error", "the client says: Reached maximum of turns"),
            id="out-of-turns",
        ),
        pytest.param(
            f"print('token {TOKEN} expired', file=sys.stderr)\nsys.exit(1)\n",
            *("error", "error", "the client ended with 1 and said token [secret] expired"),
            id="exit-code-1",
        ),
        pytest.param(
            "print(\"error: unknown option '--setting-sources'\", file=sys.stderr)\nsys.exit(1)\n",
            *("error", "error", "the client ended with 1 and said error: unknown option '--setting-sources'"),
            id="too-old-a-client",
        ),
        pytest.param("", "error", "error", "the client ended with 0 and said nothing", id="empty"),
        pytest.param("print('<html>')\n", "error", "error", "the client ended with 0 and said <html>", id="garbage"),
        pytest.param("print('[' * 5000)\n", "error", "error", "the client ended with 0 and said [[[", id="deep"),
        pytest.param("print('[]')\n", "error", "error", "the client ended with 0 and said []", id="empty-list"),
        pytest.param(
            'print(\'{"type": "system"}\')\n', "error", "error", "the client ended with 0 and said {", id="no-result"
        ),
        pytest.param(
            "print('x' * 3_000_000)\n", "error", "error", "said more than can be an answer", id="endless-output"
        ),
        pytest.param(
            f"print('x' * 3_000_000, file=sys.stderr)\n{verdict(findings=[])}", "answered", "answered", "", id="chatty"
        ),
        pytest.param(
            "os.kill(os.getpid(), 9)\n", "error", "error", "the client was ended by signal 9 and said", id="killed"
        ),
        pytest.param(
            "sys.stdout.buffer.write(bytes(range(256)))\n", "error", "error", "the client ended with 0", id="binary"
        ),
    ],
)
def test_each_ending_has_an_outcome(
    ask: AskClient, ledger: Ledger, tmp_path: Path, body: str, outcome: str, call_outcome: str, detail: str
) -> None:
    """
    One line says what happened, without what the client pays with; one call is written down, and no folder is left.
    """
    judged = ask(body)

    (call,) = ledger.calls()
    assert (judged.outcome, ended(call).outcome) == (outcome, call_outcome)
    assert detail in judged.detail
    assert TOKEN not in judged.detail + ended(call).detail
    assert "\n" not in judged.detail
    assert scratch(tmp_path) == []


def test_a_failed_run_that_counts_nothing_has_an_unknown_cost(ask: AskClient, ledger: Ledger) -> None:
    """
    A request that failed may have been billed: nothing counted is not nothing paid.
    """
    ask(says(failure("Not logged in"), 1))

    (call,) = ledger.calls()
    assert (ended(call).usage, ended(call).cost_usd) == (None, None)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"api_error_status": 529}, id="overloaded"),
        pytest.param({"api_error_status": 429}, id="too-many"),
        pytest.param({"api_error": "connection_failed"}, id="no-connection"),
    ],
)
def test_what_passes_is_tried_again_with_a_line_for_each_run(ask: AskClient, ledger: Ledger, more: Any) -> None:
    """
    Tries are counted by turngate, since the client is told to make none of its own.
    """
    judged = ask(says(failure("API Error: try again", **more), 1))

    assert judged.outcome == "error"
    assert [call.start.try_number for call in ledger.calls()] == [1, 2, 3]


def test_an_option_that_an_older_client_lacks_is_left_out_and_remembered(
    tmp_path: Path, ledger: Ledger, turn: Turn
) -> None:
    """
    The effort can be done without; the next judgement does not ask for it.
    """
    refuses = 'if "--effort" in sys.argv:\n    sys.exit("error: unknown option \'--effort\'")\n'
    stub = StubClient(tmp_path, refuses + verdict(findings=[]))

    outcomes = [judge_by(stub, ledger)(turn).outcome for _ in range(2)]

    assert outcomes == ["answered", "answered"]
    assert ["--effort" in run["argv"] for run in stub.runs] == [True, False, False]


def test_a_cached_call_leaves_the_clients_cache_on(tmp_path: Path, ledger: Ledger, turn: Turn) -> None:
    """
    Only what `judge.cache` decides is written to the prompt cache.
    """
    stub = StubClient(tmp_path, verdict(findings=[]))

    judge_by(stub, ledger, cache="on")(turn)

    assert "DISABLE_PROMPT_CACHING" not in stub.runs[0]["environ"]


HANGS = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-IS", "-c", "import signal, time; signal.signal(15, 1); time.sleep(600)"])
with open({pids!r}, "w") as file:
    file.write(f"{{os.getpid()}} {{child.pid}}")
time.sleep(600)
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def test_at_the_deadline_the_client_is_killed_with_its_children(ask: AskClient, ledger: Ledger, tmp_path: Path) -> None:
    """
    One that ignores being asked to end, and a child that does so too, leave neither a process nor a file.
    """
    pids = tmp_path / "pids"

    judged = ask(HANGS.format(pids=str(pids)), deadline_s=2.0)

    give_up_at = time.monotonic() + 10
    numbers = [int(number) for number in pids.read_text().split()]
    while any(map(is_alive, numbers)) or scratch(tmp_path):
        assert time.monotonic() < give_up_at, "something is left"
        time.sleep(0.01)
    (call,) = ledger.calls()
    assert (judged.outcome, ended(call).outcome, ended(call).usage) == ("timeout", "timeout", None)


def test_a_child_that_holds_the_output_open_is_not_waited_for(ask: AskClient) -> None:
    """
    The answer counts when the client has ended, and whatever it left is killed.
    """
    child = 'subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(600)"])\n'

    assert ask(child + verdict(findings=[])).outcome == "answered"


def test_a_client_that_vanished_is_an_error(tmp_path: Path, ledger: Ledger, turn: Turn) -> None:
    """
    It was there when the judge was chosen and is gone when it is started.
    """
    stub = StubClient(tmp_path, verdict(findings=[]))
    judge = judge_by(stub, ledger)
    stub.path.unlink()

    judged = judge(turn)

    assert (judged.outcome, judged.detail) == ("error", "the client could not be started: No such file or directory")
    assert scratch(tmp_path) == []


def test_a_turn_of_any_length_and_content_is_handed_over(tmp_path: Path, ledger: Ledger) -> None:
    """
    More than a pipe holds, to a client that has not begun to read.
    """
    stub = StubClient(tmp_path, verdict(findings=[]))
    reply = "\ud800 wide \U0001f600 " * 30_000

    judged = judge_by(stub, ledger, max_input_tokens=100_000)(Turn(request="Go on.", reply=reply))

    assert judged.outcome == "answered"
    assert len(stub.runs[0]["given"].encode()) > 100_000


# In a service


class Loop:
    """
    An event loop in a thread, as a service has it.
    """

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self.models = OpenModels(self.loop)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.models.close(), self.loop).result(10)
        asyncio.run_coroutine_threadsafe(self.loop.shutdown_default_executor(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


def test_clients_run_side_by_side_and_four_at_most(tmp_path: Path, ledger: Ledger, turn: Turn) -> None:
    """
    None holds up the loop of a service; of six that are asked at once, two wait for others to end.
    """
    place = tmp_path / "meeting"
    place.mkdir()
    # Each waits until four are there, and notes how many there were when it came; the last two come when others have gone.
    meets = f"""
mine = os.path.join({str(place)!r}, str(os.getpid()))
open(mine, "w").close()
with open({str(tmp_path / "most")!r}, "a") as file:
    file.write(str(len([name for name in os.listdir({str(place)!r}) if not name.endswith("-gone")])) + "\\n")
while len(os.listdir({str(place)!r})) < 4:
    time.sleep(0.01)
os.rename(mine, mine + "-gone")
"""
    stub = StubClient(tmp_path, meets + verdict(findings=[]))
    loop = Loop()
    try:
        judge = judge_by(stub, ledger, deadline_s=60.0)
        with ThreadPoolExecutor(6) as callers:
            judged = list(callers.map(lambda _: loop.models.ask(judge, turn), range(6)))
    finally:
        loop.close()

    assert [one.outcome for one in judged] == ["answered"] * 6
    most = max(map(int, (tmp_path / "most").read_text().split()))
    assert most == claude_cli.MOST_AT_ONCE


def test_a_service_that_ends_leaves_no_client(tmp_path: Path, ledger: Ledger, turn: Turn) -> None:
    """
    What a stop still waits for is ended with the service.
    """
    pids = tmp_path / "pids"
    stub = StubClient(tmp_path, HANGS.format(pids=str(pids)))
    loop = Loop()
    try:
        asked = asyncio.run_coroutine_threadsafe(loop.models.judge(judge_by(stub, ledger), turn), loop.loop)
        give_up_at = time.monotonic() + 20
        while not pids.exists() or len(pids.read_text().split()) < 2:
            assert time.monotonic() < give_up_at
            time.sleep(0.01)
        asked.cancel()
    finally:
        loop.close()

    while any(map(is_alive, map(int, pids.read_text().split()))) or scratch(tmp_path):
        assert time.monotonic() < give_up_at, "something is left"
        time.sleep(0.01)


def test_a_key_of_a_target_is_not_shown() -> None:
    """
    What the client gets of the environment can be in a log no more than a key.
    """
    shown = repr(Target("claude-cli", "m", "/bin/claude", variables=(("CLAUDE_CODE_OAUTH_TOKEN", TOKEN),)))

    assert TOKEN not in shown


def test_without_a_client_there_is_no_judge(tmp_path: Path) -> None:
    """
    A missing program is told before anything is asked.
    """
    found = connect(JudgeSettings(backend="claude-cli"), {"PATH": str(tmp_path)}, None, CallContext(), deadline_at=0.0)

    assert found == NoJudge("no judge: the client 'claude' is not on the PATH")


@pytest.mark.parametrize("autostart", ["off", "on"], ids=["in-the-hooks-process", "in-a-service"])
def test_a_hook_leaves_no_client_behind(tmp_path: Path, autostart: str) -> None:
    """
    The hook answers at its deadline and ends; the client that would not end is dead by then, or soon.
    """
    pids = tmp_path / "pids"
    stub = StubClient(tmp_path, HANGS.format(pids=str(pids)))
    environ = {
        "PATH": f"{stub.folder}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path / "tmp"),
        "CLAUDE_CODE_OAUTH_TOKEN": TOKEN,
        "TURNGATE_STATE_DIR": str(tmp_path / "state"),
        "TURNGATE_CONFIG": str(tmp_path / "config.toml"),
        "TURNGATE_SERVICE_AUTOSTART": autostart,
        "TURNGATE_JUDGE_DEADLINE_S": "4",
    }
    event = {"hook_event_name": "Stop", "session_id": "s1", "last_assistant_message": "All is done."}
    scripts = Path(sysconfig.get_path("scripts"))
    try:
        ran = subprocess.run(
            [scripts / "turngate-hook"], input=json.dumps(event).encode(), env=environ, check=True, capture_output=True
        )
        logged = subprocess.run([scripts / "turngate", "log", "--json"], env=environ, check=True, capture_output=True)
        give_up_at = time.monotonic() + 10
        while any(map(is_alive, map(int, pids.read_text().split()))) or scratch(tmp_path):
            assert time.monotonic() < give_up_at, "something is left"
            time.sleep(0.01)
    finally:
        subprocess.run([scripts / "turngate", "stop"], env=environ, check=True, capture_output=True)

    (decision,) = [json.loads(line) for line in logged.stdout.splitlines()]
    assert (ran.stdout, decision["outcome"]) == (b"", "pass_judge_timeout")
    assert [(call["backend"], call["outcome"], call["cost_usd"]) for call in decision["calls"]] == [
        ("claude-cli", "timeout", None)
    ]
