"""`codex-py apply-patch`: applies a patch as the user's own command, without a sandbox."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final, TextIO

from codex_py.errors import ToolError
from codex_py.services.working_tree import apply_patch_by_hand
from codex_py.text.sanitize import sanitize

# One byte more than the limit for a patch, so that a longer one is noticed.
_MAX_BYTES: Final = 8 * 1024 * 1024 + 1

_SEE: Final = "; see `codex-py apply-patch --help`\n"
_HELP: Final = """usage: codex-py apply-patch PATCH
       codex-py apply-patch < PATCH_FILE

Applies a patch in the format models write (`*** Begin Patch` ... `*** End Patch`). Its paths start
at the current directory and may lead out of it. All of it is applied, or nothing is.

exit status: 0 applied, 1 not applied, 2 wrong command line
"""


def run(arguments: list[str]) -> int:
    """The subcommand with the process's own streams and directory; gives back the exit status."""
    return run_apply_patch(arguments, sys.stdin.buffer, sys.stdout, sys.stderr, Path.cwd())


def run_apply_patch(arguments: Sequence[str], stdin: BinaryIO, stdout: TextIO, stderr: TextIO, cwd: Path) -> int:
    """Apply the patch given as the one argument, or on stdin without one or for `-`; relative paths start at `cwd`.

    The summary goes to stdout, an error to stderr. Gives back the exit status: 0 applied, 1 not, 2 wrong usage.
    """
    if list(arguments) in (["-h"], ["--help"]):
        stdout.write(_HELP)
        return 0
    if list(arguments) == ["-"] or list(arguments[:1]) == ["--"]:
        arguments = arguments[1:]
    elif arguments and arguments[0].startswith("-"):
        # A patch never begins like an option.
        return _fail(stderr, f"error: unknown option `{arguments[0]}`{_SEE}", 2)
    if len(arguments) > 1:
        return _fail(stderr, f"error: one patch at a time, got {len(arguments)} arguments{_SEE}", 2)
    if not arguments and stdin.isatty():
        return _fail(stderr, f"error: no patch given{_SEE}", 2)
    try:
        raw = arguments[0].encode("utf-8", "surrogateescape") if arguments else stdin.read(_MAX_BYTES)
        if not arguments and not raw.strip():
            return _fail(stderr, f"error: no patch on stdin{_SEE}", 2)
        summary = apply_patch_by_hand(raw, cwd)
    except ToolError as error:
        return _fail(stderr, f"{error}\n", 1)
    stdout.write(sanitize(summary) if stdout.isatty() else summary)
    return 0


def _fail(stderr: TextIO, message: str, status: int) -> int:
    # The message quotes the patch and the files.
    stderr.write(sanitize(message))
    return status
