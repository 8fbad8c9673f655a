from __future__ import annotations

import random

import pytest

from codex_py.text.frontmatter import parse_yaml
from codex_py.text.plain_yaml import Plain, read_plain_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "name: lint\ndescription: Checks, and (if asked) mends\n",
            {"name": "lint", "description": "Checks, and (if asked) mends"},
        ),
        ("a: 1.50\n\nb: http://x/y#z  \n", {"a": "1.50", "b": "http://x/y#z"}),
        ("m:\n  x: \"q: #\"\n  y: 'it'\nn: v\n", {"m": {"x": "q: #", "y": "it"}, "n": "v"}),
        ("a:\nb: null\n", {"a": None, "b": None}),
        ("a: true\n", {"a": "true"}),
    ],
)
def test_what_skills_are_written_in_is_read(text: str, value: object) -> None:
    assert read_plain_yaml(text) == value


def test_a_bare_word_is_told_from_a_quoted_one() -> None:
    read = read_plain_yaml("a: true\nb: 'true'\n")
    assert read is not None
    assert [type(one) for one in read.values()] == [Plain, str]


LEFT = r"""
text | - a | a: b: c | a: b #c | a: b: | # c\na: b | a: [x] | a: {x: y} | a: \x7c\n  x | a: >\n  x | a: &x y
a: *x | a: !t y | a: b\n  c | a: b\n  c: d | a: b\na: c | a:\n  b:\n    c: d
a:\n  b: c\n d: e | a: "x\\n" | a: 'it''s'
a: "x" y | a: b\tc | a:b | a: b\u2028c | ---\na: b | a: b\n... | a: %x | a: @x | a: `x` | ? a | null: x | a: \x07
a: - | a: - b
"""


@pytest.mark.parametrize(
    "text", ["", *(case.strip() for line in LEFT.strip().split("\n") for case in line.split(" | "))]
)
def test_anything_else_is_left_to_the_parser(text: str) -> None:
    assert read_plain_yaml(text.encode().decode("unicode_escape")) is None


def test_it_never_says_anything_else_than_the_parser() -> None:
    chance = random.Random(7)
    pieces = [
        "a",
        "b-c",
        "name",
        ":",
        ": ",
        " ",
        "  ",
        "\n",
        "\n  ",
        "#",
        " #",
        '"',
        "'",
        "[",
        "]",
        "-",
        "true",
        "null",
        "1",
        ",",
        "(",
        ".",
        "x y",
        "é",
    ]
    read = 0
    for _ in range(20_000):
        text = "".join(chance.choices(pieces, k=chance.randrange(1, 12)))
        if chance.random() < 0.5:
            text = f"k: {text}\n"
        mine = read_plain_yaml(text)
        if mine is None:
            continue
        read += 1
        # A comment is what the short way does not read.
        assert mine == parse_yaml(f"#\n{text}"), text
    assert read > 500
