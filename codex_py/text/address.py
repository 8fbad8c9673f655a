"""What an address on the web looks like."""

from __future__ import annotations

import re
from typing import Final

_ADDRESS: Final = re.compile(r"https?://[^\s/]\S*", re.IGNORECASE)


def is_web_address(text: str) -> bool:
    """Whether a text is one `http://` or `https://` address, which a configuration may hold."""
    return _ADDRESS.fullmatch(text) is not None
