"""Where typed text wraps."""

import pytest

from codex_py.ui.repl.input import wrap_line


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("aaa bbb", ["aaa", "bbb"]),
        ("aaaa bbbb c", ["aaaa", "bbbb", "c"]),
        ("aa   bb", ["aa", "bb"]),
        ("a bb ccc dddd", ["a bb", "ccc", "dddd"]),
        ("abcdefghij kl", ["abcd", "efgh", "ij", "kl"]),
        ("a abcdefg", ["a ab", "cdef", "g"]),
        ("    ab", ["", "ab"]),
        ("日本語 ab", ["日本", "語", "ab"]),
        ("a日本", ["a日", "本"]),
        ("", [""]),
    ],
)
def test_a_line_wraps_at_words(text: str, rows: list[str]) -> None:
    assert [row.rstrip() for row in drawn(text, 4)] == rows


def drawn(text: str, width: int) -> list[str]:
    """The rows of a window that cuts a line where it is full."""
    padding, hidden = wrap_line(text, width)
    rows = [""]
    used = 0
    for index, char in enumerate(text):
        cells = " " * padding.get(index, 0) + ("" if index in hidden else char)
        for cell in cells:
            size = 2 if ord(cell) > 0x1100 else 1
            if used + size > width:
                rows.append("")
                used = 0
            rows[-1] += cell
            used += size
    return rows
