"""The part of a long text that a person wants to see."""

from __future__ import annotations

from codex_py.text.sanitize import sanitize


def ends_of(output: str, max_lines: int = 24) -> list[str]:
    """The lines to show of an output: a long one by its ends, for an error is at the end and what ran at the start."""
    if not output.strip():
        return []
    text = output.replace("\r\n", "\n").rstrip("\n")
    count = text.count("\n") + 1
    if count <= max_lines:
        return sanitize(output).rstrip("\n").split("\n")
    # Of a flood only what is shown is looked at.
    half = max_lines // 2
    first, last = text.split("\n", half)[:half], text.rsplit("\n", half)[-half:]
    return [*map(sanitize, first), f"… {count - 2 * half} more lines …", *map(sanitize, last)]


def first_words(text: str, max_length: int) -> str:
    """A text on one line, cut with a `…` after so many characters."""
    line = " ".join(text[: 4 * max_length].split())
    return line if len(line) <= max_length else f"{line[: max_length - 1]}…"
