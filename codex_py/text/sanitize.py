r"""The one door for all text that reaches a terminal: what could steer it, or hide in it, is made visible.

Control characters become control pictures (ESC is `␛`), so an escape sequence is plain letters behind a `␛`; format,
bidi, zero-width and other invisible characters become `\u{…}`. Nothing is dropped, so nothing can be smuggled.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

# C1, Cf, Zl, Zp, Cs, and what else Unicode calls default-ignorable: the start of each range, then of the gap after it.
_HIDDEN: Final = (
    *(0x80, 0xA0, 0xAD, 0xAE, 0x34F, 0x350, 0x600, 0x606, 0x61C, 0x61D, 0x6DD, 0x6DE, 0x70F, 0x710),
    *(0x890, 0x892, 0x8E2, 0x8E3, 0x115F, 0x1161, 0x17B4, 0x17B6, 0x180B, 0x1810, 0x200B, 0x2010),
    *(0x2028, 0x202F, 0x2060, 0x2070, 0x3164, 0x3165, 0xD800, 0xE000, 0xFE00, 0xFE10, 0xFEFF, 0xFF00),
    *(0xFFA0, 0xFFA1, 0xFFF0, 0xFFFC, 0x110BD, 0x110BE, 0x110CD, 0x110CE, 0x13430, 0x13440),
    *(0x1BCA0, 0x1BCA4, 0x1D173, 0x1D17B, 0xE0000, 0xE1000),
)
_CONTEXTUAL: Final = "[\u200c\u200d\ufe00-\ufe02\ufe0e\ufe0f\U000e0020-\U000e007f\U000e0100-\U000e01ef]"

# What looks like a space to a reader and is a letter to a shell.
_BLANKS: Final = "[\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]"
_PICTURE: Final = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
# Arabic and the Indic scripts, in which a joiner changes the shape of the letters next to it.
_JOINING: Final = (
    "[\u0620-\u065f\u066e-\u06d3\u06fa-\u06ff\u0750-\u077f\u0900-\u0dff\u0f40-\u0fbc\u1000-\u109f\u1780-\u17b3]"
)
_IDEOGRAPH: Final = "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]"
_FLAG_TAGS: Final = (
    "\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074"
    "|\U000e0077\U000e006c\U000e0073)\U000e007f"
)

# An invisible character stays only where a reader sees its effect: a joiner between two pictures or two letters that
# join, one selector behind a picture, a keycap or an ideograph, and the three flags spelled in tags. Anywhere else,
# as in a file name or a command, it would make two texts that differ look the same. The character itself comes
# first in each branch so that the search skips to it.
_ESCAPES: Final = (
    f"(\u200d(?:(?<={_PICTURE}\u200d)|(?<={_PICTURE}\ufe0f\u200d))(?={_PICTURE})"
    f"|[\u200c\u200d](?<={_JOINING}.)(?={_JOINING})"
    f"|[\ufe0e\ufe0f](?<={_PICTURE}.)"
    "|\ufe0f(?<=[0-9#*].)(?=\u20e3)"
    f"|[\ufe00-\ufe02\U000e0100-\U000e01ef](?<={_IDEOGRAPH}.)"
    f"|{_FLAG_TAGS}(?<=\U0001f3f4.{{6}}))"
)
_STYLES: Final = r"\x1b\[[0-9;:]*m"


def sanitize(text: str, *, keep_newlines: bool = True) -> str:
    """`text` with everything a terminal would obey or not show made visible; tabs stay, `\\r\\n` becomes `\\n`."""
    if text.isascii() and (text.replace("\n", "") if keep_newlines else text).isprintable():
        return text
    if keep_newlines:
        text = text.replace("\r\n", "\n")
    shown = {c: form for c in set(text) if (form := _visible(c)) and not (keep_newlines and c == "\n")}
    if not shown:
        return text
    table = str.maketrans(shown)
    if not re.search(_CONTEXTUAL, "".join(shown)):
        return text.translate(table)
    pieces = re.split(_ESCAPES, text)
    pieces[::2] = [piece.translate(table) for piece in pieces[::2]]
    return "".join(pieces)


def without_styles(text: str) -> str:
    """A text of our own without the escape sequences of weight and colour."""
    return re.sub(_STYLES, "", text)


def sanitize_command(text: str) -> str:
    """`sanitize` for what somebody is to judge before it runs: other blanks than the common ones are marked as well."""
    # Also the one before a line end, where it is part of the command.
    return re.sub(_BLANKS, lambda blank: f"\\u{{{ord(blank[0]):x}}}", sanitize(text.replace("\r", "␍")))


def sanitize_line(text: str) -> str:
    """`text` for a place of one line: line ends are made visible too."""
    return sanitize(text, keep_newlines=False)


def sanitize_json(raw: bytes) -> bytes:
    """The same JSON with C1 control characters, which a terminal obeys, as escapes; others cannot stand in JSON."""
    if raw.isascii():
        return raw
    return re.sub(rb"\xc2([\x80-\x9f])", lambda found: b"\\u%04x" % found[1][0], raw)


def _visible(char: str) -> str:
    """The form an unsafe character is shown in; "" for one that is safe."""
    code = ord(char)
    if code < 0x20:
        return "" if char == "\t" else chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return f"\\u{{{code:x}}}" if bisect_right(_HIDDEN, code) % 2 else ""
