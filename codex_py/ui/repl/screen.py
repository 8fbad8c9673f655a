"""The only writer to the terminal: the live part at the bottom, and above it finished output, written once.

Everything of one change goes out in one piece, so that nothing flickers.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.layout.screen import Char, Screen
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import BaseStyle

from codex_py.text.display import cell_width

# Of others, such as xterm, it is taken that they cut rows off. Over ssh mostly TERM alone comes along.
_TERMS: Final = ("tmux", "screen", "xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm", "contour")
_PROGRAMS: Final = (
    *("alacritty", "apple_terminal", "ghostty", "iterm.app", "iterm2", "kitty", "tmux", "vscode"),
    *("warpterminal", "wezterm"),
)
_SIGNS: Final = (
    *("TMUX", "STY", "VTE_VERSION", "WT_SESSION"),
    *("KONSOLE_VERSION", "KITTY_WINDOW_ID", "ALACRITTY_WINDOW_ID"),
)


def rewraps_lines(env: Mapping[str, str]) -> bool:
    """Whether the terminal is known for it."""
    programs = (env.get(name, "").lower() for name in ("TERM_PROGRAM", "LC_TERMINAL"))
    return (
        env.get("TERM", "").startswith(_TERMS)
        or any(env.get(name) for name in _SIGNS)
        or any(program in _PROGRAMS for program in programs)
    )


def _rows_of(cells: int, width: int) -> int:
    """How many rows a line takes that is wrapped at `width`."""
    return max(1, -(-cells // width))


def _drawn_cells(drawn: Screen, style: BaseStyle) -> list[int]:
    """How many cells of each row were drawn; spaces at its end that look like nothing were not."""

    def is_drawn(char: Char) -> bool:
        looks = style.get_attrs_for_style_str(char.style)
        return char.char != " " or any(
            (looks.color, looks.bgcolor, looks.underline, looks.strike, looks.blink, looks.reverse)
        )

    rows = (drawn.data_buffer[y] for y in range(drawn.height))
    return [max((x for x, char in row.items() if is_drawn(char)), default=-1) + 1 for row in rows]


# What makes a printed line longer than it looks: its colours and links.
_UNSEEN: Final = re.compile(r"\x1b\[[0-9;:]*m|\x1b\]8;[^\x1b]*\x1b\\")
# As many printed lines are remembered as a large window shows.
_MAX_LINES: Final = 300
# Terminals that know it show what is between the two at once; the others ignore it.
_BEGIN_UPDATE: Final = "\x1b[?2026h"
_END_UPDATE: Final = "\x1b[?2026l"
# Between two drawings that nobody waits for: a picture of the spinner, longer where drawing is slow.
_PAUSE_SECONDS: Final = 0.12
_MAX_PAUSE: Final = 0.25
_PAUSE_PER_WORK: Final = 15
# What writing to a terminal that was closed ends with.
_GONE: Final = (errno.EIO, errno.ENXIO, errno.EPIPE, errno.EBADF)


class HeldOutput(Vt100_Output):
    """Keeps what is written until it is let go. Never asks the terminal where its cursor is: some do not answer."""

    is_held = False
    _size: Size | None = None

    @property
    def responds_to_cpr(self) -> bool:
        return False

    def hold(self) -> None:
        """Begin something that belongs together, drawn for one size of the window."""
        self._size = super().get_size()
        self.is_held = True
        self.write_raw(_BEGIN_UPDATE)

    def let_go(self) -> None:
        """Write what has come together."""
        self.write_raw(_END_UPDATE)
        self.is_held = False
        self._size = None
        self.flush()

    def get_size(self) -> Size:
        return self._size or super().get_size()

    def erase_down(self) -> None:
        """Erase from here, the beginning of a row, to the end of the screen.

        In two steps: tmux keeps a screen that is erased from its first cell in the scrollback, and so would show there
        what was only on its way.
        """
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")

    def flush(self) -> None:
        if self.is_held:
            return
        try:
            super().flush()
        except OSError as error:
            if error.errno not in _GONE:
                raise
            # That it is gone comes as a signal too; what is still to be drawn goes nowhere.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stdout.fileno())
            os.close(nowhere)


def terminal_output(stdout: TextIO, term: str) -> HeldOutput:
    """The output to a terminal, which asks it for its size whenever that is needed."""
    output = HeldOutput.from_pty(stdout, term=term)
    assert isinstance(output, HeldOutput)
    return output


class LiveApplication(Application[None]):
    """An application that notifies its screen when the window size changes."""

    note_resize: Callable[[], None] | None = None

    def _on_resize(self) -> None:
        # The base's erases at once, even while another program has the terminal.
        if self.note_resize is not None:
            self.note_resize()


class TerminalScreen:
    """Takes lines for the scrollback, and writes them with the next drawing of the live part.

    `rewraps_lines` says whether the terminal wraps what is drawn when its window gets narrower.
    """

    def __init__(self, output: HeldOutput, *, rewraps_lines: bool = False) -> None:
        self.output = output
        self._rewraps_lines = rewraps_lines
        self._is_resized = False
        self._drawn_width = self._drawn_height = 0
        # The widths of the rows of the live part that a window too low for it has moved to the scrollback.
        self._hidden: list[int] = []
        self._finished: list[str] = []
        self._printed: deque[str] = deque(maxlen=_MAX_LINES)
        self._app: LiveApplication | None = None
        self._soon: asyncio.TimerHandle | None = None
        self._prepare: Callable[[], None] | None = None
        self._began = self._work_began = self._due = 0.0

    @property
    def width(self) -> int:
        return max(1, self.output.get_size().columns)

    @property
    def height(self) -> int:
        return max(1, self.output.get_size().rows)

    def attach(self, app: LiveApplication) -> None:
        """Become part of every drawing of the application."""
        self._app = app
        app.note_resize = self._note_resize
        app.before_render += self._before_drawing
        app.after_render += self._after_drawing

    def print_above(self, lines: Iterable[str]) -> None:
        """Add finished lines, escape sequences and all; no line is wider than the terminal."""
        self._finished.extend(lines)
        self.draw_soon()

    def draw(self) -> None:
        """Draw the live part again, for somebody who waits for it."""
        if self._app is not None:
            self._app.invalidate()

    def draw_soon(self, prepare: Callable[[], None] | None = None) -> None:
        """Draw it again, not more often than can be seen, however much happens; `prepare` is called right before.

        A drawing that somebody waits for, such as one for a key, does not wait for what is to be prepared.
        """
        self._prepare = prepare or self._prepare
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_at(self._due, self._draw_now)

    def write_rest(self) -> None:
        """Write what came when nothing was drawn any more."""
        self._write_finished()
        self.output.flush()

    def emit(self, sequence: str) -> None:
        """Send an escape sequence that shows nothing, such as a bell or a title, at once."""
        self.output.write_raw(sequence)
        self.output.flush()

    def _draw_now(self) -> None:
        if (prepare := self._prepare) is not None:
            prepare()
        self._soon = self._prepare = None
        self.draw()

    def _before_drawing(self, app: Application[None]) -> None:
        self._began, self._work_began = time.monotonic(), time.thread_time()
        self.output.hold()
        # The width is asked as well: a drawing may come between the change and the word of it.
        width = self.width
        if self._finished or self._is_resized or width != self._drawn_width or self._shrinks(app):
            self._erase(app, width)
        self._drawn_width, self._drawn_height = width, self.height
        self._write_finished()

    def _after_drawing(self, app: Application[None]) -> None:
        self.output.let_go()
        if self._soon is not None and self._prepare is None:
            self._soon.cancel()
            self._soon = None
        work = time.thread_time() - self._work_began
        self._due = self._began + min(max(_PAUSE_SECONDS, work * _PAUSE_PER_WORK), _MAX_PAUSE)

    def _note_resize(self) -> None:
        self._is_resized = True
        self.draw()

    def _erase(self, app: Application[None], width: int) -> None:
        """Erase the live part."""
        self._is_resized = False
        drawn = app.renderer.last_rendered_screen
        grown = self.height - self._drawn_height
        if drawn is None or (width == self._drawn_width and not grown):
            app.renderer.erase(leave_alternate_screen=False)
            return
        is_wrapped = self._rewraps_lines and width < self._drawn_width
        cells = _drawn_cells(drawn, app.renderer.style)
        rows = [_rows_of(each, width) if is_wrapped else 1 for each in cells]
        cursor = drawn.get_cursor_position(app.layout.current_window)
        if is_wrapped:
            # It has got more rows since it was drawn.
            self.output.cursor_up(sum(rows[: cursor.y]) - cursor.y + cursor.x // width)
        app.renderer.erase(leave_alternate_screen=False)
        if grown > 0 and self._hidden:
            self._erase_hidden(grown, drawn.height, width)
            return
        # A lower window first takes rows from below the cursor. What then does not fit goes up.
        remaining = rows[: max(cursor.y + 1, len(rows) + min(0, grown))]
        excess = sum(remaining) - self.height
        for width_of_row, number in zip(cells, remaining, strict=False):
            if excess > 0:
                self._hidden.append(width_of_row)
                excess -= number

    def _erase_hidden(self, grown: int, drawn_height: int, width: int) -> None:
        """Erase the rows that are back on the screen, and write once more what has been printed around them.

        In a window too low for the live part its first rows go to the scrollback, where nothing erases them. They come
        back when the window gets higher.
        """
        up = 0
        while self._hidden and up < grown:
            up += _rows_of(self._hidden.pop(), width)
        free = self.height - drawn_height - up
        lines: list[str] = []
        for line in reversed(self._printed):
            rows = _rows_of(cell_width(_UNSEEN.sub("", line)), width)
            if rows > free:
                break
            lines.insert(0, line)
            free, up = free - rows, up + rows
        self.output.cursor_up(up)
        self.output.erase_down()
        for line in lines:
            self.output.write_raw(line + "\r\n")

    def _shrinks(self, app: Application[None]) -> bool:
        """Whether fewer rows are needed than were drawn; the renderer alone never gives one back."""
        drawn = app.renderer.last_rendered_screen
        if drawn is None:
            return False
        wanted = app.layout.container.preferred_height(self.width, self.height).preferred
        return min(wanted, self.height) < drawn.height

    def _write_finished(self) -> None:
        for line in self._finished:
            self.output.write_raw(line + "\r\n")
        self._printed += self._finished
        self._finished.clear()
