"""Known secret values are taken out of what is shown, logged or stored."""

from __future__ import annotations

import json
import re
from binascii import b2a_base64
from collections.abc import Iterable
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Final
from urllib.parse import quote, quote_plus

REDACTED: Final = "[redacted]"
MIN_LENGTH: Final = 8
MIN_TYPED_LENGTH: Final = 4
_MAX_DEPTH: Final = 40
# Up to so many spellings, looking for each is quicker than making a pattern of all.
_FEW: Final = 200
_MIN_LINE: Final = 12
# What a short value must not stand next to. In JSON text a letter before it may be the end of an escape.
_WORD: Final = "[A-Za-z0-9_]"
_WORD_START: Final = rf"(?:(?<!{_WORD})|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{{4}}))"
_WORD_END: Final = rf"(?!{_WORD})"
# The longest thing that is looked for before a value.
_CONTEXT: Final = 6


class Redactor:
    """Replaces known secrets by `[redacted]`, also where they are escaped in JSON or encoded.

    The encodings are those a command prints with ease: Base64, hexadecimal and percent-encoding.

    `secrets` count from 8 characters on, since shorter ones would blot out ordinary words. `typed` are those the user
    typed as secrets: they count from 4 characters on, up to 7 only where they stand as a word of their own.
    """

    def __init__(self, secrets: Iterable[str] = (), typed: Iterable[str] = ()) -> None:
        self._secrets = tuple(secrets)
        self._typed = tuple(typed)
        values = {value for secret in (*self._secrets, *self._typed) if len(value := secret.strip()) >= MIN_LENGTH}
        short = {value for secret in self._typed if MIN_TYPED_LENGTH <= len(value := secret.strip()) < MIN_LENGTH}
        self._anywhere = sorted(_spellings(values) | _encodings(values))
        self._as_words = sorted(_spellings(short))

    def with_secrets(self, more: Iterable[str]) -> Redactor:
        """A redactor that knows these as well."""
        return Redactor((*self._secrets, *more), self._typed)

    def with_typed(self, more: Iterable[str]) -> Redactor:
        """A redactor that also knows these, which the user has typed."""
        return Redactor(self._secrets, (*self._typed, *more))

    def redact(self, text: str) -> str:
        """`text` without the secrets; the same object when there are none in it."""
        return self._text.sub(REDACTED, text) if self._may_be_in(text) else text

    def redact_bytes(self, raw: bytes) -> bytes:
        """`redact` for UTF-8 bytes; bytes that are no UTF-8 pass."""
        if len(self._anywhere) + len(self._as_words) <= _FEW and not any(word in raw for word in self._as_bytes):
            return raw
        return self._bytes.sub(REDACTED.encode(), raw)

    def redact_start(self, text: str, start: int, *, is_whole: bool) -> tuple[str, int]:
        """`redact` from `start` on, up to where a secret may begin that goes on behind the end; and that place.

        What stands before `start` is only looked at. Behind a text that is whole there is nothing.
        """
        if not self._anywhere and not self._as_words:
            return text[start:], len(text)
        pieces: list[str] = []
        at, unsure = start, len(text) if is_whole else self._unsure(text, start)
        while at < unsure and (found := self._text.search(text, at)) and found.start() < unsure:
            pieces += [text[at : found.start()], REDACTED]
            at = found.end()
            if unsure < at:
                unsure = self._unsure(text, at)
        return "".join([*pieces, text[at:unsure]]), unsure

    def _may_be_in(self, text: str) -> bool:
        """Whether it is worth while to search; most texts hold no secret, and most sessions never need the pattern."""
        if len(self._anywhere) + len(self._as_words) > _FEW:
            return True
        return any(word in text for word in self._anywhere) or any(word in text for word in self._as_words)

    @cached_property
    def _pattern(self) -> str:
        patterns = [_regex(self._anywhere)] if self._anywhere else []
        if self._as_words:
            patterns.append(f"{_WORD_START}(?:{_regex(self._as_words)}){_WORD_END}")
        return "|".join(patterns)

    @cached_property
    def _text(self) -> re.Pattern[str]:
        return re.compile(self._pattern)

    @cached_property
    def _bytes(self) -> re.Pattern[bytes]:
        return re.compile(self._pattern.encode("utf-8", "surrogatepass"))

    @cached_property
    def _as_bytes(self) -> list[bytes]:
        return [word.encode("utf-8", "surrogatepass") for word in (*self._anywhere, *self._as_words)]

    def _unsure(self, text: str, start: int) -> int:
        """The first place, not before `start`, from which the text to its end is the beginning of a secret.

        A short value that is all there counts too: what follows may make it a part of a word.
        """
        end = len(text)
        for spellings, whole in ((self._anywhere, 0), (self._as_words, 1)):
            for spelling in spellings:
                at = max(start, len(text) - len(spelling) + 1 - whole)
                while (at := text.find(spelling[0], at, end)) >= 0:
                    if spelling.startswith(text[at:]):
                        end = at
                        break
                    at += 1
        return end


class HeldBack:
    """Redacts a text that comes in pieces. The end of it is held back while it may be the beginning of a secret."""

    def __init__(self) -> None:
        self._before = ""
        self._held = ""

    def feed(self, piece: str, redactor: Redactor) -> str:
        """The part of the text that can be shown now and was not shown before."""
        text = f"{self._before}{self._held}{piece}"
        shown, rest = redactor.redact_start(text, len(self._before), is_whole=False)
        self._before, self._held = text[max(0, rest - _CONTEXT) : rest], text[rest:]
        return shown

    def end(self, redactor: Redactor) -> str:
        """The rest of the text, which is over; another one may follow."""
        text = f"{self._before}{self._held}"
        shown, _ = redactor.redact_start(text, len(self._before), is_whole=True)
        self._before = self._held = ""
        return shown


def _spellings(values: Iterable[str]) -> set[str]:
    """The values as they are and as JSON text has them."""
    found: set[str] = set()
    for value in values:
        found |= {value, json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(value)[1:-1]}
    return found


def _encodings(values: Iterable[str]) -> set[str]:
    """The values in Base64, hexadecimal and percent-encoding, also as a part of more that was encoded with them."""
    found: set[str] = set()
    for value in values:
        raw = value.encode("utf-8", "surrogatepass")
        for before in range(3):
            # The characters that depend on the value alone, whatever was encoded before and behind it.
            whole = _base64(bytes(before) + raw)
            found.add(whole[(0, 2, 3)[before] : (before + len(raw)) * 4 // 3])
        found |= {_base64(raw), raw.hex(), raw.hex().upper(), quote(raw, safe=""), quote_plus(raw)}
        found |= _wrapped(_base64(raw), 76) | _wrapped(_base64(raw), 64) | _wrapped(raw.hex(), 60)
    lower = {re.sub("%..", lambda escape: escape[0].lower(), word) for word in found if "%" in word}
    safe = {word.replace("+", "-").replace("/", "_") for word in found if "+" in word or "/" in word}
    return found | lower | safe


def _base64(raw: bytes) -> str:
    return b2a_base64(raw, newline=False).decode()


def _wrapped(encoded: str, width: int) -> set[str]:
    """The lines that `base64` and `xxd -p` print of a long value, without a short last one."""
    lines = [encoded[start : start + width] for start in range(0, len(encoded), width)]
    return {line for line in lines if len(line) >= _MIN_LINE} if len(lines) > 1 else set()


def _regex(words: list[str], start: int = 0, depth: int = 0) -> str:
    """A pattern for the rest, from `start` on, of sorted and different words that agree before it.

    Words are compared one character at a time, so that a place in the text costs the same however many there are.
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
