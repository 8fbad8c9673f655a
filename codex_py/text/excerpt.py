"""The part of a long text that a person wants to see."""

from __future__ import annotations

from codex_py.text.sanitize import sanitize


def ends_of(output: str, most: int = 24) -> list[str]:
    """The lines to show of an output: a long one by its ends, for an error is at the end and what ran at the start."""
    lines = sanitize(output).rstrip("\n").split("\n") if output.strip() else []
    if len(lines) <= most:
        return lines
    half = most // 2
    return [*lines[:half], f"… {len(lines) - 2 * half} more lines …", *lines[-half:]]


def first_words(text: str, most: int) -> str:
    """A text on one line, cut with a `…` after so many characters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
