"""
Debian's real Prometheus, for tests that have one.

Set TURNGATE_TEST_PROMETHEUS to the folder of prometheus and promtool; `tests/costing/install-prometheus` prints one.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import urlopen

import pytest

T = TypeVar("T")

_FOLDER = os.environ.get("TURNGATE_TEST_PROMETHEUS", "")
needs_prometheus = pytest.mark.skipif(not _FOLDER, reason="needs prometheus and promtool (TURNGATE_TEST_PROMETHEUS)")


def promtool(*arguments: str | Path, stdin: bytes = b"") -> tuple[int, str]:
    """
    The exit code, and all that it said.
    """
    command = [Path(_FOLDER, "promtool"), *arguments]
    done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode()


class Prometheus(NamedTuple):
    """
    A running server.
    """

    url: str

    def get(self, path: str) -> Any:
        """
        Ask its API; None while it does not answer.
        """
        try:
            with urlopen(self.url + path, timeout=10) as answer:
                return json.load(answer)["data"]
        except HTTPError as error:
            raise AssertionError(f"{path}: {error.read().decode()}") from error
        except URLError:
            return None

    def series(self, query: str) -> list[dict[str, Any]]:
        """
        The series that a query finds now.
        """
        data = self.get(f"/api/v1/query?query={quote(query)}")
        return data["result"] if data else []

    def value(self, query: str) -> str | None:
        """
        The value of the only series that the query finds.
        """
        found = self.series(query)
        return found[0]["value"][1] if len(found) == 1 else None

    def rules(self) -> list[dict[str, Any]]:
        """
        All rules, once each was evaluated.
        """

        def evaluated() -> list[dict[str, Any]] | None:
            groups = (self.get("/api/v1/rules") or {"groups": []})["groups"]
            rules = [rule for group in groups for rule in group["rules"]]
            return rules if rules and all(rule["health"] != "unknown" for rule in rules) else None

        return eventually(evaluated)


@contextmanager
def a_prometheus(folder: Path, config: str) -> Generator[Prometheus]:
    """
    Run a server with this configuration; all that it writes lies in the folder.
    """
    (folder / "config.yml").write_text(config)
    address = f"127.0.0.1:{free_port()}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                Path(_FOLDER, "prometheus"),
                f"--config.file={folder / 'config.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        yield Prometheus(f"http://{address}")
    finally:
        process.kill()
        process.wait()


def eventually(ask: Callable[[], T | None]) -> T:
    """
    The first answer that is not None; a server that has none within half a minute is at fault.
    """
    for _ in range(300):
        answer = ask()
        if answer is not None:
            return answer
        time.sleep(0.1)
    raise AssertionError("no answer within 30 s")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
