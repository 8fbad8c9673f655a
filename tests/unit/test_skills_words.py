"""Lines looked up by how they begin: the same as going through all of them."""

from __future__ import annotations

import random
from pathlib import Path

from codex_py.skills import words as word_lists
from codex_py.skills.stems import fold
from codex_py.skills.words import lines_with


def test_the_lines_that_begin_so_are_found_wherever_they_stand() -> None:
    words = random.Random(7)
    for count in (0, 1, 2, 3, 50):
        names = {"".join(words.choices("ab \t~é", k=words.randrange(1, 6))) for _ in range(count)}
        lines = sorted(name.encode() for name in names)
        text = b"".join(line + b"\n" for line in lines)
        for prefix in (b"a", b"b ", b"\t", b"ab", b"~", b"zz", b"\xc3", *lines):
            found = [line[len(prefix) :] for line in lines if line.startswith(prefix)]
            assert list(lines_with(text, prefix)) == found
            assert list(lines_with(b"what is before\n" + text, prefix, 15)) == found


def test_a_text_that_is_cut_off_or_not_in_order_ends_all_the_same() -> None:
    for text in (b"", b"\n", b"\n\n\n", b"no end", b"b 1\na 2\nno end", b"a" * 5000):
        assert len(list(lines_with(text, b"a "))) <= 1


def test_words_without_meaning_are_stored_as_they_are_compared() -> None:
    text = Path(word_lists.__file__).with_name("words").joinpath("stop.txt").read_text("utf-8")
    assert text == fold(text)
