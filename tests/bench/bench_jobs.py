"""
How long the check before a Bash call takes: the hook's whole process with a running service, and the check alone beside the
command's length.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.stopgate.jobs.check import checked

from ..e2e.processes import processes_with
from .installed import installed, serving

ROUNDS = 40
BARE = "python_nothing"
COMMAND_BYTES = 200

SIZES = {"1kb": 1_000, "10kb": 10_000, "100kb": 100_000, "1mb": 1_000_000}
CHECKS = {"1kb": 60, "10kb": 20, "100kb": 6, "1mb": 1}
"""How often each is checked in a round, by turns."""
CHECK_ROUNDS = 3

AT_MOST = {"hook_pass_ratio": 2.5, "hook_deny_ratio": 2.5, "per_byte_1mb_to_100kb": 1.5, "checks_given_up": 0.0}

_BLOCK = """
# Part {n}: build it, look at what came of it & say so.
build_{n}() {{
    local target="${{1:-dist/part-{n}}}" started; started=$(date +%s)
    mkdir -p "$target" && cd "$(dirname "$target")" || return 1
    npm run build --if-present -- --out "$target" 2>&1 | tee "logs/build-{n}.log"
    echo "took $(( $(date +%s) - started )) s; R&D = 'done'"
}}
for file in src/part_{n}/*.ts "docs/part {n}.md"; do
    [[ -e "$file" ]] || continue
    case "$file" in
        *.md) sed -i 's/&amp;/\\&/g' "$file" ;;
        *) npx prettier --check "$file" &>/dev/null || failed+=("$file") ;;
    esac
done
if ! build_{n} "out/{n}"; then
    cat <<EOF >>report.txt
Part {n} failed at $(date -u +%FT%TZ): see nohup & friends in logs/build-{n}.log
EOF
elif [ "${{CI:-}}" = true ]; then
    curl -fsS "https://ci.example.com/hook?part={n}&state=ok" -H 'Accept: application/json' | jq -r '.id' >id.txt
fi
sleep 0.1 & pid=$!; wait "$pid"
git add -A && git commit -qm "Part {n}: no pkill, no setsid & no disown" || true
"""

_JOB = "npm run dev -- --port 3000 &"


class Hook(NamedTuple):
    """
    One process to be timed.
    """

    command: Sequence[str]
    given: bytes = b""
    answer: bytes = b""
    """A part of what it must write; where this is empty, it must write nothing."""


def run(scratch: Path) -> dict[str, float]:
    """
    The figures: times in ms, of the hook's process the median, of the check alone the processor's at its best; a megabyte is 10^6 bytes.
    """
    return _of_the_process(scratch) | _of_the_check()


def _of_the_process(scratch: Path) -> dict[str, float]:
    python = installed(scratch)
    state, mark = scratch / "s", uuid.uuid4().hex
    environ = {"PATH": os.environ["PATH"], "HOME": str(scratch), "TURNGATE_STATE_DIR": str(state), "BENCH_MARK": mark}
    with serving(sys.executable, state, environ) as service:  # this environment has the libraries
        times = _interleaved_ms(_hooks(python), environ)
        _check_processes(mark, [service])
    _check_processes(mark, [])
    _check_ledger(state, {"jobs_pass": 1 + ROUNDS, "jobs_deny": 1 + ROUNDS})

    medians = {name: median(taken) for name, taken in times.items()}
    figures: dict[str, float] = {"rounds": ROUNDS}
    figures |= {f"{name}_ms": round(taken, 2) for name, taken in medians.items()}
    figures |= {f"{name}_ratio": round(taken / medians[BARE], 2) for name, taken in medians.items() if name != BARE}
    return figures


def _hooks(python: Path) -> dict[str, Hook]:
    file = next(python.parents[1].glob("lib/python3*/site-packages/turngate/stopgate/__main__.py"))
    hook = [str(python), "-I", "-S", str(file)]
    passing = 'cd packages/web && npm run build 2>&1 | tee build.log; echo "R&D: $(wc -l <build.log) lines"'
    return {
        BARE: Hook([str(python), "-I", "-S", "-c", "pass"]),
        "hook_pass": Hook(hook, _event(_padded(passing))),
        "hook_deny": Hook(hook, _event(_padded(_JOB)), b'"permissionDecision": "deny"'),
    }


def _padded(command: str) -> str:
    """
    Bring a command to its length, with words of no meaning before it.
    """
    filler = COMMAND_BYTES - len(command) - len("echo ; ")
    return f"echo {('word ' * COMMAND_BYTES)[:filler]}; {command}"


def _event(command: str) -> bytes:
    call = {"command": command, "description": "Build the site and count the lines"}
    event = {"hook_event_name": "PreToolUse", "session_id": "bench", "cwd": "/", "permission_mode": "default"}
    return json.dumps({**event, "tool_name": "Bash", "tool_input": call, "tool_use_id": "toolu_bench"}).encode()


def _interleaved_ms(hooks: Mapping[str, Hook], environ: Mapping[str, str]) -> dict[str, list[float]]:
    """
    Time all by turns: what else the machine does hits all alike. The first round only warms up.
    """
    times: dict[str, list[float]] = {name: [] for name in hooks}
    for _ in range(1 + ROUNDS):
        for name, hook in hooks.items():
            begun = time.perf_counter()
            ran = subprocess.run(hook.command, input=hook.given, env=dict(environ), capture_output=True, check=True)
            times[name].append((time.perf_counter() - begun) * 1000)
            if hook.answer not in ran.stdout or bool(ran.stdout) != bool(hook.answer):
                raise AssertionError(f"{name} wrote {ran.stdout!r}")
    return {name: taken[1:] for name, taken in times.items()}


def _check_processes(mark: str, expected: Sequence[int]) -> None:
    """
    Fail where others run than the service: a hook on its own would start another.
    """
    found = processes_with(f"BENCH_MARK={mark}")
    if [process.pid for process in found] != expected:
        raise AssertionError(f"left behind: {found}")


def _check_ledger(state: Path, expected: Mapping[str, int]) -> None:
    with open_database(str(state)) as database:
        seen = Counter(decision.line.outcome for decision in Ledger(database).decisions(limit=10 * ROUNDS))
    if seen != expected:
        raise AssertionError(f"the hooks took other ways than meant: {seen}")


def _of_the_check() -> dict[str, float]:
    scripts = {name: _script(size) for name, size in SIZES.items()}
    if checked(scripts["100kb"] + _JOB).outcome != "jobs_deny":
        raise AssertionError("a job at the end is not found")

    times: dict[str, list[float]] = {name: [] for name in scripts}
    given_up = 0
    for _ in range(CHECK_ROUNDS):
        for name, script in scripts.items():
            for _ in range(CHECKS[name]):
                taken, outcome = _checked(script)
                times[name].append(taken)
                given_up += outcome == "jobs_unparsed"
    best = {name: min(taken) for name, taken in times.items()}
    per_mb = {name: best[name] / len(script) * 1e6 for name, script in scripts.items()}
    return {
        **{f"check_{name}_ms": round(taken, 2) for name, taken in best.items()},
        **{f"check_{name}_ms_per_mb": round(taken, 1) for name, taken in per_mb.items()},
        "per_byte_1mb_to_100kb": round(per_mb["1mb"] / per_mb["100kb"], 3),
        "checks_given_up": given_up,
    }


def _checked(script: str) -> tuple[float, str]:
    """
    Give the processor's time in ms, and the outcome: a check that takes too long gives up.
    """
    begun = time.thread_time()
    outcome = checked(script).outcome
    taken = (time.thread_time() - begun) * 1000
    if outcome == "jobs_deny":
        raise AssertionError("a sound script is refused")
    return taken, outcome


def _script(size: int) -> str:
    """
    Give a script of whole parts, with room for a job at its end.
    """
    script = ""
    number = 0
    while len(script) + len(part := _BLOCK.format(n=number)) + len(_JOB) <= size:
        script += part
        number += 1
    return script + "#" * (size - len(script) - len(_JOB) - 1) + "\n"


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(run(Path(folder)), indent=1))
