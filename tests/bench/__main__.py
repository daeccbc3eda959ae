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
from types import ModuleType
from typing import Literal, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "bench_"

Figures = Mapping[str, float]


class Goal(NamedTuple):
    """
    What a figure should be.
    """

    side: Literal["at most", "at least"]
    limit: float

    def told(self, value: float) -> str:
        """
        Say what the goal is, and whether it is met.
        """
        is_met = value <= self.limit if self.side == "at most" else value >= self.limit
        return f"  {self.side} {self.limit:g}: {'met' if is_met else 'NOT met'}"


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
        module = importlib.import_module(f"{__package__}.{PREFIX}{name}")
        results[name] = figures(module)
        print(table(name, results[name], goals(module)), flush=True)
    print(f"written to {kept(results, began).relative_to(ROOT)}")
    return 0


def names() -> list[str]:
    """
    Give the names of all benchmarks.
    """
    found = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return sorted(name.removeprefix(PREFIX) for name in found if name.startswith(PREFIX))


def figures(module: ModuleType) -> Figures:
    """
    Run one benchmark in a scratch folder of its own.
    """
    with tempfile.TemporaryDirectory(prefix="turngate-bench-") as scratch:
        return module.run(Path(scratch))


def goals(module: ModuleType) -> Mapping[str, Goal]:
    """
    Give the goals of a benchmark, where it has some.
    """
    at_most: Figures = getattr(module, "AT_MOST", {})
    at_least: Figures = getattr(module, "AT_LEAST", {})
    return {name: Goal("at most", most) for name, most in at_most.items()} | {
        name: Goal("at least", least) for name, least in at_least.items()
    }


def table(title: str, figures: Figures, goals: Mapping[str, Goal]) -> str:
    """
    Lay out the figures of one benchmark, each with its goal and whether it is met.
    """
    width = max(map(len, figures), default=0)
    lines = [
        f"  {name:<{width}}  {value:>12,.3f}{goals[name].told(value) if name in goals else ''}"
        for name, value in figures.items()
    ]
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
