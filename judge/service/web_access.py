"""
Who may see the web page: whoever came with a ticket, which is good once, and has had a cookie since.

The cookie is signed, not remembered, so that a service that was replaced knows it still. Browsers send a cookie to every port of
a host: its name holds the port, and a change takes a second secret that stands only in the page.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable
from typing import Final

TICKET_S: Final = 300.0
"""A ticket that nobody has used by then is void."""

COOKIE_S: Final = 7 * 86400
MOST_TICKETS: Final = 20

_COOKIE: Final = re.compile(r"([0-9]{1,12})\.([\w-]{20,40})\.([0-9a-f]{64})")


class WebAccess:
    """
    The tickets and cookies of one service, whose token is `secret`. Used in the event loop alone.
    """

    def __init__(self, secret: str, now: Callable[[], float] = time.time) -> None:
        if not secret:
            raise ValueError("cookies need a secret")
        self._key: Final = hmac.digest(secret.encode(), b"turngate web page", "sha256")
        self._now: Final = now
        self._tickets: Final[dict[str, float]] = {}
        """Until when each is good, by its hash."""

    def new_ticket(self) -> str:
        """
        Give a ticket for somebody who is known already.
        """
        ticket = secrets.token_urlsafe(24)
        self._tickets[_hash(ticket)] = self._now() + TICKET_S
        for spare in list(self._tickets)[:-MOST_TICKETS]:
            del self._tickets[spare]
        return ticket

    def cookie_for(self, ticket: str) -> str:
        """
        Take a ticket and give a cookie; empty where the ticket is unknown, used or too old.
        """
        good_until = self._tickets.pop(_hash(ticket), None)
        if good_until is None or self._now() > good_until:
            return ""
        content = f"{int(self._now()) + COOKIE_S}.{secrets.token_urlsafe(18)}"
        return f"{content}.{self._signed('cookie', content)}"

    def knows(self, cookie: str) -> bool:
        """
        Say whether a cookie is ours and still good.
        """
        found = _COOKIE.fullmatch(cookie)
        if found is None:
            return False
        expected = self._signed("cookie", f"{found[1]}.{found[2]}")
        return hmac.compare_digest(found[3], expected) and self._now() <= int(found[1])

    def form_secret(self, cookie: str) -> str:
        """
        Give what a form of the page must bring along, which no other page can know.
        """
        return self._signed("form", cookie)

    def is_form_of(self, cookie: str, given: str) -> bool:
        """
        Say whether a form came from a page that was shown to the owner of this cookie.
        """
        return hmac.compare_digest(self.form_secret(cookie).encode(), given.encode("utf-8", "replace"))

    def _signed(self, what: str, content: str) -> str:
        return hmac.new(self._key, f"{what} {content}".encode(), hashlib.sha256).hexdigest()


def _hash(ticket: str) -> str:
    # Looked up by its hash, so that no comparison tells anything of the ticket by the time it takes.
    return hashlib.sha256(ticket.encode("utf-8", "replace")).hexdigest()
