"""The input of a terminal: the modes that a session switches on, the terminal's reports about itself, and the keys.

Modes are switched on after echo is off and switched off before it is on again, so that a report never shows. A
connection may be slow: a sequence comes in pieces, and a reply to another program's query arrives here and is dropped.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TextIO, TypeAlias

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from codex_py.ui.repl.terminal import ASK_COLORS

FOCUS_IN: Final = Keys.F23
FOCUS_OUT: Final = Keys.F24

_ESCAPE: Final = "\x1b"
# The window's focus. No key of anybody's is F23.
_SEQUENCES: Final[Mapping[str, Keys | tuple[Keys, ...]]] = {
    "\x1b[I": FOCUS_IN,
    "\x1b[O": FOCUS_OUT,
}
# A key by its code and modifiers: in kitty's protocol, and as xterm's `modifyOtherKeys` has it.
_CODED: Final = re.compile(
    r"\x1b\[(\d{1,6})[\d:]{0,32}(?:;(\d{1,3})(?::(\d))?[\d:;]{0,64})?u|\x1b\[27;(\d{1,3});(\d{1,6})~"
)
_SHIFT, _ALT, _CTRL = 1, 2, 4
_RELEASED: Final = "3"
# What a keypad sends there, in the order of the codes.
_KEYPAD_START: Final = 57399
_KEYPAD: Final[Sequence[str | Keys]] = (
    *"0123456789./*-+",
    *(Keys.ControlM, "=", ",", Keys.Left, Keys.Right, Keys.Up, Keys.Down, Keys.PageUp, Keys.PageDown),
    *(Keys.Home, Keys.End, Keys.Insert, Keys.Delete),
)
# What the terminal reports of itself, such as its attributes and its colour scheme.
_REPORT: Final = re.compile(r"\x1b\[\?[\d;]*[cnu]")
_PASTE_END: Final = "\x1b[201~"
# How long the rest of a sequence may take that has begun.
_REST_SECONDS: Final = 1.0
# What comes is cut into these, the first that fits. The strings are answers of terminals (colours, names).
_TOKEN: Final = re.compile(
    r"""
    (?P<text>[^\x1b]+)
    |(?P<key>\x1b(?:\[\[[A-E]|\[[0-?]{0,64}[ -/]{0,8}[@-Z\\-~]|O[ABCDFHMPQRS]))
    |(?P<string>\x1b(?:\][0-9]|P[0-9$+>!=])[^\x07\x1b]{0,4096}(?:\x07|\x1b\\))
    |(?P<begun>\x1b(?:(?:\][0-9]|P[0-9$+>!=])[^\x07\x1b]{0,4096}\x1b?
        |\[\[?|\[[0-?]{1,64}[ -/]{0,8}|[]OP]|)\Z)
    |(?P<broken>\x1b\[[0-?]{0,64}(?=[\x00-\x1f]))
    |(?P<escape>\x1b)
    """,
    re.VERBOSE,
)
# Behind an Escape that came alone: a whole sequence without its beginning, or all of it that there is.
_DELAYED: Final = re.compile(r"(?:\[\[[A-E]|\[[0-?]{0,64}[ -/]{0,8}[@-Z\\-~]|O[ABCDFHMPQRS])(?=\x1b|\Z)|\[200~")
_DELAYED_PREFIX: Final = re.compile(r"(?:\[\[?|\[[0-?]{0,64}|O)\Z")
# So much behind an Escape was typed after it: Alt with a key sends one character.
_TYPED_AFTER: Final = re.compile(r"[^\x00-\x1f\x7f]{2}")


def register_keys() -> None:
    """Teach prompt_toolkit the key sequences it does not know, or reads as another key."""
    ANSI_SEQUENCES.update(_SEQUENCES)


class KeyParser(Vt100Parser):
    """Tells Escape from Alt and from the sequences that begin with one, drops input that is not a key, and takes a
    paste piece by piece.

    prompt_toolkit's own reads Escape and the next letter as Alt with that letter, however late it comes, types
    unknown sequences, and scans all of a paste again for each piece of it.
    """

    def __init__(self, take_key: Callable[[KeyPress], None], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(take_key)
        # Called with what the terminal reports of itself.
        self.on_report: Callable[[str], None] = lambda _: None
        self._clock = clock
        self._pieces: list[str] = []
        # A sequence that has begun, and when; an Escape that was taken for a key, and when.
        self._begun, self._begun_at = "", -math.inf
        self._escape_at = -math.inf

    def feed(self, data: str) -> None:
        if self._in_bracketed_paste:
            self._feed_paste(data)
        elif data:
            self._feed_keys(self._joined(data))

    def flush(self) -> None:
        """Nothing has come for a while: what may be a key by itself is one."""
        begun = self._begun
        if begun == _ESCAPE:
            self._begun = ""
            self._press_escape()
            self._escape_at = self._clock()
        elif len(begun) == 2 and begun[1] != "[":
            self._begun = ""
            self._press_alt(begun[1])

    def _joined(self, data: str) -> str:
        """The new input, preceded by the incomplete sequence that it continues."""
        begun, self._begun = self._begun, ""
        escape_at, self._escape_at = self._escape_at, -math.inf
        if begun == _ESCAPE:
            if _DELAYED.match(data) or _DELAYED_PREFIX.match(data) or data[0] in "]P":
                return begun + data
            self._press_escape()
            return data
        if begun:
            return begun + data if self._clock() - self._begun_at < _REST_SECONDS else data
        delayed = _DELAYED.match(data) if self._clock() - escape_at < _REST_SECONDS else None
        return _ESCAPE + data if delayed and _ESCAPE + delayed[0] in ANSI_SEQUENCES else data

    def _feed_keys(self, data: str) -> None:
        at = 0
        while at < len(data):
            token = _TOKEN.match(data, at)
            assert token is not None
            at = token.end()
            match token.lastgroup:
                case "text":
                    super().feed(token[0])
                case "key":
                    at = self._press_known(token)
                case "begun":
                    self._begun, self._begun_at = token[0], self._clock()
                case "string":
                    self.on_report(token[0])
                case "escape":
                    at = self._press_escape_or_alt(data, at)
                case _:
                    pass
            if self._in_bracketed_paste:
                self._feed_paste(data[at:])
                return

    def _press_known(self, token: re.Match[str]) -> int:
        """Press the key of a sequence; an unknown one types nothing. Returns where the sequence ends."""
        sequence = token[0]
        known = ANSI_SEQUENCES.get(sequence)
        if coded := _CODED.fullmatch(sequence):
            self._press_coded(coded)
        elif known is not None:
            self._call_handler(known, sequence)
        elif _REPORT.fullmatch(sequence):
            self.on_report(sequence)
        elif len(sequence) == 3:
            # No terminal says it: an Escape, a bracket and a letter were typed.
            return self._press_escape_or_alt(token.string, token.start() + 1)
        return token.end()

    def _press_coded(self, coded: re.Match[str]) -> None:
        """Press a key that came as a number; a released or unknown key is ignored."""
        code, modifiers = int(coded[1] or coded[5]), int(coded[2] or coded[4] or 1) - 1
        key = _key_of(code, modifiers)
        if key is None or coded[3] == _RELEASED:
            return
        is_enter = key is Keys.ControlM
        if is_enter and modifiers & _CTRL:
            key = Keys.ControlJ
        if key is Keys.Escape:
            self._press_escape()
        elif modifiers & _ALT or (is_enter and modifiers & _SHIFT):
            self._call_handler((Keys.Escape, key) if isinstance(key, Keys) else Keys.Escape, coded[0])
            if not isinstance(key, Keys):
                super().feed(key)
        elif isinstance(key, Keys):
            self._call_handler(key, coded[0])
        else:
            super().feed(key)

    def _press_escape_or_alt(self, data: str, at: int) -> int:
        """Press the Escape before this position, or Alt with the next character; return the position to go on from."""
        if _TYPED_AFTER.match(data, at) or data[at : at + 1] == _ESCAPE:
            self._press_escape()
            return at
        self._press_alt(data[at])
        return at + 1

    def _press_alt(self, char: str) -> None:
        self._call_handler(Keys.Escape, _ESCAPE)
        super().feed(char)

    def _press_escape(self) -> None:
        """Press it, and a key that does nothing, so that the next one is not taken together with it."""
        self._call_handler(Keys.Escape, _ESCAPE)
        self.feed_key_callback(KeyPress(Keys.Ignore, ""))

    def _feed_paste(self, data: str) -> None:
        # The mark of the end may come in two pieces.
        piece = (self._pieces.pop() if self._pieces else "") + data
        end = piece.find(_PASTE_END)
        if end < 0:
            overlap = len(_PASTE_END) - 1
            self._pieces += [piece[:-overlap], piece[-overlap:]]
            return
        pasted = "".join([*self._pieces, piece[:end]])
        self._pieces.clear()
        self._in_bracketed_paste = False
        self.feed_key_callback(KeyPress(Keys.BracketedPaste, pasted))
        self.feed(piece[end + len(_PASTE_END) :])


def _key_of(code: int, modifiers: int) -> Keys | str | None:
    """The key of a code, a letter as itself; None where there is none."""
    special = {9: Keys.ControlI, 13: Keys.ControlM, 27: Keys.Escape, 127: Keys.ControlH}.get(code)
    if special is not None:
        return Keys.BackTab if special is Keys.ControlI and modifiers & _SHIFT else special
    if 0 <= code - _KEYPAD_START < len(_KEYPAD):
        return _KEYPAD[code - _KEYPAD_START]
    char = chr(code) if code < 0x110000 else ""
    if not char.isprintable() or 0xE000 <= code < 0xF900:
        return None
    if modifiers & _CTRL:
        return _CONTROLS.get(char.lower())
    return char.upper() if modifiers & _SHIFT else char


# A letter with Ctrl is the character with the same five bits.
_CONTROLS: Final[Mapping[str, Keys]] = {
    chr(code + 96 if 1 <= code <= 26 else code + 64): key
    for code in range(32)
    if isinstance(key := ANSI_SEQUENCES.get(chr(code)), Keys)
} | {" ": Keys.ControlAt}


def terminal_input(stdin: TextIO, on_report: Callable[[str], None]) -> Vt100Input:
    """The keys of a terminal; `on_report` gets what it reports of itself."""
    made = Vt100Input(stdin)
    parser = KeyParser(made.vt100_parser.feed_key_callback)
    parser.on_report = on_report
    made.vt100_parser = parser
    return made


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

    def switch_on(self) -> None:
        """Switch everything on, and ask for the colours, which may have changed."""
        if not self._is_on:
            self._is_on = True
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
