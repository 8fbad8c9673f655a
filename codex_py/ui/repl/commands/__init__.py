"""The slash commands in the order of the help, with the prompts of MCP servers: `/mcp__SERVER__PROMPT ARGUMENTS`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from codex_py.ui.repl.commands.look import LOOK
from codex_py.ui.repl.commands.session import LEAVE, WORK
from codex_py.ui.repl.commands.settings import SETTINGS
from codex_py.ui.repl.panels.forms import waited_for
from codex_py.ui.repl.slash_command import SlashCommand

if TYPE_CHECKING:
    from codex_py.core.session_mcp import SessionMcp
    from codex_py.services.mcp_servers import PromptCommand
    from codex_py.ui.repl.slash_command import CommandContext


COMMANDS: Final[tuple[SlashCommand, ...]] = tuple(
    sorted((*LOOK, *SETTINGS, *WORK, *LEAVE), key=lambda command: command.name == "quit")
)


def commands_now(servers: SessionMcp | None) -> tuple[SlashCommand, ...]:
    """All commands there are at this moment, those of servers after our own."""
    if servers is None:
        return COMMANDS
    from codex_py.services.mcp_servers import prompt_commands  # the seam: only with a server

    return (*COMMANDS, *(_command(servers, prompt) for prompt in prompt_commands(servers)))


def _command(servers: SessionMcp, prompt: PromptCommand) -> SlashCommand:
    async def run(context: CommandContext, words: str) -> None:
        from codex_py.services.mcp_servers import fill_prompt

        about = f"asking the MCP server {prompt.server}…"
        filled = await waited_for(context.asker, prompt.name, fill_prompt(servers, prompt, words), about=about)
        if filled is not None:
            context.front.send_message(filled, typed=f"/{prompt.name} {words}".rstrip())

    hint = " ".join(argument.name if argument.required else f"[{argument.name}]" for argument in prompt.arguments)
    needs_words = any(argument.required for argument in prompt.arguments)
    about = prompt.description or f"a prompt of the MCP server {prompt.server}"
    return SlashCommand(prompt.name, about, run, hint, needs_words=needs_words)
