"""
Whether an address stays on this machine.
"""

from __future__ import annotations


def is_loopback(url: str) -> bool:
    """
    Say whether the host of an address is this machine by its number, or is `localhost`; other names are resolved by others.
    """
    import ipaddress
    from urllib.parse import urlsplit

    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
