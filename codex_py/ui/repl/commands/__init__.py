"""The slash commands in the order of the help, with the prompts of MCP servers: `/mcp__SERVER__PROMPT ARGUMENTS`."""

from __future__ import annotations

from typing import Final

from codex_py.config.tui import resolve_keys
from codex_py.core.session import Session
from codex_py.ui.repl.commands.look import LOOK, show_help
from codex_py.ui.repl.commands.session import LEAVE, WORK
from codex_py.ui.repl.commands.settings import SETTINGS
from codex_py.ui.repl.slash_command import CommandContext, SlashCommand


async def _help(context: CommandContext, words: str) -> None:
    keys, _ = resolve_keys(context.launch.tui.keymap)
    await show_help(context.asker, commands_now(context.session), keys)


_HELP: Final = SlashCommand("help", "list commands and keys", _help)
COMMANDS: Final[tuple[SlashCommand, ...]] = tuple(
    sorted((_HELP, *LOOK, *SETTINGS, *WORK, *LEAVE), key=lambda command: command.name == "quit")
)


def commands_now(session: Session) -> tuple[SlashCommand, ...]:
    """All commands there are at this moment, those of servers after our own."""
    if session.mcp is None:
        return COMMANDS
    from codex_py.ui.repl.commands.server_prompts import server_prompts  # the seam: only with a server

    return (*COMMANDS, *server_prompts(session.mcp))
