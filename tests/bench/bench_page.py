"""
What the first page takes from a real service on a ledger of a million calls, beside a plain sum over all of them.

Cold: no day is kept yet, and the service has shown no page. Warm: the days are kept, which the service does by itself, the latest first.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

from turngate.costing.database import FILE_NAME, open_database

from ..costing.million_calls import fill, plain_sum
from ..stopgate.serve_process import Person

AT_MOST = {
    "warm_ms": 1000.0,
    "cold_ratio_to_plain_sum": 4.0,
    "warm_ratio_to_plain_sum": 0.25,
    "first_of_service_ratio_to_plain_sum": 1.0,
}

RUNS = 5
ALL = "/?span=all"


def run(scratch: Path) -> dict[str, float]:
    """
    The figures, in milliseconds: each is one request, from its first byte to the last of the answer.
    """
    person = Person(scratch / "home", TURNGATE_SERVICE_HTTP_PORT=str(_free_port()), TZ="Europe/Berlin")
    file = person.state / FILE_NAME
    with open_database(person.state):
        pass
    built_ms = _ms(lambda: fill(file, datetime.now(UTC)))
    plain_ms = _ms(lambda: plain_sum(file))
    with person.serving():
        page = _pages(person)
        cold_ms = page("/")
        all_cold_ms = page(ALL)
        warm_ms = median(page("/") for _ in range(RUNS))
        all_ms = median(page(ALL) for _ in range(RUNS))
        live_ms = median(page("/live.json") for _ in range(RUNS))
        project_ms = median(page("/?project=/home/me/project7") for _ in range(RUNS))
        turn_ms = median(page("/turns/d999999") for _ in range(RUNS))
    with person.serving():
        first_ms = _pages(person)("/")
    return {
        "built_s": built_ms / 1000,
        "cold_ms": cold_ms,
        "warm_ms": warm_ms,
        "first_of_service_ms": first_ms,
        "live_ms": live_ms,
        "one_project_ms": project_ms,
        "turn_ms": turn_ms,
        "all_time_cold_ms": all_cold_ms,
        "all_time_ms": all_ms,
        "plain_sum_ms": plain_ms,
        "cold_ratio_to_plain_sum": cold_ms / plain_ms,
        "warm_ratio_to_plain_sum": warm_ms / plain_ms,
        "first_of_service_ratio_to_plain_sum": first_ms / plain_ms,
    }


def _pages(person: Person) -> Callable[[str], float]:
    port = int(person.environ["TURNGATE_SERVICE_HTTP_PORT"])
    token = (person.state / "turngate.token").read_text().strip()

    def page(address: str) -> float:
        def ask() -> None:
            connection = HTTPConnection("127.0.0.1", port, timeout=120)
            connection.request("GET", address, headers={"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            assert response.read()
            connection.close()

        return _ms(ask)

    return page


def _ms(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(run(Path(folder)), indent=1))
