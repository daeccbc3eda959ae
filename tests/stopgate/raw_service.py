"""
A service on a Unix socket that answers with whatever bytes a test wants, and remembers what it was sent.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import unquote_to_bytes

from turngate.stopgate.relay import VERSION


class Sent(NamedTuple):
    """
    One request as it came over the socket.
    """

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def environ(self) -> dict[bytes, bytes | None]:
        """
        The variables in its header; None for one that is not set.
        """
        pairs = [pair.partition("=") for pair in self.headers["turngate-environ"].split("&")]
        return {unquote_to_bytes(name): unquote_to_bytes(value) if is_set else None for name, is_set, value in pairs}


Play = Callable[[socket.socket], None]
"""What the service does with a connection; it is closed afterwards."""


class RawService:
    """
    Listens from its making on; of each connection it plays one of the given parts, the last one again and again.
    """

    def __init__(self, folder: Path, *parts: Play | bytes, queue: int = 128) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self.path = folder / "turngate.sock"
        self.sent: list[Sent] = []
        self.connections = 0
        self._parts = list(parts)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(self.path))
        self._socket.listen(queue)
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        if self._parts:
            threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        for connection in self._open:
            connection.close()

    def end(self) -> None:
        """
        Take no more connections.
        """
        self.path.unlink(missing_ok=True)
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def read(self, connection: socket.socket) -> Sent:
        """
        Read one request to its end.
        """
        raw = b""
        while b"\r\n\r\n" not in raw:
            raw += connection.recv(65_536)
        head, _, body = raw.partition(b"\r\n\r\n")
        line, *lines = head.decode("ascii").split("\r\n")
        headers = dict(one.split(": ", 1) for one in lines)
        while len(body) < int(headers.get("content-length", "0")):
            body += connection.recv(65_536)
        self.sent.append(Sent(line, headers, body))
        return self.sent[-1]

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._open.append(connection)
            part = self._parts[min(self.connections, len(self._parts) - 1)]
            self.connections += 1
            threading.Thread(target=self._play, args=(connection, part), daemon=True).start()

    def _play(self, connection: socket.socket, part: Play | bytes) -> None:
        with suppress(OSError), connection:
            if isinstance(part, bytes):
                self.read(connection)
                connection.sendall(part)
            else:
                part(connection)


def response(status: int = 200, body: bytes = b"", /, **headers: str) -> bytes:
    """
    A response of the service; `_` in a header's name stands for `-`, and an empty value leaves the header out.
    """
    all_headers = {"turngate_version": VERSION, "content_length": str(len(body)), "connection": "close"} | headers
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in all_headers.items() if value]
    return f"HTTP/1.1 {status} Said\r\n{''.join(lines)}\r\n".encode() + body
