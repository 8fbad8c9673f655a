from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest

from codex_py.render.entry import Flow, ScrollbackEntry, to_fragments, to_lines
from codex_py.render.markdown import MarkdownStream, render_markdown
from tests.support.drawing import DARK, rows
from tests.support.work import within

ESC = "\x1b"
ATOMS = [
    *("a", "word ", "*", "**", "_", "`", "```", "~~~", "~~", "\n", "\n\n", "  ", "    ", "\t", "- ", "1. ", "10) "),
    *("# ", "> ", "|", "|-|-|", "[", "](", "!", "<b>", "&#27;", "\\", "---", "===", "[ ] ", "python\n", "http://x.y"),
    *("你", "👩\u200d👧", "\u0301", "\u200b", "\x1b[2J", "\r", "\r\n", "\0", "\ud800", "مرحبا", "\u202e", "\x85"),
]


# A message with every kind of block.
EVERYTHING = (
    "# Title\nA **bold** and *slanted* `code` ~~gone~~.\nSecond line\n\n"
    "1. one\n2. two:\n   ```sh\n   ls\n\n   pwd\n   ```\n3. three\n   - nested\n     - deeper\n"
    "- [x] done\n- [ ] open\n\n"
    "```python\nprint('hi')\n\nx = 1\n```\n"
    "> quoted\n> > twice\n\n<b>html &lt;</b>\n\n[a]: http://b.c\n\n***\n\nend"
)
# What a message is made of that is hard to read; code goes on without an end.
HOSTILE = [
    *(
        "[",
        "![",
        "*a **b ",
        "> ",
        "`a``b",
        "<a ",
        "\n",
        "- ",
        "1. a\n",
        "# a\n",
        "&amp;",
        "\\",
        "\x1b[31m",
        "a\r",
        "[a](<b)",
    ),
    *("| a | b |\n|---|---|\n", "|a|\n", "  - a\n", "```python\nx = '''a", "```html\n<div><script>var a=1;</script>\n"),
    *(
        "```rust\n/*",
        "```yaml\na: ",
        "```json\n[",
        "```bash\n$((",
        "```js\n`${",
        "```perl\ns{{{",
        '```c\n"\n',
        "👩\u200d",
    ),
]


def hostile(unit: str, size: int) -> str:
    """A message of about `size` characters; of a unit with a fence only the last line is said again and again."""
    head, fence, rest = unit.partition("\n") if unit.startswith("```") else ("", "", unit)
    return head + fence + rest * (size // len(rest))


def draw_stream(pieces: Sequence[str], *, each: int = 1000) -> None:
    """Draw a message as it comes, what is open after every `each` pieces."""
    stream = MarkdownStream()
    for number, piece in enumerate(pieces):
        for block in stream.feed(piece):
            to_lines(block, width=80, theme=DARK)
        if number % each == 0 and (block := stream.open_block()) is not None:
            to_fragments(block, width=80, theme=DARK)
    for block in stream.finish():
        to_lines(block, width=80, theme=DARK)


def shown(source: str, width: int = 60) -> list[str]:
    entry = render_markdown(source)
    return [] if entry is None else rows(entry, width)


def streamed(pieces: list[str], width: int) -> list[str]:
    """The rows of all finished blocks; what is open is drawn after each piece, too."""
    stream, flow = MarkdownStream(), Flow()
    drawn: list[str] = []
    for piece in pieces:
        for block in stream.feed(piece):
            drawn += [*[""] * flow.gap_before(block), *rows(block, width)]
        if (block := stream.open_block()) is not None:
            rows(block, width)
    for block in stream.finish():
        drawn += [*[""] * flow.gap_before(block), *rows(block, width)]
    return drawn


def test_a_message_with_everything_in_it() -> None:
    assert shown(EVERYTHING, 40) == [
        "● Title",
        "",
        "  A bold and slanted code gone.",
        "  Second line",
        "",
        "  1. one",
        "  2. two:",
        "",
        "       ls",
        "",
        "       pwd",
        "  3. three",
        "     ◦ nested",
        "       ▪ deeper",
        "  ☑ done",
        "  ☐ open",
        "",
        "    print('hi')",
        "",
        "    x = 1",
        "",
        "  │ quoted",
        "  │",
        "  │ │ twice",
        "",
        "  <b>html <</b>",
        "",
        "  [a]: http://b.c",
        "",
        "  " + "─" * 38,
        "",
        "  end",
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[docs](https://a.b/c)", ["● docs (https://a.b/c)"]),
        ("[https://a.b](https://a.b)", ["● https://a.b"]),
        ("<https://a.b>", ["● https://a.b"]),
        ("<me@a.b>", ["● me@a.b"]),
        ("![logo](x.png)", ["● [image] logo (x.png)"]),
        ("[safe.example](https://evil.example)", ["● safe.example (https://evil.example)"]),
    ],
)
def test_a_link_shows_where_it_leads(source: str, expected: list[str]) -> None:
    assert shown(source) == expected


def test_a_table_is_narrowed_and_then_stacked() -> None:
    source = "| Name | Number | What it is |\n|:--|--:|:-:|\n| a | 1 | a long text about it |\n| `b` | 22 | short |\n"
    assert shown(source) == [
        "● Name  Number       What it is",
        "  ────  ──────  ────────────────────",
        "  a          1  a long text about it",
        "  b         22         short",
    ]
    assert shown(source, 30) == [
        "● Name  Number    What it is",
        "  ────  ──────  ──────────────",
        "  a          1   a long text",
        "                   about it",
        "",
        "  b         22      short",
    ]
    assert shown(source, 20) == [
        "● Name",
        "    a",
        "  Number",
        "    1",
        "  What it is",
        "    a long text",
        "    about it",
        "",
        "  Name",
        "    b",
        "  Number",
        "    22",
        "  What it is",
        "    short",
    ]


def test_wide_characters_are_counted_by_their_cells() -> None:
    assert shown("你好世界你好世界", 12) == ["● 你好世界你", "  好世界"]
    assert shown("| 名 | b |\n|-|-|\n| 你好 | c |\n") == ["● 名    b", "  ────  ─", "  你好  c"]


@pytest.mark.parametrize("hidden", [f"{ESC}[31m", f"{ESC}]52;c;x\x07", "\u202e", "\u200b", "&#27;", "\x9b2J"])
@pytest.mark.parametrize("form", ["{}", "`{}`", "```\n{}\n```", "| {} |\n|--|\n", "[{}](x)", "[x]({})", "# {}", "- {}"])
def test_nothing_reaches_the_terminal_as_it_is(hidden: str, form: str) -> None:
    entry = render_markdown(form.format(hidden))
    lines = to_lines(entry, width=60, theme=DARK) if entry is not None else []
    text = "".join(rows(entry)) if entry is not None else ""
    assert not set("\u202e\u200b\x07\x9b") & set("".join(lines))
    assert ESC not in text


def test_a_stream_gives_out_each_block_once_and_draws_only_the_open_one() -> None:
    stream = MarkdownStream()

    assert stream.feed("First **bo") == []
    opened = stream.open_block()
    assert opened is not None and rows(opened) == ["● First bo"]
    assert stream.open_block() is opened
    assert [rows(block) for block in stream.feed("ld** text\n\nSecond")] == [["● First bold text"]]
    opened = stream.open_block()
    assert opened is not None and rows(opened) == ["  Second"] and opened.spacing == "apart"
    assert [rows(block) for block in stream.finish()] == [["  Second"]]
    assert stream.open_block() is None


def test_the_entries_of_a_list_come_one_by_one() -> None:
    stream = MarkdownStream()
    blocks = [*stream.feed("Text:\n- a\n- b\n\n- c\n"), *stream.finish()]
    assert [(*rows(block), block.spacing) for block in blocks] == [
        ("● Text:", "apart"),
        ("  • a", "apart"),
        ("  • b", "joined"),
        ("  • c", "apart"),
    ]


def test_long_code_comes_in_pieces_with_the_colours_of_the_whole() -> None:
    code = "".join(f"def f{number}():\n    return 'x' # {number}\n" for number in range(40))
    stream = MarkdownStream()
    pieces = [to_lines(block, width=60, theme=DARK) for block in stream.feed(f"```python\n{code}```\n")]
    whole = [line for piece in pieces for line in piece]

    assert len(pieces) > 3
    assert max(map(len, pieces)) < 40
    assert [line for line in whole if "'x'" in line] == [
        f"        \x1b[38;5;141mreturn\x1b[0m \x1b[38;5;150m'x'\x1b[0m \x1b[3;38;5;247m# {number}\x1b[0m"
        for number in range(40)
    ]


def test_a_long_text_in_quotes_keeps_its_colour_in_every_piece() -> None:
    stream = MarkdownStream()
    text = "".join(f"word {number}\n" for number in range(60))
    lines = [
        line
        for block in [*stream.feed(f'```python\nx = """\n{text}"""\n```'), *stream.finish()]
        for line in to_lines(block, width=60, theme=DARK)
    ]
    assert [line for line in lines if "word" in line] == [f"    \x1b[38;5;150mword {n}\x1b[0m" for n in range(60)]


def test_however_a_message_is_cut_it_looks_the_same() -> None:
    chance = random.Random(7)
    for _ in range(60):
        source = "".join(chance.choice(ATOMS) for _ in range(chance.randrange(1, 60)))
        width = chance.choice([1, 2, 3, 5, 9, 12, 20, 40, 80])
        ends = sorted({0, len(source), *(chance.randrange(len(source) + 1) for _ in range(20))})
        pieces = [source[start:end] for start, end in pairwise(ends)]
        assert streamed(pieces, width) == streamed([source], width) == shown(source, width), (source, width)


@pytest.mark.parametrize("unit", ["[", "![", "*a **b ", "> ", "`a``b", "<a ", "- "])
def test_the_work_grows_with_the_length_of_the_message_only(unit: str) -> None:
    source = hostile(unit, 3_000)
    draw_stream([source])
    within(800 * len(source), lambda: draw_stream([source]))


def test_a_long_table_keeps_its_head_in_every_piece() -> None:
    drawn = shown("| a | b |\n|---|---|\n" + f"| {'x' * 50} | y |\n" * 2000, 80)
    assert not [line for line in drawn if "|" in line]


def test_what_is_nested_beyond_sense_is_shown_as_it_was_written() -> None:
    assert shown("> " * 200 + "x", 1000) == ["● " + "> " * 200 + "x"]


def test_a_margin_gives_way_where_there_is_no_room() -> None:
    assert shown("hello", 5) == ["hello"]
    assert shown("hello", 1) == list("hello")


def test_entries_stand_apart_and_lines_of_a_kind_together() -> None:
    flow = Flow()
    dense = ScrollbackEntry("call", spacing="dense")
    lines: list[str] = []
    for entry in [
        ScrollbackEntry("said"),
        dense,
        dense,
        ScrollbackEntry("more", spacing="joined"),
        dense,
        ScrollbackEntry("said"),
    ]:
        lines += flow.lines(entry, width=20, theme=DARK)
    assert lines == ["said", "", "call", "call", "more", "", "call", "", "said"]
