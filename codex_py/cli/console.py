"""The terminal of managing commands: tables for people, JSON for programs, and asking for a yes.

What is in a table is other people's words and passes the sanitizer; JSON is plain ASCII.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from codex_py.errors import UsageError
from codex_py.text.sanitize import sanitize_line


def print_json(value: Any, out: TextIO) -> None:
    """A value as indented JSON."""
    out.write(json.dumps(value, indent=2) + "\n")


def print_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], out: TextIO) -> None:
    """The rows below their titles; nothing at all when there are none."""
    for line in aligned([head, *rows]) if rows else ():
        out.write(f"{line}\n")


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The rows with columns of one width each, the last one as it is."""
    clean = [tuple(map(sanitize_line, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*clean, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in clean]


def is_agreed(question: str, *, needs: str) -> bool:
    """Whether the user says yes to a question on the terminal; everything but a yes is a no.

    `needs` says what needs a yes, for the `UsageError` where nobody can be asked.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{needs} needs a yes, and nobody can be asked", hint="pass --yes")
    sys.stderr.write(sanitize_line(f"{question} [y/N] "))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
