"""`codex-py apply-patch`: applies a patch as the user's own command, without a sandbox."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from codex_py.errors import ToolError, UsageError
from codex_py.services.working_tree import apply_patch_by_hand
from codex_py.text.sanitize import sanitize

# One byte more than the limit for a patch, so that a longer one is noticed.
_MAX_BYTES: Final = 8 * 1024 * 1024 + 1

_SEE: Final = "see `codex-py apply-patch --help`"
_HELP: Final = """usage: codex-py apply-patch PATCH
       codex-py apply-patch < PATCH_FILE

Applies a patch in the format models write (`*** Begin Patch` ... `*** End Patch`). Its paths start
at the current directory and may lead out of it. All of it is applied, or nothing is.

exit status: 0 applied, 1 not applied, 2 wrong command line
"""


def run(arguments: Sequence[str]) -> int:
    """Apply the patch that is the one argument, or on stdin without one or for `-`; give back the exit status."""
    if list(arguments) in (["-h"], ["--help"]):
        print(_HELP, end="")
        return 0
    if list(arguments) == ["-"] or list(arguments[:1]) == ["--"]:
        arguments = arguments[1:]
    elif arguments and arguments[0].startswith("-"):
        # A patch never begins like an option.
        raise UsageError(f"unknown option `{arguments[0]}`", hint=_SEE)
    if len(arguments) > 1:
        raise UsageError(f"one patch at a time, got {len(arguments)} arguments", hint=_SEE)
    if not arguments and sys.stdin.isatty():
        raise UsageError("no patch given", hint=_SEE)
    raw = arguments[0].encode("utf-8", "surrogateescape") if arguments else sys.stdin.buffer.read(_MAX_BYTES)
    if not arguments and not raw.strip():
        raise UsageError("no patch on stdin", hint=_SEE)
    try:
        summary = apply_patch_by_hand(raw, Path.cwd())
    except ToolError as error:
        # It quotes the patch and the files.
        print(sanitize(str(error)), file=sys.stderr)
        return 1
    sys.stdout.write(sanitize(summary) if sys.stdout.isatty() else summary)
    return 0
