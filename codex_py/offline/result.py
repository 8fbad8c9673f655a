"""Reading what a tool answered: exit code and text out of the layout the exec tools use."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from codex_py.offline.pattern import Pattern

_HEADER_LIMIT: Final = 800
_OUTPUT: Final = Pattern(r"^Output:(?:\n|\Z)", re.MULTILINE)
_EXIT: Final = Pattern(r"(?:Process exited with code|Exit code:)\s*(-?\d{1,10})\b")
_RUNNING: Final = Pattern(r"Process running with session ID\s+(\d{1,10})\b")
_CUT_NOTE: Final = Pattern(
    r"\AWarning: truncated output[^\n]*\n(?:Total output lines:[^\n]*\n|[^\n]*omitted[^\n]*\n)?\n?"
)
_CUT_MARK: Final = Pattern(r"…\d+ (?:tokens|chars) truncated…|^\.\.\. \d+ bytes omitted \.\.\.", re.MULTILINE)
_DENIED: Final = Pattern(
    r"read-only file system|\bEROFS\b|permission denied|operation not permitted|read-only sandbox"
    r"|no usable temporary directory",
    re.IGNORECASE,
)


class Result(NamedTuple):
    """One finished or still running call.

    `exit_code` is None when the tool refused or failed before a process ran, and while one is running; `running` is
    then the session id. `cut` says that the middle of the text is missing.
    """

    exit_code: int | None
    text: str
    running: int | None = None
    cut: bool = False

    @property
    def ok(self) -> bool:
        return self.exit_code == 0

    @property
    def denied(self) -> bool:
        """Whether the text reads as if the sandbox forbade something."""
        return _DENIED.search(self.text) is not None

    @property
    def lines(self) -> list[str]:
        """The text without blank lines at the end, line by line."""
        text = self.text.rstrip("\n")
        return text.split("\n") if text else []


def read_result(output: str) -> Result:
    """Read a tool's output; a text without the usual header is a failure to start."""
    found = _OUTPUT.search(output, 0, _HEADER_LIMIT)
    if found is None:
        exit_code = _EXIT.search(output, 0, _HEADER_LIMIT)
        return Result(int(exit_code[1]) if exit_code else None, output)
    header, text = output[: found.start()], output[found.end() :]
    exit_code, running = _EXIT.search(header), _RUNNING.search(header)
    cut = _CUT_NOTE.match(text) is not None or (len(text) > _HEADER_LIMIT and _CUT_MARK.search(text) is not None)
    return Result(
        int(exit_code[1]) if exit_code else None,
        _CUT_NOTE.sub("", text),
        int(running[1]) if running else None,
        cut,
    )


def joined(first: Result, later: Result) -> Result:
    """A command's result so far and what a later look at it brought."""
    return Result(later.exit_code, first.text + later.text, later.running, first.cut or later.cut)
