"""Slash commands: what there are, and which one a line asks for."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from codex_py.ui.repl.command_context import CommandContext


_SHOWN: Final = 80
_NAME: Final = re.compile(r"[\w:-]+")


class SlashCommand(NamedTuple):
    """One command. `hint` shows what may follow it; with `needs_words` something has to.

    `while_running` says that it makes sense in the middle of a turn. `also` is what other agents call it.
    """

    name: str
    purpose: str
    run: Callable[[CommandContext, str], Awaitable[None]]
    hint: str = ""
    needs_words: bool = False
    while_running: bool = True
    also: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Every name it can be called by, its own name first."""
        return (self.name, self.also) if self.also else (self.name,)


class SlashRequest(NamedTuple):
    """A command and the words behind it."""

    command: SlashCommand
    words: str


def split_command(line: str) -> tuple[str, str]:
    """The word behind the slash that a line begins with, empty where there is none, and what comes after it."""
    if not line.startswith("/") or line[1:2].isspace():
        return "", ""
    name, *words = line[1:].split(maxsplit=1) or [""]
    return name, words[0].strip() if words else ""


def find_command(line: str, commands: Sequence[SlashCommand]) -> SlashRequest | None:
    """The command that a line is, None when it is a message."""
    name, words = split_command(line)
    found = next((command for command in commands if name and name.lower() in map(str.lower, command.names)), None)
    return SlashRequest(found, words) if found else None


def words_unwanted(request: SlashRequest) -> str:
    """What is wrong with words behind a command that takes none; empty when nothing is."""
    if not request.words or request.command.hint:
        return ""
    return f"`/{request.command.name}` takes no words: `{request.words[:_SHOWN]}`"


def looks_like_command(line: str) -> bool:
    """Whether a line is meant as a command, known or not: `/word`, and no path."""
    name, _ = split_command(line)
    return _NAME.fullmatch(name) is not None and not os.path.lexists(f"/{name}")
