"""A place for panels: keys go in as a terminal sends them, and what comes out is drawn on a terminal in memory."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from typing import Any, Final, TextIO, cast

import pyte
from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.base import PipeInput
from prompt_toolkit.key_binding import DynamicKeyBindings, KeyBindings
from prompt_toolkit.layout import DynamicContainer, HSplit, Layout, Window
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from codex_py.render.theme import Theme
from codex_py.ui.repl.panels.forms import Panels

KEYS: Final = {
    "up": "\x1b[A",
    "down": "\x1b[B",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "enter": "\r",
    "esc": "\x1b",
    "tab": "\t",
    "ctrl-c": "\x03",
    "ctrl-o": "\x0f",
    "ctrl-u": "\x15",
}
_PATIENCE: Final = 30.0


class PanelHost:
    """Shows panels; `text` is what stands on the screen now."""

    def __init__(self, size: tuple[int, int], sent: PipeInput) -> None:
        self._sent = sent
        self._size = size
        self._screen = pyte.Screen(*size)
        self._stream = pyte.Stream(self._screen)
        self._activity = asyncio.Event()
        self.panels = Panels(self._changed)
        self._rest = Window()
        keys = DynamicKeyBindings(lambda: self.panels.open.bindings if self.panels.open else KeyBindings())
        front = DynamicContainer(lambda: self.panels.open.container if self.panels.open else self._rest)
        self.app: Application[None] = Application(
            layout=Layout(HSplit([front])),
            key_bindings=keys,
            style=Style.from_dict(dict(Theme("dark", "256").prompt_toolkit_styles())),
            input=sent,
            output=Vt100_Output(
                cast("TextIO", self), lambda: Size(rows=self._size[1], columns=self._size[0]), enable_cpr=False
            ),
        )
        self.app.ttimeoutlen = 0.01

    @property
    def lines(self) -> list[str]:
        """The rows that are not empty, without space at their ends."""
        return [line.rstrip() for line in self._screen.display if line.strip()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def press(self, *keys: str) -> None:
        """Keys by name, and anything else as it is typed."""
        for key in keys:
            self._sent.send_text(KEYS.get(key, key))

    async def play(self, *presses: str) -> None:
        """Press keys one after the other; `see: …` waits for a text on the screen instead."""
        for press in presses:
            if press.startswith("see: "):
                await self.until(press.removeprefix("see: "))
            else:
                self.press(press)

    async def until(self, shown: str | Callable[[str], bool]) -> str:
        """Wait until a text stands on the screen, or something is true of it; gives the screen."""

        def holds() -> bool:
            return shown in self.text if isinstance(shown, str) else shown(self.text)

        try:
            async with asyncio.timeout(_PATIENCE):
                while not holds():
                    self._activity.clear()
                    await self._activity.wait()
        except TimeoutError:
            raise AssertionError(f"never shown: {shown!r}; the screen:\n{self.text}") from None
        return self.text

    def look_again(self) -> None:
        """Let whoever waits in `until` look again, because something else than the screen has changed."""
        self._activity.set()

    def resize(self, columns: int, rows: int) -> None:
        self._size = (columns, rows)
        self._screen.resize(rows, columns)
        self._screen.reset()
        self.app.renderer.clear()
        self.app.invalidate()

    # What a stream for output needs.

    encoding = "utf-8"

    def write(self, text: str) -> int:
        self._stream.feed(re.sub(r"\x1b\[\?\d+[$]p|\x1b\[>\d*[a-z]", "", text))
        self._activity.set()
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True

    def _changed(self) -> None:
        self.app.layout.focus(self.panels.open.container if self.panels.open else self._rest)
        self.app.invalidate()


@contextlib.contextmanager
def _no_session_left(sent: PipeInput) -> Generator[None]:
    with create_app_session(input=sent):
        yield


@asynccontextmanager
async def panel_host(columns: int = 80, rows: int = 24) -> AsyncGenerator[PanelHost, None]:
    """A running host of this size."""
    with create_pipe_input() as sent, _no_session_left(sent):
        host = PanelHost((columns, rows), sent)
        running: asyncio.Task[Any] = asyncio.create_task(host.app.run_async(set_exception_handler=False))
        try:
            yield host
        finally:
            if host.app.is_running:
                host.app.exit()
            await running
