"""Rows of panels: cut, filled and wrapped by cells, whatever the text is."""

from __future__ import annotations

import random

import pytest

from codex_py.ui.repl.panels.forms import TextLine
from codex_py.ui.repl.panels.frame import cells, fitted, in_sight, keys_row, padded, part, title_row, wrapped

WILD = ["a", " ", "日", "é", "\u0301", "👩\u200d💻", "\x1b[31m", "\n", "\t", "\u202e", "́", "-", "word"]


@pytest.mark.parametrize(
    ("text", "width", "rows"),
    [
        ("", 20, ["  "]),
        ("one two three", 9, ["  one two", "  three"]),
        ("one two three", 10, ["  one two", "  three"]),
        ("abcdefgh", 6, ["  abcd", "  efgh"]),
        ("日本語日本語", 8, ["  日本語", "  日本語"]),
        ("a\nb", 20, ["  a", "  b"]),
        ("    indented and long", 14, ["      indented", "  and long"]),
        ("x", 1, ["  x"]),
        ("bell\x07", 20, ["  bell␇"]),
        ("• one two three", 12, ["  • one two", "    three"]),
    ],
)
def test_a_text_is_wrapped_between_words(text: str, width: int, rows: list[str]) -> None:
    assert ["".join(piece for _, piece in row) for row in wrapped(TextLine(text), width)] == rows


@pytest.mark.parametrize("seed", range(30))
def test_no_row_is_wider_than_asked_and_no_word_is_lost(seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(chance.choices(WILD, k=chance.randrange(200)))
    width = chance.randrange(6, 40)
    rows = ["".join(piece for _, piece in row[1:]) for row in wrapped(TextLine(text), width)]
    assert all(cells(row) <= width - 2 for row in rows)
    kept = "".join("".join(row.split()) for row in rows)
    whole = "".join("".join(piece for _, piece in row[1:]) for row in wrapped(TextLine(text), 100_000))
    assert kept == "".join(whole.split())
    assert sum(cells(piece) for _, piece in fitted([part(text), part(text, "dim")], width)) <= width
    assert cells(padded(text, width)) == width


def test_of_a_very_long_text_only_so_much_is_wrapped() -> None:
    rows = wrapped(TextLine("日" * 300_000), 42)
    assert len(rows) == 5_001
    assert rows[-1][-1] == ("", "(200,000 more characters are not shown)")


@pytest.mark.parametrize(
    ("count", "chosen", "height", "seen"),
    [
        (3, 0, 10, range(3)),
        (10, 0, 4, range(4)),
        (10, 9, 4, range(6, 10)),
        (10, 5, 4, range(3, 7)),
        (5, 2, 0, range(2, 3)),
    ],
)
def test_the_chosen_entry_is_in_sight(count: int, chosen: int, height: int, seen: range) -> None:
    assert in_sight(count, chosen, height) == seen


def test_the_edges_keep_to_the_width() -> None:
    for width in range(40):
        assert sum(cells(text) for _, text in title_row("A title 日本", width)) <= max(width, 0)
        assert sum(cells(text) for _, text in keys_row((("Enter", "choose"), ("Esc", "close")), width)) <= max(width, 0)
