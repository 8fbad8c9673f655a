"""Addresses and command lines as they can be shown to anybody: without the secrets people write into them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MASK: Final = "*****"
_USERINFO: Final = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY: Final = re.compile(r"(?<==)[^&#]+")
_SECRET_FLAG: Final = re.compile(r"(?i)--?[\w-]*(key|secret|token|password|auth)[\w-]*")


def masked_url(url: str) -> str:
    """An address without the password and the parameters it may carry."""
    plain = _USERINFO.sub(f"{MASK}@", url)
    head, mark, query = plain.partition("?")
    return head + mark + _QUERY.sub(MASK, query)


def masked_words(words: Sequence[str]) -> list[str]:
    """A command line without the values of flags that are named like secrets."""
    shown: list[str] = []
    after_secret = False
    for word in words:
        flag, equals, _ = word.partition("=")
        is_secret = _SECRET_FLAG.fullmatch(flag) is not None
        shown.append(
            MASK if after_secret and not word.startswith("-") else f"{flag}={MASK}" if is_secret and equals else word
        )
        after_secret = is_secret and not equals
    return shown
