"""Known secret values are taken out of what is shown, logged or stored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Final

REDACTED: Final = "[redacted]"
_MIN_LENGTH: Final = 8
_MAX_DEPTH: Final = 40


class Redactor:
    """Replaces the secrets it was given by `[redacted]`, also where JSON text escapes them.

    Values under 8 characters are ignored: they would blot out ordinary words.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(secrets)
        spellings: set[str] = set()
        for secret in self._secrets:
            value = secret.strip()
            if len(value) >= _MIN_LENGTH:
                spellings |= {value, json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(value)[1:-1]}
        tree = _regex(sorted(spellings)) if spellings else None
        self._text = re.compile(tree) if tree else None
        self._bytes = re.compile(tree.encode("utf-8", "surrogatepass")) if tree else None

    def with_secrets(self, more: Iterable[str]) -> Redactor:
        """A redactor that knows these as well."""
        return Redactor((*self._secrets, *more))

    def redact(self, text: str) -> str:
        """`text` without the secrets; the same object when there are none in it."""
        return self._text.sub(REDACTED, text) if self._text else text

    def redact_bytes(self, raw: bytes) -> bytes:
        """`redact` for UTF-8 bytes; bytes that are no UTF-8 pass."""
        return self._bytes.sub(REDACTED.encode(), raw) if self._bytes else raw


def _regex(words: list[str], start: int = 0, depth: int = 0) -> str:
    """A pattern for the rest, from `start` on, of sorted and different words that agree before it.

    Words are told apart one character at a time, so that a place in the text costs the same however many there are.
    Branches are alternatives, never character classes: the pattern must stay right as UTF-8.
    """
    first, last = words[0], words[-1]
    end = start
    while end < len(first) and end < len(last) and first[end] == last[end]:
        end += 1
    prefix = re.escape(first[start:end])
    if end == len(last):
        return prefix
    longer = [word for word in words if len(word) > end]
    if depth < _MAX_DEPTH:
        branches = [_regex(list(group), end, depth + 1) for _, group in groupby(longer, key=itemgetter(end))]
    else:
        branches = [re.escape(word[end:]) for word in sorted(longer, key=len, reverse=True)]
    return f"{prefix}(?:{'|'.join(branches)})" + ("?" if len(first) == end else "")
