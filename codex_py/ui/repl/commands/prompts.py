"""The prompts of MCP servers as slash commands: `/mcp__SERVER__PROMPT ARGUMENTS` is sent as the text it stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codex_py.ui.repl.commands import COMMANDS
from codex_py.ui.repl.slash import Command

if TYPE_CHECKING:
    from codex_py.core.mcp_prompts import PromptCommand
    from codex_py.core.session_mcp import SessionMcp
    from codex_py.ui.repl.desk import Desk


def commands_now(servers: SessionMcp | None) -> tuple[Command, ...]:
    """All commands there are at this moment, those of servers after our own."""
    if servers is None:
        return COMMANDS
    from codex_py.core.mcp_prompts import prompt_commands  # the seam: only with a server

    return (*COMMANDS, *(_command(servers, one) for one in prompt_commands(servers)))


def _command(servers: SessionMcp, prompt: PromptCommand) -> Command:
    async def run(desk: Desk, words: str) -> None:
        from codex_py.core.mcp_prompts import fill_prompt

        desk.front.say(await fill_prompt(servers, prompt, words))

    hint = " ".join(one.name if one.required else f"[{one.name}]" for one in prompt.arguments)
    needs_words = any(one.required for one in prompt.arguments)
    about = prompt.description or f"a prompt of the MCP server {prompt.server}"
    return Command(prompt.name, about, run, hint, needs_words=needs_words)
