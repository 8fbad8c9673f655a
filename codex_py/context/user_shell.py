"""What a command of the user came to, as the model reads it."""

from __future__ import annotations

from codex_py.protocol.items import ResponseItem, message


def user_shell_item(command: str, output: str, *, exit_code: int, seconds: float) -> ResponseItem:
    """The user message `<user_shell_command>`; -1 is the exit code of a command that was stopped."""
    return message(
        "user",
        f"<user_shell_command>\n<command>\n{command}\n</command>\n<result>\nExit code: {exit_code}\n"
        f"Duration: {seconds:.4f} seconds\nOutput:\n{output}\n</result>\n</user_shell_command>",
    )
