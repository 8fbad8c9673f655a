"""From what a terminal sends to keys, however it is cut up on its way, and without what is no key.

A connection may be slow: a sequence comes in pieces, and an answer to what another program asked comes here.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Final

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

FOCUS_IN: Final = Keys.F23
FOCUS_OUT: Final = Keys.F24

_ESCAPE: Final = "\x1b"
# Enter with Shift or Ctrl, as the terminals send it that can; and the window's focus. No key of anybody's is F23.
_SEQUENCES: Final[Mapping[str, Keys | tuple[Keys, ...]]] = {
    "\x1b[13;2u": (Keys.Escape, Keys.ControlM),
    "\x1b[27;2;13~": (Keys.Escape, Keys.ControlM),
    "\x1b[13;5u": Keys.ControlJ,
    "\x1b[27;5;13~": Keys.ControlJ,
    "\x1b[I": FOCUS_IN,
    "\x1b[O": FOCUS_OUT,
}
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
    """Tells Escape from Alt and from the sequences that begin with one, passes over what is no key, and takes a paste
    in piece by piece.

    prompt_toolkit's own takes Escape and the next letter for Alt with that letter, however they came, types what it
    does not know, and goes over all of a paste again for each piece of it.
    """

    def __init__(self, take_key: Callable[[KeyPress], None], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(take_key)
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
        """What has come, with the beginning that it goes on from."""
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
                case "escape":
                    at = self._press_escape_or_alt(data, at)
                case _:
                    pass
            if self._in_bracketed_paste:
                self._feed_paste(data[at:])
                return

    def _press_known(self, token: re.Match[str]) -> int:
        """Press the key of a sequence; of one that nobody knows nothing is typed. Where it ends."""
        sequence = token[0]
        known = ANSI_SEQUENCES.get(sequence)
        if known is not None:
            self._call_handler(known, sequence)
        elif len(sequence) == 3:
            # No terminal says it: an Escape, a bracket and a letter were typed.
            return self._press_escape_or_alt(token.string, token.start() + 1)
        return token.end()

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
