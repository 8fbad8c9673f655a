"""The line of a key, in every way TOML lets one write it."""

from __future__ import annotations

import pytest

from codex_py.config.keys import KeyPath
from codex_py.config.layers import line_of

TEXT = '''\
# a comment with a = 1 and [a.header]
model = "a # b"   # trailing = comment
text = """
not_a_key = 1
[not.a.table]
\\""" still inside
"""
raw = \'\'\'
also = "not a key"\'\'\'
a.b . "c.d" = 1
inline = { x = 1, y = { "z w" = [1, 2] }, q.r = 5 }
list = [
    "one", # comment, with ] and [
    { deep = true },
    [
        1.5,
        2020-01-01 10:00:00,
    ],
]
'quoted key' = 1
"esc\\u0061ped" = 2

[table]
one = 1

[ table . "sub table" ]   # comment
two = "]"

[[array]]
name = "first"
[array.inner]
x = 1

[[array]]
name = "second"
[[array.nested]]
v = 1
[[array.nested]]
v = 2
[array.inner]
x = 2
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("model",), 2),
        (("text",), 3),
        (("raw",), 8),
        (("a",), 10),
        (("a", "b", "c.d"), 10),
        (("inline", "y", "z w", 1), 11),
        (("inline", "q", "r"), 11),
        (("list",), 12),
        (("list", 1, "deep"), 12),
        (("quoted key",), 20),
        (("escaped",), 21),
        (("table",), 23),
        (("table", "one"), 24),
        (("table", "sub table"), 26),
        (("table", "sub table", "two"), 27),
        (("array",), 29),
        (("array", 0), 29),
        (("array", 0, "name"), 30),
        (("array", 0, "inner", "x"), 32),
        (("array", 1), 34),
        (("array", 1, "name"), 35),
        (("array", 1, "nested", 0, "v"), 37),
        (("array", 1, "nested", 1, "v"), 39),
        (("array", 1, "inner", "x"), 41),
        (("table", "one", "nothing", "there"), 24),
        (("absent",), None),
        ((), None),
    ],
)
def test_the_line_of_a_key(path: KeyPath, line: int | None) -> None:
    assert line_of(TEXT, path) == line


@pytest.mark.parametrize(
    "text", ["", "=", "[", "[[", "]]]]", "a", '"', "'''", "a = {", "a = }", "[a]]", ",", "a = [,]", "\\", "]=}", "{=}"]
)
def test_what_is_no_toml_does_no_harm(text: str) -> None:
    line_of(text * 3, ("a", 0, "b"))
