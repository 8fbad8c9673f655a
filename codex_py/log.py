"""The log file: where bugs leave their traceback, so that a screen never shows one."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

from codex_py import __version__
from codex_py.errors import UserError
from codex_py.paths import codex_home, make_private_dir, open_private


def report_early_crash(env: Mapping[str, str], error: BaseException) -> str:
    """The same as `report_crash` where no settings are known: the log is in `CODEX_HOME`."""
    try:
        return report_crash(codex_home(env) / "log", error)
    except UserError:
        return report_crash(None, error)


def report_crash(directory: Path | None, error: BaseException) -> str:
    """Write the traceback to the log in this directory; gives back the line for the user."""
    report = None if directory is None else write_crash_report(directory, error)
    where = f"details in `{report}`" if report else "and no log could be written"
    return f"this is a bug in codex-py: {type(error).__name__}; {where}"


def write_crash_report(directory: Path, error: BaseException) -> Path | None:
    """Append the traceback to `codex-py.log` (0600) in a directory for logs; None when even that cannot be written."""
    path = directory / "codex-py.log"
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    lines = "".join(traceback.format_exception(error))
    try:
        make_private_dir(path.parent)
        descriptor = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace") as out:
            out.write(f"{stamp} codex-py {__version__}\n{lines}\n")
    except OSError:
        return None
    return path
