"""A command line as one string of shell words, in the form the event stream publishes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# Runs that one kind of quoting can hold. `^` is kept to the start of a single-quoted run and a backslash out of all of
# them but double quotes: shells disagree about both.
_PLAIN: Final = re.compile(r"[+\-./:@\]_0-9A-Za-z]+\Z")
_SINGLE: Final = re.compile(r"\^?[^'^\\]*")
_DOUBLE: Final = re.compile(r"[^`$!^]*")


def join_words(words: Iterable[str]) -> str:
    """Quote each word where it needs it; a POSIX shell reads the result back as the same words."""
    return " ".join(quote_word(word) for word in words)


def quote_word(word: str) -> str:
    """One word: bare when it is plain, else as few quoted runs as can hold it, single quotes preferred."""
    if not word:
        return "''"
    if _PLAIN.match(word):
        return word
    runs: list[str] = []
    position = 0
    while position < len(word):
        run, position = _next_run(word, position)
        runs.append(run)
    return "".join(runs)


def _next_run(word: str, start: int) -> tuple[str, int]:
    single = _SINGLE.match(word, start)
    double = _DOUBLE.match(word, start)
    assert single is not None and double is not None  # both match the empty string
    if single.end() >= double.end() and single.end() > start:
        return f"'{single.group()}'", single.end()
    escaped = double.group().replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"', double.end()
