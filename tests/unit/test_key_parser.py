"""From what a terminal sends to keys, whole or in pieces; the clock is the test's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import pytest
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from codex_py.ui.repl.terminal_input import FOCUS_IN, FOCUS_OUT, KeyParser, register_keys

_TEXT: Final = "a\x1b[20~b\rc" * 3
_LONG: Final = 5000
# What terminals say unasked, or in answer to a program that has ended since.
_ANSWERS: Final = (
    "\x1b[?62;22c",
    "\x1b[>0;276;0c",
    "\x1b[24;80R",
    "\x1b[?2026;2$y",
    "\x1b[?1u",
    "\x1b[0n",
    "\x1b[4;600;800t",
    "\x1b[<0;10;10M",
    "\x1b]11;rgb:ffff/ffff/ffff\x1b\\",
    "\x1b]11;rgb:1e1e/1e1e/1e1e\a",
    "\x1bP1+r524742=38\x1b\\",
    "\x1bP>|term 1.2\x1b\\",
)


class Typed:
    """A parser, the keys that came of it, and a clock."""

    def __init__(self) -> None:
        register_keys()
        self.now = 0.0
        self._keys: list[KeyPress] = []
        self._parser = KeyParser(self._keys.append, lambda: self.now)

    def read(self, *pieces: str) -> Typed:
        """Pieces that come right after each other."""
        for piece in pieces:
            self._parser.feed(piece)
        return self

    def wait(self, seconds: float) -> Typed:
        """Nothing comes for so long."""
        self._parser.flush()
        self.now += seconds
        return self

    @property
    def keys(self) -> list[str]:
        """What was pressed; what keeps an Escape to itself is no key of anybody's."""
        return [key.key for key in self._keys if key.key != Keys.Ignore]

    @property
    def is_escape_alone(self) -> bool:
        """Whether an Escape was pressed, and not Alt with a key."""
        pressed = [key.key for key in self._keys]
        return (Keys.Escape, Keys.Ignore) in pairwise(pressed)


def pieces_of(text: str, size: int) -> Sequence[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@pytest.mark.parametrize("size", [1, 2, 5, 7, 1000])
def test_a_paste_is_one_key_however_it_comes(size: int) -> None:
    keys: list[KeyPress] = []
    parser = KeyParser(keys.append)

    for piece in pieces_of(f"x\x1b[200~{_TEXT}\x1b[201~y\x1b[200~\x1b[201~z", size):
        parser.feed(piece)

    assert [(key.key, key.data) for key in keys] == [
        ("x", "x"),
        (Keys.BracketedPaste, _TEXT),
        ("y", "y"),
        (Keys.BracketedPaste, ""),
        ("z", "z"),
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_sequences_are_keys_however_they_come(size: int) -> None:
    sent = "a\x1b[D\x1b[1;5C\x1bOP\x1b[[A\x1b[I\x1b[O\x1b[Z"

    typed = Typed().read(*pieces_of(sent, size))

    wanted = [Keys.Left, Keys.ControlRight, Keys.F1, Keys.F1, FOCUS_IN, FOCUS_OUT, Keys.BackTab]
    assert typed.keys == ["a", *wanted]


@pytest.mark.parametrize("answer", _ANSWERS)
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_what_a_terminal_answers_is_not_typed(answer: str, size: int) -> None:
    typed = Typed().read(*pieces_of(f"a{answer}b{answer}", size)).wait(5).read("c")

    assert typed.keys == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("pieces", "keys"),
    [
        (["\x1b", "[D"], [Keys.Escape, Keys.Left]),
        (["\x1b", "[200~one\rtwo\x1b[201~"], [Keys.Escape, Keys.BracketedPaste]),
        (["\x1b[", "D"], [Keys.Left]),
        (["\x1b[20", "0~one\rtwo\x1b[201~"], [Keys.BracketedPaste]),
        (["\x1b]11;rgb:ff", "ff/0/0\x1b", "\\x"], ["x"]),
    ],
)
def test_the_rest_of_a_sequence_may_be_late(pieces: Sequence[str], keys: Sequence[str]) -> None:
    typed = Typed()
    for piece in pieces:
        typed.read(piece).wait(0.3)

    assert typed.keys == keys


def test_a_rest_that_never_comes_keeps_nothing_back() -> None:
    typed = Typed().read("\x1b[1;").wait(2).read("5").read("\x1b]11;rgb").wait(2).read("D")

    assert typed.keys == ["5", "D"]


def test_a_sequence_that_is_broken_off_is_not_typed() -> None:
    assert Typed().read("\x1b[1;\x1b[A\x1b[2\rb").keys == [Keys.Up, Keys.ControlM, "b"]


@pytest.mark.parametrize("text", ["hello", "[link](x)", "[]", "Only", "OK", "]x", "Please"])
def test_an_escape_before_a_text_is_a_key_by_itself(text: str) -> None:
    at_once, soon, later = Typed().read(f"\x1b{text}"), Typed().read("\x1b", text), Typed().read("\x1b").wait(0.3)

    for typed in (at_once, soon, later.read(text)):
        assert typed.keys == [Keys.Escape, *text]
        assert typed.is_escape_alone


@pytest.mark.parametrize("key", ["b", "\r", "\x7f", ".", "]", "O", "_"])
def test_alt_sends_two_characters_at_once(key: str) -> None:
    typed = Typed().read(f"\x1b{key}").wait(1)

    wanted = {"\r": Keys.ControlM, "\x7f": Keys.ControlH}.get(key, key)
    assert typed.keys == [Keys.Escape, wanted]
    assert not typed.is_escape_alone


def test_escapes_in_a_row_are_as_many() -> None:
    assert Typed().read("\x1b\x1b").wait(1).read("\x1b", "\x1b[A").keys == [Keys.Escape] * 3 + [Keys.Up]


def test_a_long_answer_without_an_end_is_typed_rather_than_kept() -> None:
    typed = Typed().read("\x1b]11;")
    for _ in range(_LONG // 100):
        typed.read("x" * 100)

    assert typed.keys[-1:] == ["x"]
