"""Words of a shell command after expansion, and what quotes and backslashes in them stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

Words: TypeAlias = tuple[str, ...]

_ESCAPE: Final = r"(?s)\\(?:x(?P<x>[0-9A-Fa-f]{1,2})|(?P<octal>[0-7]{1,3})|[uU](?P<u>[0-9A-Fa-f]{1,8})|(?P<plain>.))"
_BACKSLASH: Final = r"(?s)\\(.?)"
_BACKSLASH_IN_STRING: Final = r'\\(["$`\\\n])'
_NAMED_ESCAPES: Final[Mapping[str, str]] = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))
# What GNU's tools are called next to a system's own, without the `g`.
_GNU: Final = frozenset(
    "chgrp chmod chown cp dd env find install mv nice nohup rm sed shred stdbuf tar tee time timeout truncate unlink "
    "xargs".split()
)


class Word(NamedTuple):
    """A word of a command; `text` is None when only running the script would tell it.

    The shell may yet turn a pattern into several words: `*`, `?`, `[…]`, `{a,b}`. `printed_by` are the programs in the
    `$(…)` or `<(…)` that the word is made of. A stream is a `<(…)`: a file whose content is the `text`.
    """

    text: str | None
    is_pattern: bool = False
    printed_by: Words = ()
    is_stream: bool = False


def program_name(words: Sequence[Word]) -> str:
    """The name of the program that words start, without its directory; empty when it is not known."""
    name = (words[0].text or "").rpartition("/")[2].lower() if words else ""
    return name[1:] if name[:1] == "g" and name[1:] in _GNU else name


def texts_of(words: Sequence[Word]) -> Words:
    """The texts of words; those that are not known are empty."""
    return tuple("" if word.is_stream else word.text or "" for word in words)


def unescape(text: str) -> str:
    """A bare word without its backslashes."""
    return re.sub(_BACKSLASH, _escaped, text) if "\\" in text else text


def unescape_string(raw: bytes) -> str:
    """A literal piece of a `"…"` without its backslashes."""
    return re.sub(_BACKSLASH_IN_STRING, _escaped, raw.decode("utf-8", "replace"))


def unescape_ansi_c(text: str) -> str:
    """Unescape the text between the quotes of `$'…'`."""
    return re.sub(_ESCAPE, _character, text) if "\\" in text else text


def printed_text(words: Sequence[Word]) -> str | None:
    """The output of `echo`, `printf`, `which` or `command -v` for known words; None when it cannot be determined."""
    texts = [word.text for word in words]
    if not texts or None in texts:
        return None
    name, *rest = [text or "" for text in texts]
    match name, rest:
        case "echo", _:
            while rest and rest[0] in ("-n", "-e", "-E"):
                rest = rest[1:]
            return unescape_ansi_c(" ".join(rest))
        case "printf", [text, *more] if more or "%" not in text:
            return unescape_ansi_c(" ".join(more) if "%" in text else text)
        case ("which", [program]) | ("command", ["-v", program]) | ("type", ["-p" | "-P", program]):
            return program
        case _:
            return None


def _escaped(found: re.Match[str]) -> str:
    """What a backslash stands for with the character behind it: nothing at the end of a line."""
    return found[1].strip("\n")


def _character(escape: re.Match[str]) -> str:
    if digits := escape["x"] or escape["u"]:
        code = int(digits, 16)
        return chr(code) if code <= 0x10FFFF else ""
    if escape["octal"]:
        return chr(int(escape["octal"], 8) & 0xFF)
    return _NAMED_ESCAPES.get(escape["plain"], escape["plain"])
