"""
`python -m tests.bench [NAME ...]`: run the benchmarks (all, or those named, for example `hook`), print and keep the figures.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "bench_"

Figures = Mapping[str, float]


def main(wanted: Sequence[str]) -> int:
    """
    Run the benchmarks, and give the exit code.
    """
    known = names()
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"no benchmark {unknown[0]!r}: there are {', '.join(known)}", file=sys.stderr)
        return 2

    began = datetime.now(UTC)
    results: dict[str, Figures] = {}
    for name in wanted or known:
        print(f"{name} ...", file=sys.stderr, flush=True)
        results[name] = figures(name)
        print(table(name, results[name]), flush=True)
    print(f"written to {kept(results, began).relative_to(ROOT)}")
    return 0


def names() -> list[str]:
    """
    Give the names of all benchmarks.
    """
    found = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return sorted(name.removeprefix(PREFIX) for name in found if name.startswith(PREFIX))


def figures(name: str) -> Figures:
    """
    Run one benchmark in a scratch folder of its own.
    """
    module = importlib.import_module(f"{__package__}.{PREFIX}{name}")
    with tempfile.TemporaryDirectory(prefix="turngate-bench-") as scratch:
        return module.run(Path(scratch))


def table(title: str, figures: Figures) -> str:
    """
    Lay out the figures of one benchmark.
    """
    width = max(map(len, figures), default=0)
    lines = [f"  {name:<{width}}  {value:>12,.3f}" for name, value in figures.items()]
    return "\n".join([title, *lines, ""])


def kept(results: Mapping[str, Figures], at: datetime) -> Path:
    """
    Write the figures to `bench-results/<time>.json`, with the machine that they are of, and give the path.
    """
    about = {
        "at": at.isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
    }
    file = ROOT / "bench-results" / f"{at:%Y-%m-%dT%H%M%SZ}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({**about, "results": results}, indent=2) + "\n")
    return file


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
