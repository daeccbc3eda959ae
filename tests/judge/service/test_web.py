"""
The web page's routes on a real port: who is let in, what may be changed, and the headers of all answers.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from turngate.costing.dashboard.assets import Asset
from turngate.judge.service.web import FORM_LIMIT, Web
from turngate.judge.service.web_access import WebAccess

from .running import PATIENCE_S, TOKEN, Answer, Running, read_all, read_answer, running


class SomePages:
    """
    Pages of a few words, over one decision `d1`.
    """

    def __init__(self) -> None:
        self.lacking = ""
        self.marked: list[dict[str, list[str]]] = []

    def missing(self) -> str:
        return self.lacking

    def overview(self, query: str) -> str:
        if query == "fault":
            raise RuntimeError("a text of a session")
        return f"overview {query}"

    def live(self, query: str) -> str:
        return "{}"

    def turn(self, decision_id: str, form_secret: str) -> str | None:
        return f"turn {form_secret}" if decision_id == "d1" else None

    def mark(self, decision_id: str, fields: Mapping[str, list[str]]) -> str | None:
        if decision_id != "d1":
            return None
        if fields.get("note") == ["impossible"]:
            return "this cannot be <said>"
        self.marked.append(dict(fields))
        return ""

    def asset(self, name: str) -> Asset | None:
        return Asset(b"body { }", "text/css; charset=utf-8", "t1") if name == "page.css" else None


class Site(NamedTuple):
    """
    A service with pages, and a browser's cookie for it.
    """

    run: Running
    pages: SomePages
    web: Web
    failed: list[BaseException]
    cookie: str

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.run.port}"

    def get(self, path: str, *headers: str, cookie: bool = True, method: str = "GET") -> Answer:
        return self._answer(f"{method} {path}", b"", *headers, *([self.cookie] if cookie else []))

    def post(self, path: str, fields: Mapping[str, str], *headers: str, origin: str | None = "") -> Answer:
        body = urlencode(fields).encode()
        kind = [] if any(one.startswith("content-type") for one in headers) else [FORM]
        origins = [] if origin is None else [f"origin: {origin or self.origin}"]
        return self._answer(f"POST {path}", body, *headers, *kind, *origins, self.cookie)

    def form_secret(self) -> str:
        return self.get("/turns/d1").body.decode().removeprefix("turn ")

    def _answer(self, target: str, body: bytes, *headers: str) -> Answer:
        length = [] if any(one.startswith("content-length") for one in headers) else [f"content-length: {len(body)}"]
        host = f"host: 127.0.0.1:{self.run.port}"
        head = "\r\n".join([f"{target} HTTP/1.1", host, *headers, *length, "connection: close", "", ""]).encode(
            "latin-1"
        )
        with socket.create_connection(("127.0.0.1", self.run.port or 0), timeout=PATIENCE_S) as connection:
            connection.sendall(head + body)
            return read_answer(read_all(connection))


FORM = "content-type: application/x-www-form-urlencoded"


@pytest.fixture(name="site", scope="module")
def _site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    pages, failed = SomePages(), list[BaseException]()
    web = Web(pages, WebAccess(TOKEN), failed.append)
    with running(tmp_path_factory.mktemp("web") / "state", port=True, web=web) as run:
        site = Site(run, pages, web, failed, "")
        entered = site.get(path_of(web.entrance(run.port or 0)), cookie=False)
        yield site._replace(cookie=f"cookie: other=1; {entered.headers['set-cookie'].partition(';')[0]}")


@pytest.fixture(autouse=True)
def _afresh(site: Site) -> None:
    site.pages.marked.clear()
    site.pages.lacking = ""
    site.failed.clear()


def path_of(address: str) -> str:
    return "/" + address.split("/", 3)[3]


def test_an_address_lets_one_browser_in(site: Site) -> None:
    """
    The first who opens it gets a cookie that no script and no other site can use; the second gets nothing.
    """
    path = path_of(site.web.entrance(site.run.port or 0))
    first, second = site.get(path, cookie=False), site.get(path, cookie=False)
    name, *attributes = first.headers["set-cookie"].split("; ")

    assert first.status == 200
    assert name.startswith(f"turngate-{site.run.port}=")
    assert set(attributes) == {"Path=/", "Max-Age=604800", "HttpOnly", "SameSite=Strict"}
    assert second.status == 403
    assert "set-cookie" not in second.headers
    assert b"used already" in second.body


@pytest.mark.parametrize("path", ["/", "/live.json", "/turns/d1", "/static/page.css", "/favicon.ico", "/turns/x/y"])
@pytest.mark.parametrize(
    "headers", [(), ("cookie: turngate-1=1.x.y",), ("cookie: x",)], ids=["no-cookie", "another", "broken"]
)
def test_without_a_cookie_every_page_is_401(site: Site, path: str, headers: tuple[str, ...]) -> None:
    """
    A stranger gets one line that says how to get in, whether or not there is such a page.
    """
    answer = site.get(path, *headers, cookie=False)

    assert answer.status == 401
    assert b"turngate dashboard" in answer.body
    assert answer.body.count(b"\n") == 1


def test_the_cookie_opens_pages_and_nothing_else(site: Site) -> None:
    """
    Judge and metrics ask for the token; a browser has no business there.
    """
    assert site.get("/?span=7d").body == b"overview span=7d"
    assert site.get("/live.json").headers["content-type"] == "application/json"
    assert site.get("/turns/d1").status == 200
    assert site.get("/metrics").status == 401
    assert site.get("/v1/judge").status == 401


def test_the_token_opens_pages_without_forms(site: Site) -> None:
    """
    Who knows the service's token may read; the page has nothing in it to change something with.
    """
    answer = site.get("/turns/d1", f"authorization: Bearer {TOKEN}", cookie=False)

    assert answer.body == b"turn "


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        pytest.param("/turns/d2", "GET", 404, id="no-decision"),
        pytest.param("/turns/", "GET", 404, id="no-id"),
        pytest.param("/turns/d1/other", "GET", 404, id="no-page"),
        pytest.param("/turns/..%2f..%2fetc", "GET", 404, id="a-path"),
        pytest.param("/static/../page.css", "GET", 404, id="no-file"),
        pytest.param("/static/", "GET", 404, id="no-file-name"),
        pytest.param("/", "POST", 405, id="overview"),
        pytest.param("/turns/d1", "PUT", 405, id="turn"),
        pytest.param("/turns/d1/mark", "GET", 405, id="mark"),
        pytest.param("/live.json", "DELETE", 405, id="live"),
        pytest.param(f"/?{'x' * 5000}", "GET", 414, id="long-address"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(site: Site, path: str, method: str, status: int) -> None:
    """
    Errors are pages of one line, with the same headers as all others.
    """
    answer = site.get(path, method=method)

    assert answer.status == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.body.count(b"\n") == 1
    assert answer.headers["cache-control"] == "no-store"
    assert site.failed == []


@pytest.mark.parametrize("path", ["/", "/turns/d1", "/live.json", "/static/page.css", "/nothing", "/turns/d2"])
def test_every_answer_forbids_what_no_page_of_ours_does(site: Site, path: str) -> None:
    """
    No inline script, no frame, no guessing of types, no address told to others; pages are kept by nobody.
    """
    answer = site.get(path, cookie=True) if path != "/nothing" else site.get("/turns/nothing")
    parts = [part.strip().partition(" ") for part in answer.headers["content-security-policy"].split(";")]
    policy = {name: sources for name, _, sources in parts}

    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert ("no-store" in answer.headers["cache-control"]) != path.startswith("/static/")


def test_a_file_is_kept_for_long_and_asked_for_by_its_tag(site: Site) -> None:
    """
    A browser that has the file is told so without the file.
    """
    first = site.get("/static/page.css")
    again = site.get("/static/page.css", f"if-none-match: {first.headers['etag']}")

    assert first.body == b"body { }"
    assert first.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert (again.status, again.body) == (304, b"")


def test_a_verdict_is_marked_by_the_page_alone(site: Site) -> None:
    """
    With cookie, origin and the form's secret the mark is kept, and the page is shown again.
    """
    answer = site.post("/turns/d1/mark", {"form": site.form_secret(), "fault": "claim", "note": "é & <b>"})

    assert answer.status == 303
    assert answer.headers["location"] == "/turns/d1"
    assert site.pages.marked == [{"fault": ["claim"], "note": ["é & <b>"]}]


@pytest.mark.parametrize(
    "origin", [None, "null", "http://127.0.0.1", "http://127.0.0.1:1", "http://localhost", "https://evil.example"]
)
def test_a_change_from_another_page_is_403(site: Site, origin: str | None) -> None:
    """
    Another port of this machine is another page; and no origin at all is no page of ours.
    """
    answer = site.post("/turns/d1/mark", {"form": site.form_secret()}, origin=origin)

    assert answer.status == 403
    assert site.pages.marked == []


def test_a_change_that_the_browser_calls_foreign_is_403(site: Site) -> None:
    """
    A browser that says where a request comes from is believed.
    """
    fields = {"form": site.form_secret()}

    assert site.post("/turns/d1/mark", fields, "sec-fetch-site: same-site").status == 403
    assert site.post("/turns/d1/mark", fields, "sec-fetch-site: same-origin").status == 303


@pytest.mark.parametrize("secret", ["", "0" * 64, "é"])
def test_a_form_without_its_secret_is_403(site: Site, secret: str) -> None:
    """
    The cookie alone changes nothing.
    """
    assert site.post("/turns/d1/mark", {"form": secret}).status == 403
    assert site.pages.marked == []


def test_the_token_alone_changes_nothing(site: Site) -> None:
    """
    Who brings the token and no cookie was never shown a form.
    """
    without = site._replace(cookie=f"authorization: Bearer {TOKEN}")

    assert without.post("/turns/d1/mark", {"form": ""}).status == 403
    assert site.pages.marked == []


@pytest.mark.parametrize(
    ("fields", "headers", "status"),
    [
        pytest.param({"note": "x" * FORM_LIMIT}, (), 413, id="too-long"),
        pytest.param({}, ("content-type: application/json",), 415, id="no-form"),
        pytest.param({}, ("content-type: multipart/form-data; boundary=x",), 415, id="multipart"),
        pytest.param({f"f{number}": "" for number in range(60)}, (), 400, id="too-many-fields"),
        pytest.param({"note": "impossible"}, (), 409, id="cannot-be-said"),
    ],
)
def test_a_form_that_cannot_be_taken_is_told_of(
    site: Site, fields: Mapping[str, str], headers: tuple[str, ...], status: int
) -> None:
    """
    Too long, no form, or not to be said of this decision: one line, and nothing is changed.
    """
    answer = site.post("/turns/d1/mark", {"form": site.form_secret(), **fields}, *headers)

    assert answer.status == status
    assert b"<said>" not in answer.body
    assert site.pages.marked == []
    assert site.failed == []


def test_a_page_that_lacks_a_library_says_which(site: Site) -> None:
    """
    Without its extra the service says in one line what to install.
    """
    site.pages.lacking = "the web page needs jinja2: pip install 'turngate[dashboard]'"
    answer = site.get("/")

    assert answer.status == 503
    assert b"needs jinja2" in answer.body


def test_a_fault_of_ours_is_told_without_its_text(site: Site) -> None:
    """
    What an error says may be a text of a session: the page names its type.
    """
    answer = site.get("/?fault")

    assert answer.status == 500
    assert b"RuntimeError" in answer.body
    assert b"session" not in answer.body
    assert [type(one) for one in site.failed] == [RuntimeError]


def test_a_head_has_no_body(site: Site) -> None:
    """
    `HEAD` is answered like `GET`, without what would follow.
    """
    with socket.create_connection(("127.0.0.1", site.run.port or 0), timeout=PATIENCE_S) as connection:
        connection.sendall(f"HEAD / HTTP/1.1\r\nhost: 127.0.0.1\r\n{site.cookie}\r\nconnection: close\r\n\r\n".encode())
        answer = read_all(connection)

    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"\r\n\r\n")


def test_an_entrance_is_asked_for_on_the_socket(tmp_path: Path) -> None:
    """
    Whoever may open the socket may let a browser in; a service without a port says that it has none.
    """
    request = b"POST /v1/entrance HTTP/1.1\r\nhost: turngate\r\nconnection: close\r\n\r\n"
    with running(tmp_path / "with", entrance=lambda: "http://127.0.0.1:1/enter") as run:
        given = read_answer(run.send(request))
    with running(tmp_path / "without") as run:
        refused = read_answer(run.send(request))

    assert (given.status, given.body) == (200, b'{"url": "http://127.0.0.1:1/enter"}\n')
    assert refused.status == 409
    assert b"service.http_port" in refused.body
