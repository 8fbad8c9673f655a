"""What the outputs of calls say of how they went, for whoever tells a stored session again."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

_EXIT: Final = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.MULTILINE)
_TIME: Final = re.compile(r"^Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds$", re.MULTILINE)
_DECLINED: Final = re.compile(
    r"(\w+ )?(declined by|refused:) |escalated permissions are not available|blocked by a PreToolUse hook"
)
_RUNNING: Final = "Process running with session ID"
_REFUSALS: Final = ("aborted", "unsupported call: ", "unsupported custom tool call: ", "failed to parse ")
# The tools whose calls run a command.
SHELL_TOOLS: Final = frozenset({"exec_command", "shell", "shell_command", "local_shell", "container.exec"})


class CommandEnding(NamedTuple):
    """What the output of a command's call says of it: how it ended, if it did, and what it `printed`."""

    status: Literal["completed", "failed", "declined", "in_progress"]
    exit_code: int | None
    seconds: float
    printed: str


def report_of(output: str | None) -> CommandEnding:
    """How the command of a call ended, as its output says; None where there is no output."""
    report, _, printed = (output or "").partition("\nOutput:\n")
    code, took = exit_code_in(report), _TIME.search(report)
    seconds = float(took[1]) if took else 0.0
    if code is None and _RUNNING in report:
        return CommandEnding("in_progress", None, seconds, printed)
    if code is None and _DECLINED.match(report):
        return CommandEnding("declined", None, seconds, report)
    return CommandEnding("completed" if code == 0 else "failed", code, seconds, report if code is None else printed)


def exit_code_in(report: str) -> int | None:
    """The exit code that a report of a command or a patch names."""
    code = _EXIT.search(report)
    return int(code[1]) if code else None


def patch_succeeded(output: str) -> bool:
    """Whether a patch was written, as the output of its call says."""
    code = exit_code_in(output.partition("\nOutput:\n")[0])
    return output.startswith("Success") if code is None else code == 0


def patch_report(output: str | None) -> str:
    """What the output of a patch's call says beside how it ended; nothing when the call was stopped."""
    report, mark, printed = (output or "").partition("\nOutput:\n")
    return printed if mark else "" if report == "aborted" else report


def patch_was_declined(output: str) -> bool:
    """Whether it was the user who did not want a patch."""
    return output.startswith("patch rejected: declined by the user")


def was_answered(output: str | None) -> bool:
    """Whether a call was carried out, as far as its output alone tells."""
    return output is None or not output.startswith(_REFUSALS)
