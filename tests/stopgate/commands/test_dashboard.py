"""
`turngate dashboard`: the address, and the service behind it.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from turngate.stopgate.web_entrance import START_WAIT_S

from ..serve_process import Person


@pytest.fixture(name="person")
def _person(tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path / "home")
    yield person
    person.run("stop")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def status_of(address: str) -> int:
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/enter\?ticket=[\w-]{32})\n", address)
    assert found, address
    connection = HTTPConnection("127.0.0.1", int(found[1]), timeout=START_WAIT_S)
    try:
        connection.request("GET", found[2])
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_service_is_started_where_none_runs(person: Person) -> None:
    """
    The address works, once; asking again gives another of the same service.
    """
    first, second = person.run("dashboard"), person.run("dashboard")

    assert (first.code, first.err, second.err) == (0, "", "")
    assert status_of(first.out) == 200
    assert status_of(first.out) == 403
    assert status_of(second.out) == 200
    assert first.out.partition("/enter")[0] == second.out.partition("/enter")[0]


def test_a_service_with_the_set_port_is_asked(person: Person) -> None:
    """
    Where `service.http_port` is set, the address names it.
    """
    port = str(free_port())
    with person.serving(TURNGATE_SERVICE_HTTP_PORT=port):
        said = person.run("dashboard")

    assert said.out.startswith(f"http://127.0.0.1:{port}/enter?ticket=")
    assert said.err == ""


def test_a_service_without_a_port_is_replaced(person: Person) -> None:
    """
    One that a hook started has none; the person is told of the change.
    """
    with person.serving():
        said = person.run("dashboard")
        worked = status_of(said.out)

    assert worked == 200
    assert said.err.count("\n") == 1
    assert "set service.http_port to keep it" in said.err


def test_a_port_that_is_taken_is_named(person: Person) -> None:
    """
    Why the service did not start is said in one line.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = person.run("dashboard", environ={"TURNGATE_SERVICE_HTTP_PORT": str(port)})

    assert (said.code, said.out) == (2, "")
    assert said.err.count("\n") == 1
    assert f"port {port} of 127.0.0.1 is in use" in said.err


def test_the_preferred_port_may_be_taken(person: Person) -> None:
    """
    Without a set port any free one will do.
    """
    with socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", 8764))
        except OSError:
            pass
        else:
            taken.listen()
        said = person.run("dashboard")

    assert said.code == 0
    assert status_of(said.out) == 200


def test_nobody_else_may_read_the_token(person: Person) -> None:
    """
    The service's token is the user's own, and stands in no address.
    """
    said = person.run("dashboard")
    file = person.state / "turngate.token"

    assert file.stat().st_mode & 0o077 == 0
    assert file.read_text().strip() not in said.out


def test_a_bad_setting_is_named(person: Person) -> None:
    """
    One line names the key, as everywhere.
    """
    said = person.run("dashboard", environ={"TURNGATE_SERVICE_HTTP_PORT": "many"})

    assert said.code == 2
    assert "TURNGATE_SERVICE_HTTP_PORT" in said.err
    assert said.err.count("\n") == 1
