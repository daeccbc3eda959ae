"""
Tickets and cookies: what lets a browser in, and what does not.
"""

from __future__ import annotations

import pytest

from turngate.judge.service.web_access import COOKIE_S, MOST_TICKETS, TICKET_S, WebAccess


class Clock:
    """
    A clock that a test sets.
    """

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(name="clock")
def _clock() -> Clock:
    return Clock()


@pytest.fixture(name="access")
def _access(clock: Clock) -> WebAccess:
    return WebAccess("token", clock)


def test_a_ticket_is_good_once(access: WebAccess) -> None:
    """
    The first who uses a ticket gets a cookie, and nobody after.
    """
    ticket = access.new_ticket()

    assert access.knows(access.cookie_for(ticket))
    assert access.cookie_for(ticket) == ""


@pytest.mark.parametrize("ticket", ["", "x", "token", "\ud800", "é" * 5000])
def test_no_other_word_is_a_ticket(access: WebAccess, ticket: str) -> None:
    """
    What was never given out lets nobody in.
    """
    access.new_ticket()

    assert access.cookie_for(ticket) == ""


def test_a_ticket_grows_old(access: WebAccess, clock: Clock) -> None:
    """
    An address that was not opened in five minutes is void.
    """
    young, old = access.new_ticket(), access.new_ticket()
    clock.now += TICKET_S

    assert access.cookie_for(young)

    clock.now += 1

    assert access.cookie_for(old) == ""


def test_only_the_latest_tickets_are_kept(access: WebAccess) -> None:
    """
    Asking for tickets without end takes no memory without end.
    """
    tickets = [access.new_ticket() for _ in range(MOST_TICKETS + 1)]

    assert access.cookie_for(tickets[0]) == ""
    assert access.cookie_for(tickets[1])


def test_a_cookie_outlives_the_service_and_not_its_week(access: WebAccess, clock: Clock) -> None:
    """
    A service that was replaced knows the browser still, with the same token; after a week nobody does.
    """
    cookie = access.cookie_for(access.new_ticket())

    assert WebAccess("token", clock).knows(cookie)
    assert not WebAccess("another token", clock).knows(cookie)

    clock.now += COOKIE_S + 1

    assert not access.knows(cookie)


def test_a_changed_cookie_is_none(access: WebAccess) -> None:
    """
    Nobody can give a cookie a longer life.
    """
    until, nonce, signature = access.cookie_for(access.new_ticket()).split(".")
    changed = [
        f"{int(until) + 1}.{nonce}.{signature}",
        f"{until}.{nonce[:-1]}.{signature}",
        f"{until}.{nonce}.{'0' * 64}",
        f"{until}.{nonce}",
        "",
        f"{until}.{nonce}.{signature}.",
    ]

    assert [one for one in changed if access.knows(one)] == []


def test_a_form_belongs_to_one_cookie(access: WebAccess) -> None:
    """
    What a page's form brings along is good for the browser that the page was shown to.
    """
    mine, yours = (access.cookie_for(access.new_ticket()) for _ in range(2))

    assert access.is_form_of(mine, access.form_secret(mine))
    assert not access.is_form_of(mine, access.form_secret(yours))
    assert not access.is_form_of(mine, mine)
    assert not access.is_form_of(mine, "é\ud800")


def test_cookies_need_a_secret() -> None:
    """
    An empty token, which everybody would know, signs nothing.
    """
    with pytest.raises(ValueError, match="secret"):
        WebAccess("")
