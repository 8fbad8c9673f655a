"""The slash commands, in the order in which they are listed."""

from __future__ import annotations

from typing import Final

from codex_py.ui.repl.commands.leave import LEAVE
from codex_py.ui.repl.commands.look import LOOK
from codex_py.ui.repl.commands.settings import SETTINGS
from codex_py.ui.repl.commands.work import WORK
from codex_py.ui.repl.slash import SlashCommand

COMMANDS: Final[tuple[SlashCommand, ...]] = tuple(
    sorted((*LOOK, *SETTINGS, *WORK, *LEAVE), key=lambda command: command.name == "quit")
)
