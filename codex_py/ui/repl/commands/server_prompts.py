"""The prompts of MCP servers as slash commands."""

from __future__ import annotations

from collections.abc import Iterator

from codex_py.core.session_mcp import SessionMcp
from codex_py.services.mcp_servers import PromptCommand, fill_prompt, prompt_commands
from codex_py.ui.repl.panels.forms import waited_for
from codex_py.ui.repl.slash_command import CommandContext, SlashCommand


def server_prompts(servers: SessionMcp) -> Iterator[SlashCommand]:
    """A command for each prompt that is offered now."""
    return (_command(servers, prompt) for prompt in prompt_commands(servers))


def _command(servers: SessionMcp, prompt: PromptCommand) -> SlashCommand:
    async def run(context: CommandContext, words: str) -> None:
        about = f"asking the MCP server {prompt.server}…"
        filled = await waited_for(context.asker, prompt.name, fill_prompt(servers, prompt, words), about=about)
        if filled is not None:
            context.front.send_message(filled, typed=f"/{prompt.name} {words}".rstrip())

    hint = " ".join(argument.name if argument.required else f"[{argument.name}]" for argument in prompt.arguments)
    needs_words = any(argument.required for argument in prompt.arguments)
    about = prompt.description or f"a prompt of the MCP server {prompt.server}"
    return SlashCommand(prompt.name, about, run, hint, needs_words=needs_words)
