"""Where texts of Chinese and Japanese are broken into lines, and that others are broken as ever."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from rich.cells import cell_len
from rich.text import Text

from codex_py.render.layout import WrappedProse, line_breaks
from codex_py.render.markdown import render_markdown
from tests.support.drawing import rows


def broken(text: str, width: int) -> list[str]:
    places = [0, *line_breaks(text, width), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("Wide: 这是一个很长的段落", 12, ["Wide: 这是一", "个很长的段落"]),
        ("结束了。 Emoji", 8, ["结束了。 ", "Emoji"]),
        ("一二三四。五", 8, ["一二三", "四。五"]),
        ("他说「好的」吗", 7, ["他说", "「好", "的」吗"]),
        ("使用foo命令", 7, ["使用foo", "命令"]),
        ("がんばれチェック", 10, ["がんばれ", "チェック"]),
        ("日本 abcdefghijkl x", 6, ["日本 ", "abcdef", "ghijkl ", "x"]),
        ("日", 1, ["日"]),
        ("か\u3099か\u3099", 2, ["か\u3099", "か\u3099"]),
    ],
)
def test_a_line_is_broken_where_it_may_be(text: str, width: int, lines: list[str]) -> None:
    assert broken(text, width) == lines


def test_a_paragraph_fills_its_lines() -> None:
    entry = render_markdown("Wide: **这是**一个很长的中文段落，用来`code`测试。 End")
    assert entry is not None
    assert rows(entry, 22) == ["● Wide: 这是一个很长的", "  中文段落，用来code测", "  试。 End"]


@pytest.mark.parametrize("seed", range(20))
def test_no_line_is_too_wide_and_nothing_is_lost(seed: int) -> None:
    chance = random.Random(seed)
    text = "".join(
        chance.choices(["a", " ", "日", "。", "「", "é", "word ", "👩", "か\u3099"], k=chance.randrange(150))
    )
    width = chance.randrange(2, 30)
    lines = broken(text, width)
    assert "".join(lines) == text
    assert all(cell_len(line.rstrip()) <= width for line in lines)


def test_what_is_not_of_these_scripts_is_wrapped_as_ever() -> None:
    text = "plain words é and https://example.com/a/long/path 👩 한국어 문장은 띄어 쓴다 " * 3
    assert rows(WrappedProse(text), 20) == rows(Text(text), 20)
