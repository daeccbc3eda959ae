"""
The relay's own reading and writing of HTTP: any bytes are read as an answer, as an unfinished one, or as garbage.
"""

from __future__ import annotations

import http.client
import socket
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.judge.service.server import HEAD_LIMIT
from turngate.stopgate.relay import LONGEST_VARIABLES, Garbage, Response, encoded_variables, parse_response

from .raw_service import response

BODIES = st.binary(max_size=300)
NAMES = st.from_regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,12}", fullmatch=True).map(str.lower)
VALUES = st.from_regex(r"([!-~]([ -~]{0,20}[!-~])?)?", fullmatch=True)
TAKEN = {"content-length", "turngate-version", "connection", "transfer-encoding"}
HEADERS = st.dictionaries(NAMES, VALUES, max_size=5).map(
    lambda headers: {name: value for name, value in headers.items() if name not in TAKEN}
)
STATUSES = st.integers(200, 599).filter(lambda status: status not in (204, 304))  # those never have a body


def written(status: int, headers: dict[str, str], body: bytes) -> bytes:
    """
    A sound response with these headers beside the needed ones.
    """
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
    return response(status, body).replace(b"connection: close\r\n", more, 1)


@given(status=STATUSES, headers=HEADERS, body=BODIES)
def test_a_sound_response_is_read_as_the_standard_library_reads_it(
    status: int, headers: dict[str, str], body: bytes
) -> None:
    """
    Status, each header and the body.
    """
    raw = written(status, headers, body)
    near, far = socket.socketpair()
    with near, far, http.client.HTTPResponse(near) as expected:
        far.sendall(raw)
        expected.begin()
        read = parse_response(raw)

        assert read
        assert read.status == expected.status
        assert {name.decode(): value.decode() for name, value in read.headers.items()} == dict(expected.getheaders())
        assert read.body == expected.read()


@given(status=STATUSES, headers=HEADERS, body=BODIES, data=st.data())
def test_a_part_of_a_response_is_not_read_yet(
    status: int, headers: dict[str, str], body: bytes, data: st.DataObject
) -> None:
    """
    Wherever the stream was cut: neither an answer nor garbage.
    """
    raw = written(status, headers, body)
    cut = data.draw(st.integers(0, len(raw) - 1))

    assert parse_response(raw[:cut]) is None


@given(body=BODIES, more=st.binary(min_size=1, max_size=50))
def test_more_than_a_response_is_garbage(body: bytes, more: bytes) -> None:
    """
    Nothing may follow the one answer.
    """
    with pytest.raises(Garbage):
        parse_response(response(200, body) + more)


PIECES = st.sampled_from(
    [
        *(b"HTTP/1.1 ", b"200", b" OK", b"\r\n", b"\r\n\r\n", b"\n", b":", b" ", b"content-length", b"0", b"5", b"\0"),
        *(b"turngate-version: 0.1.0\r\n", b"content-length: 5\r\n", b"transfer-encoding: chunked\r\n", b"{}", b"hello"),
    ]
)


@given(raw=st.lists(PIECES | st.binary(max_size=5), max_size=25).map(b"".join))
def test_any_bytes_are_read_without_an_error(raw: bytes) -> None:
    """
    As a response with all of its body, as one that is to go on, or as garbage.
    """
    try:
        read = parse_response(raw)
    except Garbage:
        return

    assert read is None or (isinstance(read, Response) and int(read.headers[b"content-length"]) == len(read.body))


VARIABLES = st.dictionaries(
    st.binary(min_size=1, max_size=10).map(lambda name: b"TURNGATE_" + name.translate(None, b"\0=")),
    st.binary(max_size=50).map(lambda value: value.translate(None, b"\0")),
    max_size=5,
)


@given(environ=VARIABLES, needs=st.lists(st.sampled_from([b"MY_KEY", b"TURNGATE_X", b"HOME"]), unique=True))
def test_variables_of_any_bytes_come_back(environ: dict[bytes, bytes], needs: list[bytes]) -> None:
    """
    The header's value is plain ASCII, and decodes to the same names and values; a needed one that is not set has no `=`.
    """
    encoded = encoded_variables({**environ, b"NOT_OURS": b"x"}, needs)
    pairs = [pair.partition(b"=") for pair in encoded.split(b"&") if pair]

    assert not encoded.translate(None, b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/:~%=&")
    assert {unquote_to_bytes(name): unquote_to_bytes(value) for name, is_set, value in pairs if is_set} == environ
    assert {name for name, is_set, _ in pairs if not is_set} == set(needs) - set(environ)


def test_the_service_takes_a_head_as_long_as_the_relay_sends() -> None:
    """
    Both limits are numbers of ours, and this one is to be the larger by the rest of the head.
    """
    assert HEAD_LIMIT > LONGEST_VARIABLES + 2_000
