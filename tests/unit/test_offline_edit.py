"""A replacement as a patch: whatever the text, applying the patch is the same as replacing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from codex_py.offline.edit import Edit, Segment, plan_edit, split_lines
from codex_py.patch.apply import apply_plan
from codex_py.patch.grammar import parse_patch
from codex_py.patch.plan import plan_patch


def edit_of(text: str, old: str, new: str, *, whole_words: bool = False) -> Edit:
    return plan_edit([Segment(1, split_lines(text))], old, new, whole_words=whole_words)


def patched(folder: Path, text: str, edit: Edit) -> str:
    path = folder / "file.txt"
    path.write_bytes(text.encode())
    patch = "\n".join(["*** Begin Patch", "*** Update File: file.txt", *edit.hunks, "*** End Patch"])
    apply_plan(plan_patch(parse_patch(patch), folder))
    return path.read_bytes().decode()


def test_a_hunk_shows_three_lines_on_each_side() -> None:
    text = "".join(f"{number}\n" for number in range(1, 12))

    edit = edit_of(text, "6", "six")

    assert edit.hunks == ("@@", " 3", " 4", " 5", "-6", "+six", " 7", " 8", " 9")
    assert (edit.occurrences, edit.places) == (1, (6,))


def test_near_changes_share_a_hunk_and_far_ones_do_not() -> None:
    lines = [f"l{number}" for number in range(30)]
    lines[2] = lines[5] = lines[25] = "x"

    edit = edit_of("\n".join(lines), "x", "y")

    assert edit.hunks.count("@@") == 2
    assert edit.places == (3, 6, 26)


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a\nb\nc\n", "b", "B", "a\nB\nc\n"),
        ("a\nb\nc\n", "a\nb", "ab", "ab\nc\n"),
        ("a\nb\nc\n", "b", "b1\nb2", "a\nb1\nb2\nc\n"),
        ("aa aa\naa\n", "aa", "b", "b b\nb\n"),
        ("x\n\n\nx\n", "x", "y", "y\n\n\ny\n"),
        ("keep\ndrop\nkeep\n", "drop", "", "keep\nkeep\n"),
        ("keep\ndrop this\n", "drop ", "", "keep\nthis\n"),
        ("a\r\nb\r\n", "b", "c", "a\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "a\nb", "A\nB", "A\r\nB\r\nc\r\n"),
        ("+a\n-b\n*** End Patch\n", "b", "c", "+a\n-c\n*** End Patch\n"),
        ("tab\there\n", "\there", " there", "tab there\n"),
        ("trailing  \nx\n", "x", "y", "trailing  \ny\n"),
        ("same\nsame\nsame\n", "same", "other", "other\nother\nother\n"),
        ("\ufeffa\nb\n", "a", "c", "\ufeffc\nb\n"),
        ("ü – “x”\n", "“x”", "„y“", "ü – „y“\n"),
    ],
)
def test_the_patch_does_the_replacement(tmp_path: Path, text: str, old: str, new: str, expected: str) -> None:
    assert patched(tmp_path, text, edit_of(text, old, new)) == expected


def test_whole_words_spare_longer_names(tmp_path: Path) -> None:
    text = "foo foobar foo_x (foo) a.foo\n"

    edit = edit_of(text, "foo", "bar", whole_words=True)

    assert patched(tmp_path, text, edit) == "bar foobar foo_x (bar) a.bar\n"
    assert edit.occurrences == 3


def test_random_texts_are_replaced_like_a_plain_replace(tmp_path: Path) -> None:
    chance = random.Random(7)
    for _ in range(60):
        lines = [
            "".join(chance.choice("ab c") for _ in range(chance.randrange(5))) for _ in range(chance.randrange(1, 40))
        ]
        text = "\n".join(lines) + "\n"
        old = chance.choice(["a", "ab", "b", "aa", "c", "a\nb", "b\n\na"])
        new = chance.choice(["x", "yy", "x\ny", "a", "ba"])
        edit = edit_of(text, old, new)
        assert edit.occurrences == text.rstrip("\n").count(old)
        if edit.occurrences and old != new:
            expected = "\n".join(text.removesuffix("\n").replace(old, new).split("\n")) + "\n"
            assert patched(tmp_path, text, edit) == expected
            assert "\n".join(edit.after[0]) + "\n" == expected


def test_every_line_of_a_large_file_is_edited() -> None:
    text = "some line of text\n" * 50_000

    assert edit_of(text, "line", "row").occurrences == 50_000
