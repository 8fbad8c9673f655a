"""Stopping a model that repeats itself without end, while its answer is still arriving."""

from __future__ import annotations

from typing import Final

from codex_py.errors import ModelError
from codex_py.model.client import ArgumentsDelta, ResponseEvent, StreamReasoningDelta, StreamTextDelta
from codex_py.model.error_bodies import on_one_line

REPETITION: Final = "repetition"
# A cycle is looked for after so many new characters; the work for each character does not grow with the text.
_STEP: Final = 1024
_MAX_CYCLE: Final = 2048
# A cycle of words must fill so many characters and so many times its own length. Arguments may hold a file, and some
# files repeat a line or a paragraph on purpose.
_MIN_REPEATS: Final = 10
PROSE_SPAN: Final = 8_000
ARGUMENTS_SPAN: Final = 24_000
# Any other cycle must fill this much: rows of zeros, rulers, padding and empty table cells are legitimate.
_PLAIN_SPAN: Final = 48_000
# More different letters than `true, false` has.
_MIN_LETTERS: Final = 9
_SHOWN: Final = 60


class RepetitionDetector:
    """Reads a text piece by piece. `words_span` is how many characters a cycle of words must fill."""

    def __init__(self, words_span: int) -> None:
        self._words_span = words_span
        self._tail = ""
        self._new: list[str] = []
        self._new_length = 0

    def feed(self, text: str) -> str | None:
        """Take the next piece; return the cycle once the text ends with many repetitions of it in a row."""
        self._new.append(text[-_PLAIN_SPAN:])
        self._new_length += len(text)
        if self._new_length < _STEP:
            return None
        self._tail = "".join((self._tail, *self._new))[-_PLAIN_SPAN:]
        self._new.clear()
        self._new_length = 0
        return _find_cycle(self._tail, self._words_span)


class RepetitionWatch:
    """Reads the events of one answer."""

    def __init__(self) -> None:
        self._text = RepetitionDetector(PROSE_SPAN)
        self._reasoning = RepetitionDetector(PROSE_SPAN)
        self._arguments = RepetitionDetector(ARGUMENTS_SPAN)

    def check(self, event: ResponseEvent) -> None:
        """Raise `ModelError` when the answer only repeats itself."""
        match event:
            case StreamTextDelta(text):
                where, cycle = "its answer", self._text.feed(text)
            case StreamReasoningDelta(text):
                where, cycle = "its reasoning", self._reasoning.feed(text)
            case ArgumentsDelta(text):
                where, cycle = "a tool call", self._arguments.feed(text)
            case _:
                return
        if cycle is not None:
            shown = on_one_line(cycle, _SHOWN)
            repeated = f"`{shown}`" if shown else "blank text"
            raise ModelError(
                f"the model was stopped because it repeats itself without end: {repeated} in {where}",
                retryable=False,
                code=REPETITION,
            )


def _find_cycle(text: str, words_span: int) -> str | None:
    if len(text) < words_span:
        return None
    # Backwards, because only a search from the front is linear whatever the text is.
    reverse = text[::-1]
    length = reverse.find(reverse[:_MAX_CYCLE], 1, 2 * _MAX_CYCLE)
    if length < 0:
        return None
    cycle = text[-length:]
    span = max(words_span, _MIN_REPEATS * length) if _has_words(cycle) else _PLAIN_SPAN
    repeats = len(text) >= span and reverse[: span - length] == reverse[length:span]
    return cycle if repeats else None


def _has_words(cycle: str) -> bool:
    letters = {char for char in cycle.casefold() if char.isalpha()}
    # An ideograph is a word or half of one.
    return sum(1 if char.isascii() else 2 for char in letters) >= _MIN_LETTERS
