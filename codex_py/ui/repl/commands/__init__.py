"""The slash commands in the order of the help, with the prompts of MCP servers: `/mcp__SERVER__PROMPT ARGUMENTS`."""

from __future__ import annotations

from typing import Final

from codex_py.config.tui import resolve_keys
from codex_py.core.ports import McpClients
from codex_py.core.session import Session
from codex_py.protocol.status import PromptCommand
from codex_py.ui.repl.commands.look import LOOK, show_help
from codex_py.ui.repl.commands.rewind import REWIND
from codex_py.ui.repl.commands.session import LEAVE, WORK
from codex_py.ui.repl.commands.settings import SETTINGS
from codex_py.ui.repl.panels.forms import waited_for
from codex_py.ui.repl.slash_command import CommandContext, SlashCommand


async def _help(context: CommandContext, words: str) -> None:
    keys, _ = resolve_keys(context.launch.tui.keymap)
    await show_help(context.asker, commands_now(context.session), keys)


_HELP: Final = SlashCommand("help", "list commands and keys", _help)
COMMANDS: Final[tuple[SlashCommand, ...]] = tuple(
    sorted((_HELP, *LOOK, *SETTINGS, *WORK, *REWIND, *LEAVE), key=lambda command: command.name == "quit")
)


def commands_now(session: Session) -> tuple[SlashCommand, ...]:
    """All commands there are at this moment, those of servers after our own."""
    return (*COMMANDS, *(_prompt_command(session.mcp, prompt) for prompt in session.mcp.prompts()))


def _prompt_command(servers: McpClients, prompt: PromptCommand) -> SlashCommand:
    async def run(context: CommandContext, words: str) -> None:
        about = f"asking the MCP server {prompt.server}…"
        filled = await waited_for(context.asker, prompt.name, servers.fill_prompt(prompt, words), about=about)
        if filled is not None:
            context.front.send_message(filled, typed=f"/{prompt.name} {words}".rstrip())

    hint = " ".join(argument.name if argument.required else f"[{argument.name}]" for argument in prompt.arguments)
    needs_words = any(argument.required for argument in prompt.arguments)
    about = prompt.description or f"a prompt of the MCP server {prompt.server}"
    return SlashCommand(prompt.name, about, run, hint, needs_words=needs_words)
