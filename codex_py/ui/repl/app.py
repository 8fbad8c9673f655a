"""The terminal session as a program: the screen, the keys, and what holds until the user leaves."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Final, cast

from prompt_toolkit.application import Application, in_terminal, run_in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.cursor_shapes import AnyCursorShapeConfig, DynamicCursorShapeConfig, ModalCursorShapeConfig
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import DynamicKeyBindings, KeyBindingsBase, merge_key_bindings
from prompt_toolkit.key_binding.key_processor import KeyProcessor
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import BaseStyle, DynamicStyle, Style

from codex_py.config.tui import resolve_keys
from codex_py.render.theme import AUTO, Theme, find_theme
from codex_py.ui.repl.bindings import Controls, focus_bindings, is_navigating, session_bindings
from codex_py.ui.repl.history import FILE, PromptHistory
from codex_py.ui.repl.input import Composer
from codex_py.ui.repl.launch import LaunchContext
from codex_py.ui.repl.layout import LayoutParts, Row, build_layout
from codex_py.ui.repl.panels.forms import Panels
from codex_py.ui.repl.screen import LiveApplication, TerminalScreen, rewraps_lines, terminal_output
from codex_py.ui.repl.terminal import (
    STARTING,
    USUAL_CURSOR,
    escape_seconds,
    give_back,
    opening,
    title_sequence,
    use_utf_8,
)
from codex_py.ui.repl.terminal_input import Background, TerminalModes, register_keys, terminal_input

_FRAME_SECONDS: Final = 0.12
_NORMAL: Final = "  NORMAL"
_STATUS: Final = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
_DEPTHS: Final = {
    "none": ColorDepth.DEPTH_1_BIT,
    "16": ColorDepth.DEPTH_4_BIT,
    "256": ColorDepth.DEPTH_8_BIT,
    "truecolor": ColorDepth.DEPTH_24_BIT,
}


class FrontEnd:
    """The screen, the input, the panels and the keys. `controls.session` is the active session."""

    def __init__(self, launch: LaunchContext) -> None:
        self.launch = launch
        self._theme_name = launch.tui.theme
        self._background: Background | None = None
        self.theme = self._find_theme(launch.tui.theme)
        use_utf_8(sys.stdin, sys.stdout)
        output = terminal_output(sys.stdout, launch.env.get("TERM", ""))
        self.screen = TerminalScreen(output, rewraps_lines=rewraps_lines(launch.env))
        self._modes = TerminalModes(self.screen.emit, self._background_changed)
        self.composer = Composer(_history(launch), self.screen.draw)
        self.panels = Panels(self._panel_changed)
        self.controls = Controls(self.composer, launch.cwd, draw=self.screen.draw, quit_early=self.close)
        keys, _ = resolve_keys(launch.tui.keymap)
        self._bindings = session_bindings(keys, self.composer, self.controls, suspend=self._suspend)
        self._status = 0
        self._has_lent = False
        self._title = ""
        self._wheel: asyncio.TimerHandle | None = None
        self._bug: BaseException | None = None
        self._style = self._style_of_theme()
        layout = build_layout(self.screen, self.composer, self.panels, self._layout_parts())
        self._typed = layout.current_window
        self.app = LiveApplication(
            layout=layout,
            key_bindings=merge_key_bindings(
                [DynamicKeyBindings(self._bindings_in_front), focus_bindings(self.controls)]
            ),
            style=DynamicStyle(self._style_now),
            color_depth=lambda: _DEPTHS[self.theme.depth],
            cursor=DynamicCursorShapeConfig(self._cursor_shape),
            editing_mode=EditingMode.VI if launch.tui.vim else EditingMode.EMACS,
            input=terminal_input(sys.stdin, self._modes.take_report),
            output=self.screen.output,
            erase_when_done=True,
            include_default_pygments_style=False,
            # A key is drawn at once, also while a message streams in.
            max_render_postpone_time=None,
        )
        self.app.ttimeoutlen = escape_seconds(launch.env)
        self.app.timeoutlen = 0.15
        self.app.key_processor.after_key_press += self._close_settled
        self.screen.attach(self.app)

    async def run(self, run_sessions: Callable[[], Awaitable[None]]) -> int:
        """Draw, and run the sessions once the prompt is on the screen; the exit status.

        The terminal is as before when this returns or raises.
        """
        register_keys()
        title = self.launch.tui.title
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._note_bug)
        for number in _STATUS:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            await self._run(run_sessions)
        finally:
            for number in _STATUS:
                loop.remove_signal_handler(number)
            loop.set_exception_handler(None)
            self.screen.write_rest()
            self._modes.switch_off()
            give_back(sys.stdout.fileno(), title=title, awaits_answer=self._modes.awaits_answer)
        if self._bug is not None:
            raise _first_of(self._bug)
        return self._status

    def set_theme(self, name: str) -> None:
        """Draw in another theme from now on; raise `UserError` for none that there is."""
        self.theme = self._find_theme(name)
        self._theme_name = name
        self._style = self._style_of_theme()
        self.screen.draw()

    def _find_theme(self, name: str) -> Theme:
        opener = self.launch.loaded.config.file_opener
        theme = find_theme(name, self.launch.env, self._background)
        return theme.replace(link_root=str(self.launch.cwd), opener="" if opener == "none" else opener)

    async def background_known(self) -> None:
        """Wait a moment for the terminal to report its colours, where the theme goes by them."""
        if self._theme_name == AUTO and self.theme.depth != "none":
            await self._modes.background_known()

    def set_vim(self, *, on: bool) -> None:
        """Edit with the keys of vi, or with those of Emacs."""
        self.app.editing_mode = EditingMode.VI if on else EditingMode.EMACS
        self.screen.emit(USUAL_CURSOR)
        self.screen.draw()

    def note_working(self, *, working: bool, asking: bool = False) -> None:
        """Show in the window's title what goes on, and keep the spinner turning."""
        session = self.controls.session
        cwd = session.cwd if session else self.launch.cwd
        title = title_sequence(cwd, working=working, asking=asking)
        if self.launch.tui.title and title != self._title:
            self._title = title
            self.screen.emit(title)
        if working and self._wheel is None:
            self._turn_wheel()

    async def run_program(self, argv: Sequence[str]) -> int:
        """Run a program on the terminal; its status, 127 when it cannot be started."""
        # Whoever calls may come from outside of the application.
        with set_app(self.app), self._lent():
            async with in_terminal():
                return await self._run_in_front(argv)

    async def _run_in_front(self, argv: Sequence[str]) -> int:
        try:
            process = await asyncio.create_subprocess_exec(*argv, env=dict(self.launch.env), cwd=self.launch.cwd)
        except (OSError, ValueError):
            return 127
        try:
            return await process.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            raise

    @contextlib.contextmanager
    def _lent(self) -> Generator[None]:
        """The terminal is another program's: so are Ctrl-C and what it reports. Entered and left while nothing is
        echoed.
        """
        self._has_lent = True
        self._modes.switch_off()
        try:
            yield
        finally:
            self._has_lent = False
            self._modes.switch_on()

    def _suspend(self) -> None:
        """Ctrl-Z: back to the shell that started it, until that brings it to the front again."""

        async def stop() -> None:
            with self._lent():
                await run_in_terminal(lambda: os.kill(0, signal.SIGTSTP))

        self.app.create_background_task(stop())

    def close(self) -> None:
        """Stop drawing."""
        self._modes.switch_off()
        if self.app.is_running and self.app.future is not None and not self.app.future.done():
            self.app.exit()

    async def _run(self, run_sessions: Callable[[], Awaitable[None]]) -> None:
        """Until the sessions are through, or nothing can be drawn any more."""
        # First, so that it is there to hear of the first drawing.
        working = asyncio.create_task(self._run_when_drawn(run_sessions))
        drawing = asyncio.create_task(self.app.run_async(set_exception_handler=False, handle_sigint=False))
        try:
            await asyncio.wait([drawing, working], return_when=asyncio.FIRST_COMPLETED)
            if drawing.done() and not working.done():
                self.controls.quit()
                working.cancel()
        finally:
            self.close()
            with contextlib.suppress(EOFError, asyncio.CancelledError):
                await drawing
            try:
                await working
            except asyncio.CancelledError:
                pass
            except BaseExceptionGroup as several:
                self._bug = several

    async def _run_when_drawn(self, run_sessions: Callable[[], Awaitable[None]]) -> None:
        drawn = asyncio.Event()

        def note_drawn(_: Application[None]) -> None:
            drawn.set()

        self.app.after_render += note_drawn
        await drawn.wait()
        self.app.after_render -= note_drawn
        # Only now nothing is echoed.
        self.screen.emit(opening(self.launch.cwd, title=self.launch.tui.title))
        self._modes.switch_on()
        await run_sessions()

    def _on_signal(self, number: signal.Signals) -> None:
        if number == signal.SIGINT and self._has_lent:
            return
        self._status = _STATUS[number]
        self.controls.quit()

    def _note_bug(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException) and self._bug is None:
            self._bug = error
            self.close()

    def _turn_wheel(self) -> None:
        self._wheel = None
        session = self.controls.session
        if session is not None and session.surroundings.is_working():
            self.screen.draw_soon()
            self._wheel = asyncio.get_running_loop().call_later(_FRAME_SECONDS, self._turn_wheel)

    def _close_settled(self, _: KeyProcessor) -> None:
        self.panels.close_settled()

    def _background_changed(self, background: Background) -> None:
        """The terminal has reported it: what is drawn from now on goes with it."""
        if background != self._background:
            self._background = background
            if self._theme_name == AUTO:
                self.set_theme(AUTO)

    def _panel_changed(self) -> None:
        self.app.layout.focus(self.panels.open.container if self.panels.open else self._typed)
        self.screen.draw()

    def _bindings_in_front(self) -> KeyBindingsBase:
        return self.panels.open.bindings if self.panels.open else self._bindings

    def _cursor_shape(self) -> AnyCursorShapeConfig:
        """With vi keys it shows whether letters are text or commands; otherwise it is the user's own."""
        return ModalCursorShapeConfig() if self.app.editing_mode is EditingMode.VI else None

    def _style_now(self) -> BaseStyle:
        return self._style

    def _style_of_theme(self) -> Style:
        return Style.from_dict(dict(self.theme.prompt_toolkit_styles()))

    def _layout_parts(self) -> LayoutParts:
        """Those of the session in front, and something modest while there is none."""

        def active_parts() -> LayoutParts:
            return self.controls.session.surroundings if self.controls.session else _NOBODY

        def live(width: int, height: int) -> Sequence[Row]:
            return active_parts().live(width, height)

        def queued(width: int) -> StyleAndTextTuples:
            return active_parts().queued(width)

        def status(width: int) -> StyleAndTextTuples:
            if self.controls.quits_next:
                return [("class:warn", "  press Ctrl-C again to quit"[:width])]
            if not is_navigating():
                return active_parts().status(width)
            return [("class:warn", _NORMAL[:width]), *active_parts().status(max(0, width - len(_NORMAL)))]

        def named(width: int) -> StyleAndTextTuples:
            return active_parts().named(width)

        return LayoutParts(
            live=live,
            has_live=lambda: active_parts().has_live(),
            is_working=lambda: active_parts().is_working(),
            queued=queued,
            has_queued=lambda: active_parts().has_queued(),
            status=status,
            named=named,
            has_named=lambda: active_parts().has_named(),
        )


def _first_of(error: BaseException) -> BaseException:
    """The error that the others came of."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _no_rows(*_: int) -> Sequence[Row]:
    return ()


def _nothing(_: int) -> StyleAndTextTuples:
    return []


def _starting(width: int) -> StyleAndTextTuples:
    return [("class:status", STARTING[:width])]


_NOBODY: Final = LayoutParts(
    live=_no_rows,
    has_live=lambda: False,
    is_working=lambda: False,
    queued=_nothing,
    has_queued=lambda: False,
    status=_starting,
    named=_nothing,
    has_named=lambda: False,
)


def _history(launch: LaunchContext) -> PromptHistory:
    settings = launch.loaded.config.history
    path = launch.home / FILE if settings.persistence == "save-all" else None
    return PromptHistory(path, max_bytes=settings.max_bytes)
