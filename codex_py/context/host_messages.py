"""Short messages that the host appends for the model: interrupts, filters, hooks, subagents, user commands."""

from __future__ import annotations

from typing import Any, Final

from codex_py.protocol.encoding import encode_json
from codex_py.protocol.items import ResponseItem, message

_TURN_ABORTED: Final = """\
<turn_aborted>
The user stopped the previous turn on purpose. Commands and patches that were running may be half done, and processes \
started in the background may still be running. Look at the present state before you continue or repeat anything.
</turn_aborted>"""


def turn_aborted() -> ResponseItem:
    """The user message `<turn_aborted>`, appended when a turn was interrupted."""
    return message("user", _TURN_ABORTED)


def subagent_notification(agent_id: str, nickname: str, status: str | dict[str, Any]) -> ResponseItem:
    """The user message `<subagent_notification>`; the status is as `wait_agent` gives it."""
    payload = encode_json({"agent_path": agent_id, "nickname": nickname, "status": status}).decode()
    # A tag in what an agent said must not end the block.
    payload = payload.replace("</", "<\\/")
    return message("user", f"<subagent_notification>\n{payload}\n</subagent_notification>")


def background_command_ended(session_id: int, command: str, *, exit_code: int | None, output: str) -> ResponseItem:
    """The developer message `<background_command_ended>`; without an exit code the user has stopped it."""
    ended = f"has ended with exit code {exit_code}" if exit_code is not None else "was stopped by the user"
    # A tag in what it printed must not end the block.
    tail = output.rstrip().replace("</", "<\\/")
    printed = f"\nThe end of what it has printed:\n{tail}" if tail else "\nIt has printed nothing."
    note = f"The command of session {session_id} {ended}: {command}{printed}"
    return message("developer", f"<background_command_ended>\n{note}\n</background_command_ended>")


_CONTENT_FILTER: Final = """\
<content_filter_guidance>
The provider's content filter stopped your last answer. Sending the same again, in other words or by other means, will \
be stopped again. Say in one or two sentences what cannot be done and what can be done instead, and go on with the \
parts of the work that are not affected.
</content_filter_guidance>"""


def content_filter_guidance() -> ResponseItem:
    """The developer message `<content_filter_guidance>`, appended before the request is made again."""
    return message("developer", _CONTENT_FILTER)


def hook_context(text: str) -> ResponseItem:
    """The message for text that a hook adds to the context."""
    return message("developer", f"<hook_context>\n{text}\n</hook_context>")


def hook_prompt(reason: str) -> ResponseItem:
    """Why a hook does not let the model stop: it is to go on with this."""
    return message("user", f"<hook_prompt>\n{reason}\n</hook_prompt>")


def with_feedback(output: str, reason: str) -> str:
    """The output of a call, with what a hook has to say about it."""
    return f"{output.rstrip()}\n\n<hook_feedback>\n{reason}\n</hook_feedback>"


def schema_misfit(problem: str) -> ResponseItem:
    """The developer message `<output_schema_error>`, appended before the answer is asked for once more."""
    note = (
        f"Your last message does not fit the required JSON schema: {problem}. Answer again with one JSON document that "
        "fits the schema, and nothing else: no prose, no code fence."
    )
    return message("developer", f"<output_schema_error>\n{note}\n</output_schema_error>")


def user_shell_item(command: str, output: str, *, exit_code: int, seconds: float) -> ResponseItem:
    """The user message `<user_shell_command>`; -1 is the exit code of a command that was stopped."""
    return message(
        "user",
        f"<user_shell_command>\n<command>\n{command}\n</command>\n<result>\nExit code: {exit_code}\n"
        f"Duration: {seconds:.4f} seconds\nOutput:\n{output}\n</result>\n</user_shell_command>",
    )
