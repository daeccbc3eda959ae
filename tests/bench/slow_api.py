"""
`python -m tests.bench.slow_api SECONDS`: a Messages API on loopback that finds nothing, after so many seconds. Prints its port.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys

ANSWER = json.dumps(
    {
        "id": "msg_bench",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [{"type": "text", "text": '{"findings": []}'}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 100, "output_tokens": 10},
    }
).encode()
RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER)

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


async def serve(delay_s: float) -> None:
    """
    Answer until the process is ended.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                length = _LENGTH.search(await reader.readuntil(b"\r\n\r\n"))
                await reader.readexactly(int(length[1]) if length else 0)
                await asyncio.sleep(delay_s)
                writer.write(RESPONSE)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
