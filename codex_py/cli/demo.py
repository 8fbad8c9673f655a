"""`codex-py --demo`: plays the recorded session of the README, drawn by the code that draws real ones.

It needs no login, network or configuration, and writes no file. `scripts/picture` makes the recording.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Final, NamedTuple

from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from codex_py import __version__
from codex_py.errors import UsageError
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.protocol.items import Message, ResponseItem
from codex_py.protocol.policy import WorkspaceWrite
from codex_py.render.entry import Flow, ScrollbackEntry, to_fragments
from codex_py.render.status import Banner, banner_lines
from codex_py.render.theme import AUTO, Theme, find_theme
from codex_py.render.transcript import render_items
from codex_py.text.sanitize import without_styles
from codex_py.ui.repl.key_parser import register_keys, terminal_input
from codex_py.ui.repl.live import FRAME_SECONDS, FRAMES
from codex_py.ui.repl.terminal import escape_seconds, give_back, use_utf_8
from codex_py.ui.repl.terminal_modes import Background, TerminalModes

_RECORDING: Final = Path(__file__).with_name("demo.jsonl")
_HOME: Final = Path("/home/you")
_TITLE: Final = "A recorded session: nothing runs, and nothing is sent."
_KEYS: Final = "Space shows the rest at once, Esc ends it."
_END: Final = "The recording ends here. For a session of your own: codex-py"
_PLAIN_WIDTH: Final = 80
_KEY_SECONDS: Final = 0.04
_LINE_SECONDS: Final = 0.04
_WORK_FRAMES: Final = 10
_HIDE_CURSOR: Final = "\x1b[?25l"
_STATUS: Final = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class Recording(NamedTuple):
    """A recorded session: its banner, its first message, and what was shown of it, the message included."""

    banner: Banner
    prompt: str
    entries: Sequence[ScrollbackEntry]


def run(arguments: Sequence[str]) -> int:
    """Play the recording in a terminal, and print it anywhere else; give back the exit status."""
    if arguments:
        raise UsageError(f"`--demo` takes no arguments, not `{arguments[0]}`", hint="try `codex-py --demo`")
    recording = load_recording()
    use_utf_8(sys.stdout)
    if sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown"):
        return asyncio.run(_play(recording))
    print("\n".join(plain_lines(recording)))
    return 0


def load_recording() -> Recording:
    """Read the recording that comes with the program."""
    first, *lines = _RECORDING.read_text(encoding="utf-8").splitlines()
    settings = as_object(decode_json(first))
    directory = Path(str(settings["directory"]))
    items = [ResponseItem.from_wire(as_object(decode_json(line))) for line in lines]
    messages = [view.text for view in (item.view() for item in items) if isinstance(view, Message)]
    banner = Banner(
        version=__version__,
        model=str(settings["model"]),
        provider=str(settings["provider"]),
        cwd=directory,
        sandbox=WorkspaceWrite(),
        approval="on-request",
        home=_HOME,
    )
    prompt = next(text for text in messages if not text.startswith("<"))
    return Recording(banner, prompt, list(render_items(items, cwd=directory)))


def plain_lines(recording: Recording) -> list[str]:
    """The whole recording without escape sequences."""
    theme, flow = Theme("mono", "none"), Flow()
    lines = [_TITLE, "", *map(without_styles, banner_lines(recording.banner, width=_PLAIN_WIDTH, theme=theme)), ""]
    for entry in recording.entries:
        rows = to_fragments(entry, width=_PLAIN_WIDTH, theme=theme)
        lines += ["", *("".join(text for _, text in row).rstrip() for row in rows)][not flow.gap_before(entry) :]
    return [*lines, "", _END]


async def _play(recording: Recording) -> int:
    return await _Player(recording).play()


class _Player:
    """Plays a recording in the terminal, at the width that it has at each moment."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._flow = Flow()
        self._theme = find_theme(AUTO, os.environ)
        self._modes = TerminalModes(_write, self._use_background)
        self._hurry = asyncio.Event()
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def play(self) -> int:
        """Until the end of the recording or until the user has seen enough; the exit status."""
        loop = asyncio.get_running_loop()
        for number, status in _STATUS.items():
            loop.add_signal_handler(number, self._end, status)
        with self._keys_read():
            _write(_HIDE_CURSOR)
            playing = asyncio.create_task(self._play_all())
            try:
                await asyncio.wait([playing, self._ended], return_when=asyncio.FIRST_COMPLETED)
            finally:
                playing.cancel()
                self._modes.switch_off()
                give_back(sys.stdout.fileno(), title=False, awaits_answer=self._modes.awaits_answer)
        if self._ended.done():
            _write("\r\x1b[K\n")
            return self._ended.result()
        await playing
        return 0

    @contextlib.contextmanager
    def _keys_read(self) -> Generator[None]:
        """Read the keys of the terminal while this is entered; without a terminal to read there are only signals."""
        if not sys.stdin.isatty():
            yield
            return
        register_keys()
        keyboard = terminal_input(sys.stdin, self._modes.take_report)
        with keyboard.raw_mode(), keyboard.attach(lambda: self._read_keys(keyboard)):
            self._modes.switch_on()
            yield

    def _read_keys(self, keyboard: Input) -> None:
        self._take_keys(keyboard.read_keys())
        # An Escape may be the beginning of a sequence that has not come whole.
        seconds = escape_seconds(os.environ)
        asyncio.get_running_loop().call_later(seconds, lambda: self._take_keys(keyboard.flush_keys()))
        if keyboard.closed:
            self._end(_STATUS[signal.SIGHUP])

    def _take_keys(self, pressed: Sequence[KeyPress]) -> None:
        for press in pressed:
            if press.key == Keys.ControlC:
                self._end(_STATUS[signal.SIGINT])
            elif press.key in (Keys.Escape, Keys.ControlD, "q"):
                self._end(0)
            elif press.key in (" ", Keys.ControlM, Keys.ControlJ):
                self._hurry.set()

    def _end(self, status: int) -> None:
        if not self._ended.done():
            self._ended.set_result(status)

    def _use_background(self, background: Background) -> None:
        self._theme = find_theme(AUTO, os.environ, background)

    async def _play_all(self) -> None:
        if sys.stdin.isatty():
            await self._modes.background_known()
        self._print(self._painted(_TITLE, _KEYS), "")
        self._print(*banner_lines(self._recording.banner, width=_width(), theme=self._theme), "")
        await self._type_prompt()
        for number, entry in enumerate(self._recording.entries):
            if number:
                await self._work()
            for line in self._flow.lines(entry, width=_width(), theme=self._theme):
                self._print(line)
                await self._pause(_LINE_SECONDS)
        self._print("", self._painted(_END))

    async def _type_prompt(self) -> None:
        """Type the message into an input of one row, where the message itself is then printed."""
        prompt = self._recording.prompt
        for end in range(len(prompt) + 1):
            shown = prompt[:end][-max(1, _width() - 3) :]
            _write(f"\r\x1b[K{self._theme.paint('›', 'prompt.mark')} {shown}")
            await self._pause(_KEY_SECONDS)
        _write("\r\x1b[K")

    async def _work(self) -> None:
        """The row of a turn that is under way, for as long as the model and its tools take."""
        _write("\n")
        for number in range(_WORK_FRAMES):
            frame = self._theme.paint(FRAMES[number % len(FRAMES)], "accent")
            _write(f"\r{frame} {self._theme.paint('Working'[: _width() - 3], 'strong')}\x1b[K")
            await self._pause(FRAME_SECONDS)
        _write("\r\x1b[K\x1b[A")

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the user wants to see the rest at once."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), seconds)

    def _painted(self, *sentences: str) -> str:
        """Sentences that are not part of the recording."""
        width = _width()
        return "\n".join(self._theme.paint(line, "dim") for line in wrap(" ".join(sentences), max(8, width)))

    def _print(self, *lines: str) -> None:
        _write("".join(f"{line}\n" for line in lines))


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _width() -> int:
    return os.get_terminal_size(sys.stdout.fileno()).columns or _PLAIN_WIDTH
