"""Small pieces of answers: shortened lines, fenced output, counted nouns."""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST_LINE = 200


def clip(text: str, limit: int = _LONGEST_LINE) -> str:
    """One line, at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def excerpt(text: str, *, head: int = 40, tail: int = 20) -> str:
    """The first and last lines of an output in a fence that its text cannot close; '' for no output."""
    lines = [line if len(line) <= 400 else line[:399] + "…" for line in text.strip("\n").split("\n")]
    if lines == [""]:
        return ""
    if len(lines) > head + tail + 1:
        left_out = len(lines) - head - tail
        lines = [*lines[:head], f"… {left_out} lines left out …", *lines[-tail:]]
    body = "\n".join(line.rstrip("\r") for line in lines)
    fence = "```"
    while fence in body:
        fence += "`"
    return f"{fence}\n{body}\n{fence}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def listed(things: Sequence[str], most: int) -> str:
    """`a, b and 3 more`."""
    more = f" and {len(things) - most} more" if len(things) > most else ""
    return f"{', '.join(things[:most])}{more}"


def ticked(text: str) -> str:
    """A text in backticks, which it may contain itself."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"
