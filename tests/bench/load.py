"""
`python -m tests.bench.load`: clients of a service, in a process of their own. A `Load` comes in as JSON, and a `Took` goes out.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from turngate.stopgate.relay import VERSION, encoded_variables, new_decision_id, parse_response

from .installed import ROOT, START_WAIT_S

HEALTHZ = "healthz"
LOOK_S = 0.001


class Load(NamedTuple):
    """
    Clients that start at once, each on one connection, and ask again as soon as they are answered.
    """

    address: str
    environ: Mapping[str, str]
    events: Mapping[str, Mapping[str, object] | None]
    """What each client sends by turns, by name; None is a `GET /healthz`."""
    clients: int = 1
    rounds: int = 1
    """How often each client sends all of them."""
    sessions: int = 50
    """Over how many sessions the stops are spread."""


class Took(NamedTuple):
    """
    How long it took, from the first request to the last answer, and each request.
    """

    whole_s: float
    ms: dict[str, list[float]]


class Client:
    """
    One connection, as soon as somebody listens.
    """

    def __init__(self, address: str, environ: Mapping[str, str]) -> None:
        self._variables = encoded_variables({os.fsencode(k): os.fsencode(v) for k, v in environ.items()}, ())
        self._deadline = environ.get("TURNGATE_JUDGE_DEADLINE_S", "8").encode()
        self._socket = _connected(address)

    def stops(self, event: Mapping[str, object]) -> None:
        """
        Have a stop decided.
        """
        body = json.dumps(event).encode()
        head = (
            b"POST /v1/hook/claude-code HTTP/1.1\r\nhost: turngate\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\nturngate-version: %b\r\nturngate-decision: %b\r\n"
            b"turngate-started-ms: %d\r\nturngate-deadline-s: %b\r\nturngate-environ: %b\r\n\r\n"
        )
        started_ms = int(time.monotonic() * 1000)
        values = (len(body), VERSION.encode(), new_decision_id(), started_ms, self._deadline, self._variables)
        self._asks(head % values + body)

    def looks(self) -> None:
        """
        Ask how the service stands.
        """
        self._asks(b"GET /healthz HTTP/1.1\r\nhost: turngate\r\n\r\n")

    def _asks(self, request: bytes) -> None:
        self._socket.sendall(request)
        raw = b""
        while (response := parse_response(raw)) is None:
            part = self._socket.recv(65_536)
            if not part:
                raise ConnectionError("the service hung up")
            raw += part
        if response.status != 200:
            raise AssertionError(f"status {response.status}: {response.body!r}")


def loaded(load: Load) -> Took:
    """
    Run the load in a process of its own.
    """
    command = [sys.executable, "-m", __name__]
    ran = subprocess.run(command, input=json.dumps(load).encode(), cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return Took(*json.loads(ran.stdout))


def run(load: Load) -> Took:
    """
    Run the load in this process.
    """
    clients = [Client(load.address, load.environ) for _ in range(load.clients)]
    begun = time.perf_counter()
    with ThreadPoolExecutor(load.clients) as pool:
        taken = list(pool.map(lambda number: _played(clients[number], load, number), range(load.clients)))
    whole_s = time.perf_counter() - begun
    return Took(whole_s, {name: [ms for one in taken for ms in one[name]] for name in load.events})


def _played(client: Client, load: Load, number: int) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in load.events}
    for turn in range(load.rounds):
        session = (turn * load.clients + number) % load.sessions
        for name, event in load.events.items():
            ids = {"session_id": f"{name}-{session}", "prompt_id": f"prompt-{name}-{session}"}
            begun = time.perf_counter()
            client.looks() if event is None else client.stops({**event, **ids})
            taken[name].append((time.perf_counter() - begun) * 1000)
    return taken


def _connected(address: str) -> socket.socket:
    give_up_at = time.monotonic() + START_WAIT_S
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(address)
            return connection
        except OSError:
            connection.close()
            if time.monotonic() > give_up_at:
                raise
        time.sleep(LOOK_S)


def main() -> None:
    """
    Read a load, run it, and write how long it took.
    """
    given: list[Any] = json.load(sys.stdin)
    print(json.dumps(run(Load(*given))))


if __name__ == "__main__":
    main()
