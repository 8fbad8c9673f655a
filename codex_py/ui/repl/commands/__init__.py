"""The slash commands in the order of the help, with those of the user's files, and the prompts of MCP servers:
`/mcp__SERVER__PROMPT ARGUMENTS`.
"""

from __future__ import annotations

import asyncio
from typing import Final

from codex_py.config.tui import resolve_keys
from codex_py.core.ports import McpClients
from codex_py.errors import UserError
from codex_py.protocol.status import PromptCommand
from codex_py.services.prompt_files import PromptFile, fill_prompt, read_prompt
from codex_py.ui.repl.commands.look import ANSWERS, LOOK, show_help
from codex_py.ui.repl.commands.review import REVIEW
from codex_py.ui.repl.commands.session import LEAVE, REWIND, WORK
from codex_py.ui.repl.commands.settings import SETTINGS
from codex_py.ui.repl.panels.forms import waited_for
from codex_py.ui.repl.slash_command import CommandContext, SlashCommand


async def _help(context: CommandContext, words: str) -> None:
    keys, _ = resolve_keys(context.launch.tui.keymap)
    await show_help(context.asker, commands_now(context), keys)


_HELP: Final = SlashCommand("help", "list commands and keys", _help)
COMMANDS: Final[tuple[SlashCommand, ...]] = tuple(
    sorted(
        (_HELP, *LOOK, *SETTINGS, REVIEW, *WORK, *ANSWERS, *REWIND, *LEAVE), key=lambda command: command.name == "quit"
    )
)


def commands_now(context: CommandContext) -> tuple[SlashCommand, ...]:
    """All commands there are at this moment: our own, those of the user's files, and those of MCP servers."""
    known = {name for command in COMMANDS for name in command.names}
    files = (_file_command(prompt, is_hidden=prompt.name in known) for prompt in context.prompts)
    return (
        *COMMANDS,
        *files,
        *(_prompt_command(context.session.mcp, prompt) for prompt in context.session.mcp.prompts()),
    )


def _file_command(prompt: PromptFile, *, is_hidden: bool) -> SlashCommand:
    """A command of the user's own. If a built-in command has the same name, it has only its second name."""

    async def run(context: CommandContext, words: str) -> None:
        name = prompt.also if is_hidden else prompt.name
        text = fill_prompt(await asyncio.to_thread(read_prompt, prompt), words)
        if not text.strip():
            raise UserError(f"the command `{prompt.path}` is empty")
        context.front.send_message(text, typed=f"/{name} {words}".rstrip())

    names = (prompt.also, "") if is_hidden else (prompt.name, prompt.also)
    about = prompt.description or f"a command of {prompt.path.parent}"
    return SlashCommand(names[0], about, run, prompt.hint or "[WORDS]", also=names[1])


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
