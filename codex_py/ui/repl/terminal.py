"""What the terminal can do, the control sequences sent to it, and how it is restored."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TextIO

from prompt_toolkit.input.vt100 import Vt100Input

from codex_py.text.over_ssh import is_over_ssh
from codex_py.text.sanitize import sanitize_line
from codex_py.ui.repl.key_parser import KeyParser
from codex_py.ui.repl.notify import FOCUS_REPORTS_OFF, FOCUS_REPORTS_ON

# Modes to reset before the terminal is restored: reports, bracketed paste, a hidden or odd cursor, colours.
USUAL_CURSOR: Final = "\x1b[0 q"
RESTORE: Final = f"{FOCUS_REPORTS_OFF}\x1b[?2026l\x1b[?2004l\x1b[?25h{USUAL_CURSOR}\x1b[0m"
_SAVE_TITLE: Final = "\x1b[22;2t"
_RESTORE_TITLE: Final = "\x1b[23;2t"
_MAX_TITLE: Final = 80
_ESCAPE_SECONDS: Final = 0.05
_ESCAPE_SECONDS_OVER_SSH: Final = 0.2


def terminal_input(stdin: TextIO) -> Vt100Input:
    """The keys of a terminal."""
    made = Vt100Input(stdin)
    made.vt100_parser = KeyParser(made.vt100_parser.feed_key_callback)
    return made


def escape_seconds(env: Mapping[str, str]) -> float:
    """How long an Escape waits for what would make a sequence of it, which over ssh may come in pieces."""
    return _ESCAPE_SECONDS_OVER_SSH if is_over_ssh(env) else _ESCAPE_SECONDS


def use_utf_8(*streams: TextIO) -> None:
    """Speak UTF-8 with a terminal, whatever the locale: over ssh it often is none, or one that this machine lacks."""
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="replace")


def is_capable(env: Mapping[str, str]) -> bool:
    """Whether something can be drawn: both ends are a terminal, and it knows escape sequences."""
    return sys.stdin.isatty() and sys.stdout.isatty() and env.get("TERM", "") not in ("", "dumb", "unknown")


def opening(cwd: Path, *, title: bool) -> str:
    """The sequences a session begins with."""
    return FOCUS_REPORTS_ON + (_SAVE_TITLE + title_sequence(cwd, working=False) if title else "")


def closing(*, title: bool) -> str:
    """The sequences that give the terminal back as it was."""
    return RESTORE + (_RESTORE_TITLE if title else "")


def title_sequence(cwd: Path, *, working: bool) -> str:
    """What the window is called: the folder, and whether something is going on in it."""
    mark = "⠿ " if working else ""
    return f"\x1b]2;{mark}{sanitize_line(cwd.name or '/')[:_MAX_TITLE]} · codex-py\a"


def give_back(descriptor: int, *, title: bool) -> None:
    """Restore the terminal, whatever state the drawing was in; a terminal that is gone is no trouble."""
    try:
        os.write(descriptor, closing(title=title).encode())
    except OSError:
        return
