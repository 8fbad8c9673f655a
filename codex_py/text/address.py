"""Recognises web addresses and hosts."""

from __future__ import annotations

import re
import socket
from typing import Final
from urllib.parse import urlsplit, urlunsplit

_ADDRESS: Final = r"(?i)https?://[^\s/]\S*"


def is_web_address(text: str) -> bool:
    """Whether a text is one `http://` or `https://` address, which a configuration may hold."""
    return re.fullmatch(_ADDRESS, text) is not None


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only mean this machine: `localhost`, 127.0.0.0/8, `::1`.

    Other spellings of these addresses (`127.1`, `0x7f.1`, `127.0.0.1.`) are not recognized: programs disagree on them.
    """
    host = host.removeprefix("[").removesuffix("]").lower()
    name = host.removesuffix(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return socket.inet_pton(socket.AF_INET, host)[0] == 127
    except (OSError, ValueError):
        pass
    try:
        return socket.inet_pton(socket.AF_INET6, host) == bytes(15) + b"\1"
    except (OSError, ValueError):
        return False


def is_plain_http(url: str) -> bool:
    """Whether what is sent to an address can be read on its way: `http://` to another machine."""
    try:
        address = urlsplit(url)
        return address.scheme.lower() == "http" and not is_loopback(address.hostname or "")
    except ValueError:
        return url.lower().startswith("http:")


def shown_url(url: str) -> str:
    """An address for a message: without the user's name, password and query, which may be secrets."""
    scheme, netloc, path, _, _ = urlsplit(url)
    return urlunsplit((scheme, netloc.rpartition("@")[2], path, "", ""))
