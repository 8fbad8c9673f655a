"""What stands in a history for the part of it that was compacted away: how it is requested and presented."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from codex_py.context.markup import cut_to
from codex_py.protocol.items import Message, ResponseItem, message

_MAX_SUMMARY_BYTES: Final = 128 * 1024
_MAX_FOCUS_BYTES: Final = 8 * 1024
_OPENING: Final = "<conversation_summary>"
_LEAD: Final = (
    "The conversation before this point was replaced by this summary, which the model working on it then wrote. Build"
    " on it instead of doing the work again; read files again where details matter."
)
# How the summaries of Codex CLI begin.
_FOREIGN: Final = "Another language model started to solve this problem and produced a summary"
# What programs put before the model as a user's message, by how it begins.
HOST_TEXTS: Final = (
    "# AGENTS.md instructions",
    "<environment_context>",
    "<skill>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<user_instructions>",
    "<subagent_notification>",
    "<hook_prompt>",
    "<content_filter_guidance>",
    _OPENING,
    _FOREIGN,
)


def handoff_request(prompt: str | None, focus: str) -> ResponseItem:
    """The message that asks for a summary; `prompt` is the user's own wording, `focus` what to dwell on."""
    text = prompt or Path(__file__).with_name("prompts").joinpath("compact.md").read_text("utf-8").strip()
    focus_text = cut_to(focus.strip(), _MAX_FOCUS_BYTES)
    return message("user", f"{text}\n\nThe user asks you to dwell on this: {focus_text}" if focus_text else text)


def summary_item(summary: str) -> ResponseItem:
    """The message that carries a summary on."""
    text = cut_to(summary.strip(), _MAX_SUMMARY_BYTES)
    return message("user", f"{_OPENING}\n{_LEAD}\n\n{text}\n</conversation_summary>")


def is_summary(text: str) -> bool:
    """Whether a message's text is a summary, by this program or by Codex CLI."""
    return text.startswith((_OPENING, _FOREIGN))


def is_users_own(item: ResponseItem) -> bool:
    """Whether an item is a message the user wrote, and not one of the host, such as context, a skill or a summary."""
    if item.type != "message":
        return False
    view = item.view()
    return isinstance(view, Message) and view.role == "user" and not view.text.startswith(HOST_TEXTS)
