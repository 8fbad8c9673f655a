"""Slash commands: what there are, and which one a line asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from codex_py.ui.repl.desk import Desk


class Command(NamedTuple):
    """One command. `hint` shows what may follow it; with `needs_words` something has to.

    `while_running` says that it makes sense in the middle of a turn.
    """

    name: str
    purpose: str
    run: Callable[[Desk, str], Awaitable[None]]
    hint: str = ""
    needs_words: bool = False
    while_running: bool = True


class Asked(NamedTuple):
    """A command and the words behind it."""

    command: Command
    words: str


def find_command(line: str, commands: Sequence[Command]) -> Asked | None:
    """The command that a line is, None when it is a message."""
    if not line.startswith("/"):
        return None
    name, _, words = line[1:].partition(" ")
    found = next((one for one in commands if one.name.lower() == name.strip().lower()), None)
    return Asked(found, words.strip()) if found else None


def looks_like_command(line: str) -> bool:
    """Whether a line is meant as a command, known or not: `/word`, and no path."""
    name = line.split(maxsplit=1)[0] if line.strip() else ""
    return name.startswith("/") and "/" not in name[1:] and name[1:].replace("-", "").isalnum()
