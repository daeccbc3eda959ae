"""
How fast sessions are harvested by one process, beside a bare `json.loads` of each of their lines.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from turngate.lab.past.harvest import harvest

from ..shared import SHARED
from ..stopgate.transcripts import Session

AT_LEAST = {"generated_share_of_bare_json": 0.5, "real_share_of_bare_json": 0.5}

MB = 1e6
SESSIONS = 12
TURNS = 8
CALLS = 14
RUNS = 5

_OUTPUT = "".join(f"tests/test_{number}.py::test_that_it_works[{number}] PASSED\n" for number in range(100))
_REPLY = (
    "I changed the parser so that an empty line ends a block, and `pytest -q tests/test_parser.py` passes (14 tests).\n"
    * 6
)


def run(scratch: Path) -> dict[str, float]:
    """
    The figures: MB/s (a megabyte is 10^6 bytes), and the share of what a bare reading of the same files reaches.
    """
    folder = scratch / "sessions"
    folder.mkdir()
    for number in range(SESSIONS):
        _session(number).write(folder, f"{number}.jsonl")
    figures = _measured("generated", sorted(folder.glob("*.jsonl")), scratch)
    if SHARED:
        figures |= _measured("real", sorted(SHARED.glob("data/transcripts/*/*.jsonl")), scratch)
    return figures


def _measured(name: str, files: Sequence[Path], scratch: Path) -> dict[str, float]:
    megabytes = sum(file.stat().st_size for file in files) / MB
    times: dict[str, list[float]] = {"harvest": [], "bare": []}
    stops = 0
    for number in range(RUNS + 1):
        out = scratch / f"{name}-{number}.jsonl"
        taken = _seconds(lambda out=out: harvest(files, out=out, jobs=1))
        bare = _seconds(lambda: _bare(files))
        stops = len(out.read_bytes().splitlines())
        if number:  # the first one also loads and compiles
            times["harvest"].append(taken)
            times["bare"].append(bare)
    harvest_s, bare_s = median(times["harvest"]), median(times["bare"])
    return {
        f"{name}_mb": round(megabytes, 1),
        f"{name}_kb_per_turn": round(megabytes * 1000 / stops, 1),
        f"{name}_harvest_mb_per_s": round(megabytes / harvest_s, 1),
        f"{name}_bare_json_mb_per_s": round(megabytes / bare_s, 1),
        f"{name}_share_of_bare_json": round(bare_s / harvest_s, 3),
    }


def _bare(files: Sequence[Path]) -> None:
    for file in files:
        with file.open("rb") as lines:
            for line in lines:
                json.loads(line)


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _session(number: int) -> Session:
    """
    Turns as client 2.1 writes them: each result twice, as a block and as `toolUseResult`, and half of all entries metadata.
    """
    session = Session()
    for turn in range(TURNS):
        session.prompt(
            f"Request {turn}: make the parser take empty lines.", prompt_id=f"p{turn}", sessionId=f"s{number}"
        )
        session.metadata(2, size=40_000)
        for call in range(CALLS):
            _call(session, call)
            session.metadata(2, size=3_000)
        session.says(
            _REPLY, message=f"s{number}-m{turn}", sessionId=f"s{number}", timestamp=f"2026-11-30T10:{turn:02}:00Z"
        )
        session.metadata(3)
    return session


def _call(session: Session, number: int) -> None:
    if number % 3 == 0:
        details = {"stdout": _OUTPUT, "stderr": "", "interrupted": False, "isImage": False}
        session.runs("Bash", _OUTPUT, details=details, command=f"pytest -q tests/test_{number}.py", description="Test")
    elif number % 3 == 1:
        path = f"/home/dev/demo/src/part_{number}.py"
        details = {"type": "text", "file": {"filePath": path, "content": _OUTPUT, "numLines": 100}}
        session.runs("Read", _OUTPUT, details=details, file_path=path)
    else:
        old, new = _OUTPUT[:1_500], _OUTPUT[1_500:3_000]
        details = {
            "filePath": "a.py",
            "oldString": old,
            "newString": new,
            "originalFile": _OUTPUT,
            "structuredPatch": [],
        }
        session.runs(
            "Edit", "The file a.py has been updated.", details=details, file_path="a.py", old_string=old, new_string=new
        )


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(run(Path(folder)), indent=1))
