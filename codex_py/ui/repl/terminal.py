"""What the terminal is like, what it is told besides text, and how it is given back."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TextIO

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from codex_py.text.sanitize import sanitize_line
from codex_py.ui.repl.notify import FOCUS_REPORTS_OFF, FOCUS_REPORTS_ON

FOCUS_IN: Final = Keys.F23
FOCUS_OUT: Final = Keys.F24

# What a terminal that is being given back must not keep: reports, pastes in brackets, a hidden or odd cursor, colours.
USUAL_CURSOR: Final = "\x1b[0 q"
RESTORE: Final = f"{FOCUS_REPORTS_OFF}\x1b[?2026l\x1b[?2004l\x1b[?25h{USUAL_CURSOR}\x1b[0m"
_SAVE_TITLE: Final = "\x1b[22;2t"
_RESTORE_TITLE: Final = "\x1b[23;2t"
# Enter with Shift or Ctrl, as the terminals send it that can; and the window's focus. No key of anybody's is F23.
_SEQUENCES: Final[Mapping[str, Keys | tuple[Keys, ...]]] = {
    "\x1b[13;2u": (Keys.Escape, Keys.ControlM),
    "\x1b[27;2;13~": (Keys.Escape, Keys.ControlM),
    "\x1b[13;5u": Keys.ControlJ,
    "\x1b[27;5;13~": Keys.ControlJ,
    "\x1b[I": FOCUS_IN,
    "\x1b[O": FOCUS_OUT,
}
_MOST_TITLE: Final = 80
_PASTE_END: Final = "\x1b[201~"
# What a key sequence goes on with, also when it comes in two pieces.
_GO_ON: Final = ("[", "O")
_ESCAPE_TYPED: Final = re.compile(r"[^\x1b]*\x1b(?=[^\x00-\x1f\x7f\[O][^\x00-\x1f\x7f])")


class KeyParser(Vt100Parser):
    """Tells Escape from Alt, and takes a paste in piece by piece.

    prompt_toolkit's own takes Escape and the next letter for Alt with that letter, however they came, and goes over all
    of a paste again for each piece of it.
    """

    def __init__(self, take_key: Callable[[KeyPress], None]) -> None:
        super().__init__(take_key)
        self._pieces: list[str] = []
        self._has_escape = False

    def feed(self, data: str) -> None:
        if not self._in_bracketed_paste:
            self._feed_keys(data)
        else:
            self._feed_paste(data)

    def flush(self) -> None:
        has_escape, self._has_escape = self._has_escape, False
        super().flush()
        if has_escape:
            self._end_escape()

    def _feed_keys(self, data: str) -> None:
        """Alt sends its two characters at once, with nothing behind them; an Escape that came alone is a key."""
        if self._has_escape and not data.startswith(_GO_ON):
            self.flush()
        while typed := _ESCAPE_TYPED.match(data):
            super().feed(data[: typed.end()])
            super().flush()
            self._end_escape()
            data = data[typed.end() :]
        super().feed(data)
        self._has_escape = data.endswith("\x1b") and not self._in_bracketed_paste

    def _end_escape(self) -> None:
        """A key that does nothing, so that the next one is not taken together with the Escape."""
        self.feed_key_callback(KeyPress(Keys.Ignore, ""))

    def _feed_paste(self, data: str) -> None:
        # The mark of the end may come in two pieces.
        piece = (self._pieces.pop() if self._pieces else "") + data
        end = piece.find(_PASTE_END)
        if end < 0:
            kept = len(_PASTE_END) - 1
            self._pieces += [piece[:-kept], piece[-kept:]]
            return
        pasted = "".join([*self._pieces, piece[:end]])
        self._pieces.clear()
        self._in_bracketed_paste = False
        self.feed_key_callback(KeyPress(Keys.BracketedPaste, pasted))
        self.feed(piece[end + len(_PASTE_END) :])


def terminal_input(stdin: TextIO) -> Vt100Input:
    """The keys of a terminal."""
    made = Vt100Input(stdin)
    made.vt100_parser = KeyParser(made.vt100_parser.feed_key_callback)
    return made


def is_capable(env: Mapping[str, str]) -> bool:
    """Whether something can be drawn: both ends are a terminal, and it knows escape sequences."""
    return sys.stdin.isatty() and sys.stdout.isatty() and env.get("TERM", "") not in ("", "dumb", "unknown")


def learn_keys() -> None:
    """Teach prompt_toolkit the key sequences it does not know, or reads as another key."""
    ANSI_SEQUENCES.update(_SEQUENCES)


def opening(cwd: Path, *, title: bool) -> str:
    """The sequences a session begins with."""
    return FOCUS_REPORTS_ON + (_SAVE_TITLE + title_sequence(cwd, working=False) if title else "")


def closing(*, title: bool) -> str:
    """The sequences that give the terminal back as it was."""
    return RESTORE + (_RESTORE_TITLE if title else "")


def title_sequence(cwd: Path, *, working: bool) -> str:
    """What the window is called: the folder, and whether something is going on in it."""
    mark = "⠿ " if working else ""
    return f"\x1b]2;{mark}{sanitize_line(cwd.name or '/')[:_MOST_TITLE]} · codex-py\a"


def give_back(descriptor: int, *, title: bool) -> None:
    """Restore the terminal, whatever state the drawing was in; a terminal that is gone is no trouble."""
    try:
        os.write(descriptor, closing(title=title).encode())
    except OSError:
        return
