"""The terminal session of another program, for `scripts/bench`: its terminal answers questions, as real ones do."""

from __future__ import annotations

from typing import Final, Self

from tests.support.terminal import Terminal

# What a terminal emulator says at once when it is asked; a program that gets no answer waits for one.
ANSWERS: Final = {
    b"\x1b[6n": "\x1b[1;1R",
    b"\x1b[c": "\x1b[?62;c",
    b"\x1b[?u": "\x1b[?0u",
    b"\x1b]10;?": "\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\",
    b"\x1b]11;?": "\x1b]11;rgb:1010/1010/1010\x1b\\",
}


class PeerTerminal(Terminal):
    """A running peer and its screen."""

    def wait_for_prompt(self) -> Self:
        return self.wait_for(lambda terminal: "› " in terminal.text and "loading" not in terminal.text)

    def _read(self, timeout: float) -> bool:
        known = len(self.raw)
        more = super()._read(timeout)
        for question, answer in ANSWERS.items():
            for _ in range(self.raw.count(question, known)):
                self.type(answer)
        return more
