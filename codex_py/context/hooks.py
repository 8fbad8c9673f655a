"""What hooks have to say to the model."""

from __future__ import annotations

from codex_py.protocol.items import ResponseItem, message


def hook_context(text: str) -> ResponseItem:
    """What a hook adds to the context."""
    return message("developer", f"<hook_context>\n{text}\n</hook_context>")


def hook_prompt(reason: str) -> ResponseItem:
    """Why a hook does not let the model stop: it is to go on with this."""
    return message("user", f"<hook_prompt>\n{reason}\n</hook_prompt>")


def with_feedback(output: str, reason: str) -> str:
    """The output of a call, with what a hook has to say about it."""
    return f"{output.rstrip()}\n\n<hook_feedback>\n{reason}\n</hook_feedback>"
