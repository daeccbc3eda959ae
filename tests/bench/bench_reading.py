"""
How long it takes to read a turn, and how much memory, beside the size of the transcript.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from statistics import median

from turngate.stopgate.evidence.builder import build_turn
from turngate.stopgate.transcript import Record, read

MB = 1024 * 1024
SIZES_MB = (1, 100, 1024)
RUNS = 15

_NUMBERS = count()


def run(scratch: Path) -> dict[str, float]:
    """
    The figures, times in ms and memory in MB; the transcripts are made in *scratch* and removed.
    """
    figures = {**_generated(scratch), **_hard_cases(scratch), **_real_sessions()}
    return {name: round(value, 3) for name, value in figures.items()}


def _generated(scratch: Path) -> dict[str, float]:
    figures: dict[str, float] = {}
    paths = {size: scratch / f"generated_{size}.jsonl" for size in SIZES_MB}
    for size, path in paths.items():
        _write(path, size * MB)

    times = _interleaved_ms({size: (lambda path=path: read(str(path))) for size, path in paths.items()})
    for size, path in paths.items():
        figures[f"turn_{size}mb_ms"] = times[size]
        figures[f"turn_{size}mb_peak_mb"] = _peak_mb(path)
        path.unlink()
    figures["time_ratio_largest_to_smallest"] = times[SIZES_MB[-1]] / times[SIZES_MB[0]]
    return figures


def _interleaved_ms(work: Mapping[int, Callable[[], object]]) -> dict[int, float]:
    """
    The best time of each, taken by turns: what else the machine does hits all alike.
    """
    times: dict[int, list[float]] = {name: [] for name in work}
    for _ in range(2 * RUNS):
        for name, task in work.items():
            begun = time.perf_counter()
            task()
            times[name].append(time.perf_counter() - begun)
    return {name: min(taken) * 1000 for name, taken in times.items()}


def _hard_cases(scratch: Path) -> dict[str, float]:
    """
    The human prompt 60 MB back, a result of 20 MB at the end, and no human prompt at all.
    """
    path = scratch / "hard.jsonl"
    cases = {
        "prompt_60mb_back": _lines(1, work=60 * MB),
        "result_of_20mb_at_the_end": iter((*_lines(3), _entry("user", content=[_result("late", "x" * (20 * MB))]))),
        "no_prompt_in_200mb": (line for line in _lines(1, work=200 * MB) if b"Request" not in line),
    }
    figures: dict[str, float] = {}
    for name, lines in cases.items():
        with path.open("wb") as file:
            file.writelines(lines)
        figures[f"{name}_ms"] = _median_ms(lambda: read(str(path)), runs=3)
        record = read(str(path))
        figures[f"{name}_evidence_ms"] = _median_ms(lambda record=record: build_turn(record, reply=""), runs=3)
        figures[f"{name}_peak_mb"] = _peak_mb(path)
        path.unlink()
    return figures


def _real_sessions() -> dict[str, float]:
    """
    The shared real sessions, all of each file's bytes counted, beside a bare `json.loads` of every line.
    """
    shared = Path(os.environ.get("TURNGATE_SHARED") or Path(__file__).resolve().parents[3] / "shared")
    files = sorted(shared.glob("data/transcripts/*/*.jsonl"))
    if not files:
        return {}

    size_mb = sum(file.stat().st_size for file in files) / MB
    records = [read(str(file)) for file in files]

    def turns() -> list[Record]:
        return [read(str(file)) for file in files]

    def evidence() -> list[object]:
        return [build_turn(record, reply=record.final_reply) for record in records]

    def bare() -> list[object]:
        return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]

    return {
        "real_sessions_mb": size_mb,
        "real_turn_mb_per_s": size_mb * 1000 / _median_ms(turns),
        "real_bare_json_mb_per_s": size_mb * 1000 / _median_ms(bare, runs=3),
        "real_turn_ms_per_file": _median_ms(turns) / len(files),
        "real_evidence_ms_per_file": _median_ms(evidence, runs=5) / len(files),
    }


def _median_ms(work: Callable[[], object], *, runs: int = RUNS) -> float:
    work()
    times: list[float] = []
    for _ in range(runs):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return median(times) * 1000


def _peak_mb(path: Path) -> float:
    program = (
        "import resource, sys\n"
        "from turngate.stopgate.transcript import read\n"
        "read(sys.argv[1])\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    # On Linux a child's ru_maxrss begins at its parent's: a small process stands between.
    between = "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]], check=True)"
    command = [sys.executable, "-I", "-S", "-c", between, "-I", "-c", program, str(path)]
    kilobytes = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(kilobytes) / 1024


def _write(path: Path, size: int) -> None:
    turn = b"".join(_lines(1))
    with path.open("wb") as file:
        for number in range(max(2, size // len(turn))):
            file.write(turn.replace(b"_0_", b"_%d_" % number))


def _lines(turns: int, *, work: int = 100_000) -> Iterator[bytes]:
    """
    Turns with tool calls and results of *work* bytes together, and metadata around them as clients write it.
    """
    output = "a line of some output\n" * 80
    for turn in range(turns):
        yield _entry("user", content=f"Request {turn}", uuid=f"human_{turn}_")
        done = 0
        while done < work:
            call = f"toolu_{turn}_{done}"
            use = {
                "type": "tool_use",
                "id": call,
                "name": "Bash",
                "input": {"command": f"pytest -q tests/test_{done}.py | tail -3"},
            }
            for line in (
                _entry("assistant", content=[use], id=f"msg_{turn}_{done}"),
                _entry("user", content=[_result(call, output)]),
                json.dumps({"type": "api-request-blob", "blob": output}).encode() + b"\n",
            ):
                done += len(line)
                yield line
        yield _entry("assistant", content=[{"type": "text", "text": f"Reply {turn}."}], id=f"msg_{turn}_")
        yield json.dumps({"type": "last-prompt", "lastPrompt": "x"}).encode() + b"\n"


def _result(call: str, content: str) -> dict[str, str]:
    return {"type": "tool_result", "tool_use_id": call, "content": content}


def _entry(kind: str, *, content: object, **fields: object) -> bytes:
    message = {"role": kind, "content": content, **({"id": fields.pop("id")} if "id" in fields else {})}
    entry = {"parentUuid": None, "isSidechain": False, "type": kind, "message": message}
    return json.dumps({**entry, "uuid": f"entry_0_{next(_NUMBERS)}", **fields}, separators=(",", ":")).encode() + b"\n"


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(run(Path(folder)), indent=1))
