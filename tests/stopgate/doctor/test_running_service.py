from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingMixIn, UnixStreamServer
from threading import Thread

import pytest

from turngate.stopgate.doctor import service
from turngate.stopgate.relay import VERSION

from .patient import Patient


class Server(ThreadingMixIn, UnixStreamServer):
    """
    A server on a Unix socket.
    """

    daemon_threads = True


@contextmanager
def answering(path: Path, answer: bytes, mode: int = 0o600) -> Generator[None]:
    """
    Whoever connects gets these bytes.
    """

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(answer)

    with Server(str(path), Handler) as server:
        path.chmod(mode)
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield
        server.shutdown()
        thread.join()


def health(version: str) -> bytes:
    body = json.dumps({"status": "ok", "version": version}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


@pytest.mark.parametrize(
    ("answer", "mode", "level", "says", "fix"),
    [
        pytest.param(health(VERSION), 0o600, "ok", f"version {VERSION} answers", "", id="as it should be"),
        pytest.param(health("0.0.9"), 0o600, "warn", "version 0.0.9 is running", "turngate stop", id="another version"),
        pytest.param(health(VERSION), 0o666, "bad", "open to others: mode 666", "chmod 600", id="open to others"),
        pytest.param(b"hello\r\n\r\n", 0o600, "bad", "does not answer", "turngate stop", id="garbage"),
        pytest.param(b"", 0o600, "bad", "does not answer", "turngate stop", id="hangs up"),
        pytest.param(
            b"HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\n{}",
            0o600,
            *("bad", "is ending", "turngate stop"),
            id="ending",
        ),
    ],
)
def test_what_listens_at_the_socket_is_told(
    answer: bytes, mode: int, level: str, says: str, fix: str, patient: Patient, short_path: Path
) -> None:
    """
    The service is asked how it stands: another version, a socket that others may use and one that answers nonsense are found.
    """
    patient.environ["TURNGATE_STATE_DIR"] = str(short_path)
    with answering(short_path / "turngate.sock", answer, mode):
        found = patient.findings((service.check,))

    (it,) = [finding for finding in found if says in finding.text]
    assert (it.level, fix in it.fix) == (level, True)
