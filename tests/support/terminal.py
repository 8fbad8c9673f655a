"""`codex-py` in a real pseudo-terminal: keys go in, the screen comes out.

    with Terminal(place, "--offline") as terminal:
        terminal.wait_for("› ")
        terminal.type("hello")
        terminal.press("enter")
        terminal.wait_for("Hello. I am")

Nothing sleeps: every wait ends as soon as the screen is as it should be, and fails with the screen when it never is.
"""

from __future__ import annotations

import os
import re
import select
import signal
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import pexpect
import pyte

from tests.support.home import Place
from tests.support.process import COMMAND
from tests.support.warm import begin, can_play

TIMEOUT: Final = 60.0

KEYS: Final[Mapping[str, str]] = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "backspace": "\x7f",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "shift-tab": "\x1b[Z",
    "alt-enter": "\x1b\r",
    "focus-in": "\x1b[I",
    "focus-out": "\x1b[O",
    **{f"ctrl-{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
}


class Terminal:
    """A running `codex-py` and its screen. Leaving the block ends what is left of it."""

    def __init__(
        self,
        place: Place,
        *arguments: str,
        width: int = 80,
        height: int = 24,
        cwd: Path | None = None,
        command: str = COMMAND,
        answers: Mapping[str, str] | None = None,
        **env: str,
    ) -> None:
        variables = {**place.env, "TERM": "xterm-256color", "COLORTERM": "", **env}
        self._screen = pyte.HistoryScreen(width, height, history=5000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = bytearray()
        # What the terminal answers to a sequence.
        self.answers = {query.encode(): answer for query, answer in (answers or {}).items()}
        self.began = time.monotonic()
        argv, directory = [command, *arguments], cwd or place.repo
        self.child: Any
        if command == COMMAND and can_play(variables):
            self.child = _Played(argv, env=variables, cwd=directory, size=(height, width))
        else:
            self.child = pexpect.spawn(
                command, argv[1:], env=variables, cwd=str(directory), dimensions=(height, width), timeout=TIMEOUT
            )
            self.child.delaybeforesend = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.child.isalive():
            with suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()
        self.child.close(force=False)

    @property
    def rows(self) -> list[str]:
        """What is on the screen, without spaces at the ends of rows."""
        return [row.rstrip() for row in self._screen.display]

    @property
    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.rows).rstrip()

    @property
    def scrollback(self) -> list[str]:
        """Everything that was printed, what has left the screen at the top included."""
        width = self._screen.columns
        above = ["".join(line[x].data for x in range(width)).rstrip() for line in self._screen.history.top]
        return [*above, *self.rows]

    @property
    def whole(self) -> str:
        return "\n".join(self.scrollback)

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column, from 0."""
        return self._screen.cursor.y, self._screen.cursor.x

    def style_of(self, text: str) -> Any:
        """How the first letter of a text on the screen is drawn: a character of pyte's with its colours."""
        row, column = next((y, line.index(text)) for y, line in enumerate(self._screen.display) if text in line)
        return self._screen.buffer[row][column]

    def type(self, text: str) -> None:
        """Type letters."""
        self.child.send(text)

    def press(self, *keys: str) -> None:
        """Press keys by their names, one after the other."""
        for key in keys:
            self.child.send(KEYS[key])

    def paste(self, text: str) -> None:
        """Paste as a terminal does."""
        self.child.send(f"\x1b[200~{text}\x1b[201~")

    def close_window(self) -> None:
        """Take the terminal away; the program stays."""
        with Path(os.devnull).open() as nothing:
            os.dup2(nothing.fileno(), self.child.fileno())

    def resize(self, width: int, height: int) -> None:
        """Give the window another size. A lower one takes rows from below the cursor first, as terminals do, and moves
        others to the scrollback, from where a higher one brings them back; pyte would cut from the top."""
        screen, above = self._screen, self._screen.history.top
        excess, row, column = screen.lines - height, screen.cursor.y, screen.cursor.x
        if excess > 0:
            below = min(excess, screen.lines - 1 - row)
            above.extend(screen.buffer[y] for y in range(excess - below))
            screen.cursor_position(1, 1)
            screen.insert_lines(below)
            screen.cursor_position(row - (excess - below) + 1, column + 1)
        screen.resize(height, width)
        if back := [above.pop() for _ in range(min(max(0, -excess), len(above)))]:
            screen.cursor_position(1, 1)
            screen.insert_lines(len(back))
            screen.buffer.update(enumerate(reversed(back)))
            screen.cursor_position(row + len(back) + 1, column + 1)
        self.child.setwinsize(height, width)

    def narrow(self, width: int) -> None:
        """Make the window narrower as most terminals do: they wrap all rows again. They must fit."""
        pieces = [[row[at : at + width] for at in range(0, len(row) or 1, width)] for row in self.rows]
        y, x = self.cursor
        below = sum(map(len, pieces[:y])) + x // width
        self.resize(width, self._screen.lines)
        self._screen.erase_in_display(2)
        for number, piece in enumerate([piece for row in pieces for piece in row][: self._screen.lines], 1):
            self._screen.cursor_position(number, 1)
            self._screen.draw(piece)
        self._screen.cursor_position(below + 1, x % width + 1)

    def wait_for(self, wanted: str | Callable[[Terminal], bool], *, timeout: float = TIMEOUT) -> Self:
        """Read until the screen shows a text, or until something holds."""
        until = time.monotonic() + timeout
        while self._is_drawing or not (wanted in self.text if isinstance(wanted, str) else wanted(self)):
            left = until - time.monotonic()
            assert left > 0, f"not within {timeout} s: {wanted!r}; the screen:\n{self.text}"
            assert self._read(left), f"it ended without {wanted!r}; the screen:\n{self.text}"
        return self

    def wait_until_gone(self, unwanted: str) -> Self:
        """Read until the screen does not show a text any more."""
        return self.wait_for(lambda terminal: unwanted not in terminal.text)

    def wait_for_prompt(self) -> Self:
        """Read until a session is open, no turn runs and something can be typed."""
        return self.wait_for(Terminal._is_idle)

    def read_for(self, seconds: float) -> None:
        """Take in whatever comes within so many seconds; for those who measure."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._read(left)

    @property
    def _is_drawing(self) -> bool:
        """Whether what came last ends amid a drawing, of which a terminal would show nothing yet."""
        return self.raw.rfind(b"\x1b[?2026h") > self.raw.rfind(b"\x1b[?2026l")

    def _is_idle(self) -> bool:
        shown = self.text
        is_busy = "starting…" in shown or "Esc stops it" in shown
        return not is_busy and re.search(r"(?m)^› ", shown) is not None

    def wait_for_end(self, *, timeout: float = TIMEOUT) -> int:
        """Read until the program has ended; its exit status, negative for the signal that ended it."""
        until = time.monotonic() + timeout
        while (left := until - time.monotonic()) > 0 and self._read(left):
            pass
        assert left > 0, f"it has not ended within {timeout} s; the screen:\n{self.text}"
        self.child.wait()
        status = self.child.exitstatus
        return int(status) if status is not None else -int(self.child.signalstatus)

    def _read(self, timeout: float) -> bool:
        """Take in what comes next; False at the end."""
        try:
            chunk = self.child.read_nonblocking(1 << 16, timeout)
        except pexpect.TIMEOUT:
            return True
        except (pexpect.EOF, OSError):
            return False
        self.raw += chunk
        self._stream.feed(chunk)
        for query, answer in self.answers.items():
            for _ in range(chunk.count(query)):
                self.child.send(answer)
        return bool(chunk)


class _Played:
    """A command line played at a terminal, as far as there is need for what `pexpect.spawn` offers."""

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, size: tuple[int, int]) -> None:
        self._master, slave = os.openpty()
        self.setwinsize(*size)
        try:
            self._process = begin(argv, [slave] * 3, env=env, cwd=cwd, terminal=True)
        finally:
            os.close(slave)
        self.pid = self._process.pid
        self.kill = self._process.send_signal
        self.exitstatus: int | None = None
        self.signalstatus: int | None = None

    def isalive(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> None:
        status = self._process.wait(TIMEOUT)
        self.exitstatus, self.signalstatus = (status, None) if status >= 0 else (None, -status)

    def close(self, *, force: bool) -> None:
        assert not force
        os.close(self._master)

    def fileno(self) -> int:
        return self._master

    def setwinsize(self, rows: int, columns: int) -> None:
        termios.tcsetwinsize(self._master, (rows, columns))

    def send(self, text: str) -> None:
        left = text.encode()
        while left:
            left = left[os.write(self._master, left) :]

    def read_nonblocking(self, size: int, timeout: float) -> bytes:
        if not select.select([self._master], [], [], timeout)[0]:
            raise pexpect.TIMEOUT("nothing came")
        # An error says that nobody holds the other side any more.
        return os.read(self._master, size)
