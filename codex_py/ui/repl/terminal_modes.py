"""The terminal modes that a session switches on, and the reports of the terminal about itself.

Modes are switched on after echo is off and switched off before it is on again, so that a report never shows.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from codex_py.ui.repl.terminal import ASK_COLORS

Background: TypeAlias = Literal["dark", "light"]

# Focus reports, notices of another colour scheme, keys told apart: by kitty's protocol, or by xterm's.
MODES_ON: Final = "\x1b[?1004h\x1b[?2031h\x1b[>4;1m\x1b[>1u"
# The cursor is kept: a terminal that does not know the first of them may print its last letter.
MODES_OFF: Final = "\x1b7\x1b[<u\x1b8\x1b[>4m\x1b[?2031l\x1b[?1004l"

# How long the first line may wait for an answer.
_ANSWER_SECONDS: Final = 0.1
_READ_SECONDS: Final = 0.01
# After this no answer is on its way any more.
_MAX_ANSWER_SECONDS: Final = 1.0
_COLOR: Final = re.compile(r"\x1b\](1[01]);rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")
_SCHEME: Final = re.compile(r"\x1b\[\?997;([12])n")
_ATTRIBUTES: Final = re.compile(r"\x1b\[\?[\d;]*c")


class TerminalModes:
    """Switches the modes, and knows the background. `emit` writes a sequence; `changed` is called with a background
    that the terminal reports.
    """

    def __init__(self, emit: Callable[[str], None], changed: Callable[[Background], None]) -> None:
        self._emit = emit
        self._changed = changed
        self._is_on = False
        self._colors: dict[str, float] = {}
        self._answered = asyncio.Event()
        self._queried_at = -math.inf
        self._is_queried = False

    def note_queried(self, queried_at: float) -> None:
        """Note that the colours were asked for at this time, in monotonic seconds: no need to ask at first."""
        self._queried_at, self._is_queried = queried_at, True

    def switch_on(self) -> None:
        """Switch everything on, and ask for the colours, which may have changed."""
        if not self._is_on:
            self._is_on = True
            if self._is_queried:
                self._is_queried = False
                self._emit(MODES_ON)
                return
            self._queried_at = time.monotonic()
            self._emit(MODES_ON + ASK_COLORS)

    def switch_off(self) -> None:
        """Take it back, once."""
        if self._is_on:
            self._is_on = False
            self._emit(MODES_OFF)

    @property
    def awaits_answer(self) -> bool:
        """Whether an answer may still come."""
        return not self._answered.is_set() and time.monotonic() - self._queried_at < _MAX_ANSWER_SECONDS

    async def background_known(self) -> None:
        """Wait for the answer, until `_ANSWER_SECONDS` after the question."""
        left = self._queried_at + _ANSWER_SECONDS - time.monotonic()
        try:
            # An answer that has come already is read in a moment.
            await asyncio.wait_for(self._answered.wait(), max(left, _READ_SECONDS))
        except TimeoutError:
            return

    def take_report(self, report: str) -> None:
        """Take what the terminal reports."""
        if color := _COLOR.match(report):
            self._colors[color[1]] = _brightness(color[2], color[3], color[4])
        elif scheme := _SCHEME.match(report):
            self._changed("dark" if scheme[1] == "1" else "light")
            self._colors.clear()
            self._emit(ASK_COLORS)
        elif _ATTRIBUTES.match(report):
            self._answered.set()
        if (background := self._background()) is not None and color:
            self._changed(background)

    def _background(self) -> Background | None:
        """Light where the backbrightness is brighter than the text, or bright where only one of the two is known."""
        brightness = self._colors.get("11")
        if brightness is None:
            return None
        return "light" if brightness > self._colors.get("10", 0.5) else "dark"


def _brightness(red: str, green: str, blue: str) -> float:
    """How bright a colour looks, from 0 to 1; its parts have one to four hexadecimal digits."""
    parts = [int(part, 16) / (16 ** len(part) - 1) for part in (red, green, blue)]
    return 0.299 * parts[0] + 0.587 * parts[1] + 0.114 * parts[2]
