"""
An HTTP/1.1 server on a free port of loopback that starts and stops quickly, for endpoints that are played from a script.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Self


class LoopbackServer(ThreadingHTTPServer):
    """
    Listens from its making on, and answers while its `with` block is open; `url` is its base URL.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        """
        Answer requests, each in a thread of its own.
        """
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """
        Answer no more, and hang up on all who are still connected.
        """
        self.shutdown()
        self.server_close()
        # A connection kept alive would otherwise leave its thread reading for ever.
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def server_bind(self) -> None:
        """
        Bind without asking the name service for the host's name, as HTTPServer does: that can take seconds.
        """
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """
        Remember the connection.
        """
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """
        Forget the connection.
        """
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """
        A client that hung up is no fault of the server.
        """
