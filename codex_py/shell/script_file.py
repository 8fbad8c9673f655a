"""Script files that a command line names, read to be judged with it."""

from __future__ import annotations

import re
from typing import Final

from codex_py.text.files import FileRefused, read_trusted

_MAX_FILE_BYTES: Final = 64 * 1024
_SHELL_LINE: Final = re.compile(rb"#![^\n]*\b(?:ba|da|k|mk|z)?sh\b")


def read_script_file(path: str) -> str | None:
    """The text of a script for a POSIX shell at an absolute path; None for any other file.

    Only the first 64 KiB of a regular file are read.
    """
    try:
        head = read_trusted(path, _MAX_FILE_BYTES)
    except FileRefused:
        return None
    if head is None or b"\0" in head.raw or (head.raw.startswith(b"#!") and not _SHELL_LINE.match(head.raw)):
        return None
    return head.raw.decode("utf-8", "replace")
