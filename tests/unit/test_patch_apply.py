"""Patches on real files: a tree, a patch, the tree afterwards, and what is said."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import pytest

from codex_py.errors import ToolError
from codex_py.patch.grammar import PatchError
from tests.unit.patch_cases import harvest, patch, plant, run, update

Tree: TypeAlias = dict[str, bytes | str]

DONE = "Success. Updated the following files:\n"


def both(before: str | bytes, lines: list[str], after: str | bytes) -> tuple[Tree, str, Tree, str]:
    """A case of one file `f` that is updated."""
    return {"f": before}, update("f", *lines), {"f": after}, "M f\n"


WHOLE_FILES: dict[str, tuple[Tree, str, Tree, str]] = {
    "add": ({}, patch("*** Add File: a", "+x", "+", "+y"), {"a": "x\n\ny\n"}, "A a\n"),
    "add an empty file": ({}, patch("*** Add File: a"), {"a": ""}, "A a\n"),
    "add with directories": ({}, patch("*** Add File: a/b/c d/e", "+x"), {"a/b/c d/e": "x\n"}, "A a/b/c d/e\n"),
    "add over a file": ({"a": "old\n"}, patch("*** Add File: a", "+x"), {"a": "x\n"}, "A a\n"),
    "add keeps inner carriage returns": ({}, patch("*** Add File: a", "+x\ry\r"), {"a": "x\ry\n"}, "A a\n"),
    "add a file named like a header": (
        {},
        patch("*** Add File: *** End Patch"),
        {"*** End Patch": ""},
        "A *** End Patch\n",
    ),
    "add unicode": ({}, patch("*** Add File: é/日本", "+ü"), {"é/日本": "ü\n"}, "A é/日本\n"),
    "add with dots in names": ({}, patch("*** Add File: ./a/./..b", "+x"), {"a/..b": "x\n"}, "A ./a/./..b\n"),
    "delete": ({"a": "x", "b": "y"}, patch("*** Delete File: a"), {"b": "y"}, "D a\n"),
    "delete what is not text": ({"a": b"\xff\x00", "b": ""}, patch("*** Delete File: a"), {"b": ""}, "D a\n"),
    "delete leaves the directory": ({"d/a": "x"}, patch("*** Delete File: d/a"), {"d/": ""}, "D d/a\n"),
    "order of the summary": (
        {"d": "x", "m": "x\n"},
        patch("*** Delete File: d", "*** Update File: m", "-x", "+y", "*** Add File: a", "+1"),
        {"m": "y\n", "a": "1\n"},
        "A a\nM m\nD d\n",
    ),
    "add, then update": (
        {},
        patch("*** Add File: a", "+1", "+2", "*** Update File: a", "-2", "+3"),
        {"a": "1\n3\n"},
        "A a\nM a\n",
    ),
    "update twice": (
        {"a": "x\ny\n"},
        patch("*** Update File: a", "-y", "+z", "*** Update File: a", "-x", "+w"),
        {"a": "w\nz\n"},
        "M a\nM a\n",
    ),
    "delete, then add": (
        {"a": "x\n"},
        patch("*** Delete File: a", "*** Add File: a", "+1"),
        {"a": "1\n"},
        "A a\nD a\n",
    ),
    "add, then delete": ({"b": ""}, patch("*** Add File: a", "+1", "*** Delete File: a"), {"b": ""}, "A a\nD a\n"),
    "move": ({"a": "x\n"}, update("a", "*** Move to: d/e/b", " x"), {"d/e/b": "x\n"}, "M d/e/b\n"),
    "move and change": ({"a": "x\ny\n"}, update("a", "*** Move to: b", "@@", "-x", "+z"), {"b": "z\ny\n"}, "M b\n"),
    "move over a file": ({"a": "x\n", "b": "old"}, update("a", "*** Move to: b", "-x", "+y"), {"b": "y\n"}, "M b\n"),
    "move onto itself": ({"a": "x\n"}, update("a", "*** Move to: a", "-x", "+y"), {"a": "y\n"}, "M a\n"),
    "move onto itself, spelled otherwise": (
        {"d/a": "x\n"},
        update("d/a", "*** Move to: ./d//a", "-x", "+y"),
        {"d/a": "y\n"},
        "M ./d//a\n",
    ),
    "move, then update": (
        {"a": "x\n"},
        patch("*** Update File: a", "*** Move to: b", " x", "*** Update File: b", "-x", "+y"),
        {"b": "y\n"},
        "M b\nM b\n",
    ),
    "swap two files": (
        {"a": "1\n", "b": "2\n"},
        patch(
            *("*** Update File: a", "*** Move to: t", " 1"),
            *("*** Update File: b", "*** Move to: a", " 2"),
            *("*** Update File: t", "*** Move to: b", " 1"),
        ),
        {"a": "2\n", "b": "1\n"},
        "M t\nM a\nM b\n",
    ),
    "move, then add where it was": (
        {"a": "x\n"},
        patch("*** Update File: a", "*** Move to: b", " x", "*** Add File: a", "+new"),
        {"a": "new\n", "b": "x\n"},
        "A a\nM b\n",
    ),
    "delete, then a directory of its name": (
        {"a": "x\n", "b": "y\n"},
        patch("*** Delete File: a", "*** Update File: b", "-y", "+z", "*** Add File: a/b/c", "+1", "*** Add File: a/d"),
        {"a/b/c": "1\n", "a/d": "", "b": "z\n"},
        "A a/b/c\nA a/d\nM b\nD a\n",
    ),
    "move into a directory of its name": (
        {"a": "x\n"},
        update("a", "*** Move to: a/init", "-x", "+y"),
        {"a/init": "y\n"},
        "M a/init\n",
    ),
    "an update that changes nothing": ({"a": "x\n"}, update("a", " x"), {"a": "x\n"}, "M a\n"),
    "blank lines between hunks": (
        {"b": "y\n"},
        patch("", "*** Add File: a", "+x", "", "*** Update File: b", "", "@@", "-y", "+z", "", "*** Add File: c", ""),
        {"a": "x\n", "b": "z\n", "c": ""},
        "A a\nA c\nM b\n",
    ),
}

LINES: dict[str, tuple[Tree, str, Tree, str]] = {
    "replace": both("a\nb\nc\n", ["@@", " a", "-b", "+B", " c"], "a\nB\nc\n"),
    "first chunk without a mark": both("a\nb\n", ["-b", "+B"], "a\nB\n"),
    "remove": both("a\nb\nc\n", [" a", "-b", " c"], "a\nc\n"),
    "remove all": both("a\n", ["-a"], ""),
    "insert at the top": both("a\n", ["+0", " a"], "0\na\n"),
    "two chunks": both("a\nb\nc\nd\n", ["@@", "-a", "+A", "@@", "-d", "+D"], "A\nb\nc\nD\n"),
    "chunks that touch": both("a\nb\n", ["@@", "-a", "+A", "@@", "-b", "+B"], "A\nB\n"),
    "unchanged and removed lines mixed": both("a\nb\nc\n", ["-a", " b", "+x", "-c", "+y"], "b\nx\ny\n"),
    "header": both("f\nx\ng\nx\n", ["@@ g", "-x", "+y"], "f\nx\ng\ny\n"),
    "header with its own space": both("  g:\nx\n", ["@@ g:", "-x", "+y"], "  g:\ny\n"),
    "stacked headers": both(
        "class A:\n def f(self):\n  x\nclass B:\n def f(self):\n  x\n",
        ["@@ class B:", "@@  def f(self):", "-  x", "+  y"],
        "class A:\n def f(self):\n  x\nclass B:\n def f(self):\n  y\n",
    ),
    "headers that only begin the line": both(
        "class A(Base):\n def f(self):\n  x\nclass AB:\n def f(self):\n  x\n",
        ["@@ class AB", "@@ def f", "-  x", "+  y"],
        "class A(Base):\n def f(self):\n  x\nclass AB:\n def f(self):\n  y\n",
    ),
    "header closed like one of diff": both("f\nx\ng\nx\n", ["@@ g @@", "-x", "+y"], "f\nx\ng\ny\n"),
    "header repeated as context": both("f\nx\n", ["@@ f", " f", "-x", "+y"], "f\ny\n"),
    "line numbers are no header": both("a\nb\n", ["@@ -1,2 +1,2 @@", "-b", "+c"], "a\nc\n"),
    "empty line as context": both("a\n\nb\n", [" a", "", "-b", "+c"], "a\n\nc\n"),
    "empty last lines that are not there": both("a\nb\n", ["-a", "+c", "", ""], "c\nb\n"),
    "empty last line that is not there before an addition": both("a\n", [" a", " ", "+b"], "a\n\nb\n"),
    "removed last empty line that is not there": both("a\n", ["-a", "-", "+b"], "b\n"),
    "at the end of the file": both("x\ny\nx\n", ["@@", "-x", "+z", "*** End of File"], "x\ny\nz\n"),
    "at the end of the file with fuzz": both("x\ny  \n", ["-y", "+z", "*** End of File"], "x\nz\n"),
    "only additions": both("a\n", ["@@", "+b", "+c"], "a\nb\nc\n"),
    "only additions, in order": both("a\n", ["@@", "+b", "@@", "+c"], "a\nb\nc\n"),
    "only additions at the end": both("a\n", ["+b", "*** End of File"], "a\nb\n"),
    "only additions to an empty file": both("", ["+b"], "b\n"),
    "additions first, then a change above": both("a\nb\n", ["@@", "+c", "@@", "-a", "+A"], "A\nb\nc\n"),
    "no newline at the end": both("a\nb", ["-a", "+A"], "A\nb\n"),
    "no newline at the end, last line replaced": both("a", ["-a", "+A"], "A\n"),
    "no newline at the end, then additions": both("a", ["+b"], "a\nb\n"),
    "crlf": both("a\r\nb\r\n", ["-b", "+c", "+d"], "a\r\nc\r\nd\r\n"),
    "crlf without the last one": both("a\r\nb", ["-a", "+c"], "c\r\nb\r\n"),
    "crlf in the patch alone": both("a\nb\n", [" a\r", "-b\r", "+c\r"], "a\nc\n"),
    "mixed, the first ending wins for new lines": both("a\nb\r\nc\rd\n", ["-b", "+x", " c"], "a\nx\nc\rd\n"),
    "mixed, crlf first": both("a\r\nb\nc\n", [" b", "+x"], "a\r\nb\nx\r\nc\n"),
    "lone carriage returns": both("a\rb\r", ["-b", "+c"], "a\rc\r"),
    "form feeds and the like are no line ends": both(
        "a\x0bb\x0c\x85\u2028\nx\n", ["-x", "+y"], "a\x0bb\x0c\x85\u2028\ny\n"
    ),
    "byte-order mark": both(b"\xef\xbb\xbfa\nb\n", ["-a", "+A"], b"\xef\xbb\xbfA\nb\n"),
    "byte-order mark and crlf": both(b"\xef\xbb\xbfa\r\nb\r\n", [" a", "+x"], b"\xef\xbb\xbfa\r\nx\r\nb\r\n"),
    "byte-order mark in the patch, too": both(b"\xef\xbb\xbfa\nb\n", [" \ufeffa", "-b", "+c"], b"\xef\xbb\xbfa\nc\n"),
    "byte-order mark in both lines of the patch": both(
        b"\xef\xbb\xbfa\nb\n", ["-\ufeffa", "+\ufeffA"], b"\xef\xbb\xbfA\nb\n"
    ),
    "byte-order mark in the new line alone": both(b"\xef\xbb\xbfa\n", ["-a", "+\ufeffA"], b"\xef\xbb\xbfA\n"),
    "byte-order mark taken away": both(b"\xef\xbb\xbfa\nb\n", ["-\ufeffa", "+a"], b"a\nb\n"),
    "byte-order mark in a header": both(b"\xef\xbb\xbfa\nb\n", ["@@ \ufeffa", "-b", "+c"], b"\xef\xbb\xbfa\nc\n"),
    "byte-order mark of a line further down": both(
        b"\xef\xbb\xbfa\n\xef\xbb\xbfa\n", ["-a", "+b", "@@", " \ufeffa"], b"\xef\xbb\xbfb\n\xef\xbb\xbfa\n"
    ),
    "a blank line behind the end of the file": both("a\n", ["-a", "+b", "*** End of File", " ", ""], "b\n"),
    "byte-order mark alone": both(b"\xef\xbb\xbf", ["+a"], b"\xef\xbb\xbfa\n"),
    "trailing space in the file": both("a  \nb\t\n", [" a", "-b", "+c"], "a  \nc\n"),
    "trailing space in the patch": both("a\nb\n", [" a  ", "-b  ", "+c"], "a\nc\n"),
    "indentation": both("    a\n\tb\n", [" a", "-b", "+c"], "    a\nc\n"),
    "typographic characters": both(
        "a \u2014 b\n\u201cc\u201d \u2018d\u2019\u00a0e\u2212\u3000f\nq\n",
        [" a - b", " \"c\" 'd' e- f", "-q", "+r"],
        "a \u2014 b\n\u201cc\u201d \u2018d\u2019\u00a0e\u2212\u3000f\nr\n",
    ),
    "typographic characters in the patch": both("a - 'b'\n", ["-a \u2013 \u2019b\u2019", "+c"], "c\n"),
    "an exact place later beats a loose one before": both("a  \na\n", ["-a", "+b"], "a  \nb\n"),
    "a place without trailing space beats a loose one before": both("  a\na \n", ["-a", "+b"], "  a\nb\n"),
    "lines that look like headers": both(
        "+a\n-b\n@@\n*** x\n", [" +a", "--b", "+-c", " @@", " *** x"], "+a\n-c\n@@\n*** x\n"
    ),
    "nul bytes": both("a\0\nb\n", [" a\0", "-b", "+c"], "a\0\nc\n"),
    "zero-width characters are not folded away": both("a\u200b\na\n", ["-a", "+b"], "a\u200b\nb\n"),
    "a run that almost matches before": both("a\na\nb\na\na\nc\n", [" a", " a", "-c", "+d"], "a\na\nb\na\na\nd\n"),
}

CASES = {**WHOLE_FILES, **LINES}


@pytest.mark.parametrize("name", CASES)
def test_a_patch_gives_the_expected_tree(name: str, tmp_path: Path) -> None:
    before, text, after, listed = CASES[name]
    plant(tmp_path, before)

    said = run(tmp_path, text)

    assert harvest(tmp_path) == {name: one.encode() if isinstance(one, str) else one for name, one in after.items()}
    assert said == DONE + listed


def test_an_absolute_path_is_taken_as_it_is(tmp_path: Path) -> None:
    plant(tmp_path, {"root/": "", "other/a": "x\n"})
    other = tmp_path / "other"

    said = run(tmp_path / "root", update(f"{other}/a", "-x", "+y"))

    assert said == f"{DONE}M {other}/a\n"
    assert (other / "a").read_text() == "y\n"


@pytest.mark.parametrize(
    ("before", "lines", "note"),
    [
        ("x\na\nx\n", ["@@", "-x", "+y"], "hunk 1, patch line 3: same lines found at line 1 and again at line 3"),
        (
            "f\n1\nf\n2\n",
            ["@@ f", "+1", "-1"],
            "hunk 1, patch line 3: context 'f' found at line 1 and again at line 3",
        ),
        (
            "x\na\nb\nb\n",
            ["@@", "-a", "@@", "-b"],
            "hunk 2, patch line 5: same lines found at line 3 and again at line 4",
        ),
    ],
)
def test_a_place_that_is_not_the_only_one_is_reported(before: str, lines: list[str], note: str, tmp_path: Path) -> None:
    plant(tmp_path, {"f": before})
    said = run(tmp_path, update("f", *lines))
    assert said == f"{DONE}M f\nnote: {tmp_path}/f: {note}; the first was taken\n"


def test_not_more_notes_are_given_than_anybody_reads(tmp_path: Path) -> None:
    plant(tmp_path, {"f": "".join(f"{n}\n{n}\n" for n in range(30))})
    said = run(tmp_path, update("f", *(line for n in range(30) for line in ("@@", f"-{n}"))))
    assert said.count("\nnote: ") == 21
    assert said.endswith("\nnote: 10 more places were not certain\n")


def test_additions_under_a_header_go_to_the_end_and_that_is_reported(tmp_path: Path) -> None:
    plant(tmp_path, {"f": "a\nb\n"})

    said = run(tmp_path, update("f", "@@ a", "+c"))

    assert (tmp_path / "f").read_text() == "a\nb\nc\n"
    result = "hunk 1, patch line 3: no old lines were given, so the new ones went to the end of the file"
    assert said == f"{DONE}M f\nnote: {tmp_path}/f: {result}\n"


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["@@", "-x", "+1", "@@", "-x", "+2"], id="a later chunk takes the other place"),
        pytest.param(["@@ g", "-x", "+1"], id="under a header the next place is meant"),
        pytest.param(["-x", "+1", "*** End of File"], id="the end is one place"),
    ],
)
def test_no_note_where_the_place_is_certain(lines: list[str], tmp_path: Path) -> None:
    plant(tmp_path, {"f": "g\nx\nh\nx\n"})
    assert run(tmp_path, update("f", *lines)) == f"{DONE}M f\n"


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o640, 0o700, 0o444])
def test_the_mode_stays(mode: int, tmp_path: Path) -> None:
    plant(tmp_path, {"a": "x\n", "b": "x\n", "c": "x\n"})
    for name in "abc":
        (tmp_path / name).chmod(mode | 0o200)

    run(
        tmp_path,
        patch(
            *("*** Update File: a", "-x", "+y", "*** Update File: b", "*** Move to: d/b", "-x", "+y"),
            *("*** Add File: c", "+z"),
        ),
    )

    assert [(tmp_path / name).stat().st_mode & 0o7777 for name in ("a", "d/b", "c")] == [mode | 0o200] * 3


def test_a_move_over_a_file_brings_its_own_mode(tmp_path: Path) -> None:
    plant(tmp_path, {"a": "x\n", "b": "y\n"})
    (tmp_path / "a").chmod(0o755)
    (tmp_path / "b").chmod(0o600)
    run(tmp_path, update("a", "*** Move to: b", " x"))
    assert (tmp_path / "b").stat().st_mode & 0o7777 == 0o755


def test_an_update_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    plant(tmp_path, {"real/a": "x\n"})
    (tmp_path / "link").symlink_to("real/a")
    (tmp_path / "directory").symlink_to("real")

    run(tmp_path, patch("*** Update File: link", "-x", "+y", "*** Update File: directory/a", "-y", "+z"))

    assert harvest(tmp_path) == {"real/a": b"z\n", "link": b"-> real/a", "directory": b"-> real"}


def test_deleting_and_moving_a_link_leaves_what_it_points_at(tmp_path: Path) -> None:
    plant(tmp_path, {"real": "x\n"})
    for name in ("gone", "moved"):
        (tmp_path / name).symlink_to("real")

    run(tmp_path, patch("*** Delete File: gone", "*** Update File: moved", "*** Move to: new", "-x", "+y"))

    assert harvest(tmp_path) == {"real": b"x\n", "new": b"y\n"}


def test_moving_a_link_onto_its_own_file_keeps_both(tmp_path: Path) -> None:
    plant(tmp_path, {"real": "x\n"})
    (tmp_path / "link").symlink_to("real")
    run(tmp_path, update("link", "*** Move to: real", "-x", "+y"))
    assert harvest(tmp_path) == {"real": b"y\n", "link": b"-> real"}


def test_a_link_that_was_deleted_is_not_followed_any_more(tmp_path: Path) -> None:
    plant(tmp_path, {"real": "x\n"})
    (tmp_path / "link").symlink_to("real")
    run(tmp_path, patch("*** Delete File: link", "*** Add File: link", "+new"))
    assert harvest(tmp_path) == {"real": b"x\n", "link": b"new\n"}
    assert (tmp_path / "link").stat().st_mode & 0o111 == 0


def test_a_hard_link_elsewhere_has_the_new_content_too(tmp_path: Path) -> None:
    plant(tmp_path, {"a": "x\n"})
    (tmp_path / "other").hardlink_to(tmp_path / "a")
    run(tmp_path, update("a", "-x", "+y"))
    assert harvest(tmp_path) == {"a": b"y\n", "other": b"y\n"}


def test_deep_paths_and_long_names(tmp_path: Path) -> None:
    deep = "/".join(["d" * 40] * 30) + "/" + "n" * 255
    run(tmp_path, patch(f"*** Add File: {deep}", "+x"))
    run(tmp_path, update(deep, "-x", "+y"))
    assert harvest(tmp_path) == {deep: b"y\n"}


def test_a_big_file_is_changed_in_place(tmp_path: Path) -> None:
    lines = [f"line {number}\n" for number in range(100_000)]
    plant(tmp_path, {"f": "".join(lines)})

    run(tmp_path, update("f", "@@ line 5", "-line 99990", "+changed", "@@", "-line 99999", "*** End of File"))

    lines[99_990] = "changed\n"
    assert (tmp_path / "f").read_text() == "".join(lines[:-1])


def test_the_directory_may_be_reached_through_a_link(tmp_path: Path) -> None:
    plant(tmp_path, {"real/a": "x\n"})
    (tmp_path / "cwd").symlink_to("real")
    run(tmp_path / "cwd", update("a", "-x", "+y"))
    assert (tmp_path / "real/a").read_text() == "y\n"


def test_nothing_is_left_beside_the_files(tmp_path: Path) -> None:
    plant(tmp_path, {"a": "x\n", "b": "x\n", "c": "x\n"})
    run(tmp_path, patch("*** Update File: a", "-x", "*** Delete File: b", "*** Add File: c", "*** Add File: d/e"))
    assert harvest(tmp_path) == {"a": b"", "c": b"", "d/e": b""}


def test_an_error_is_one_the_model_reads() -> None:
    with pytest.raises(ToolError):
        run(Path("/"), "no patch")


@pytest.mark.parametrize(
    ("hunks", "after"),
    [
        (["*** Delete File: link", "*** Add File: link/a", "+new"], {"link/a": b"new\n", "file": b"-> real/a"}),
        (["*** Delete File: link", "*** Add File: link/d/b", "+new"], {"link/d/b": b"new\n", "file": b"-> real/a"}),
        (["*** Update File: file", "*** Move to: file/a", " a"], {"file/a": b"a\n", "link": b"-> real"}),
    ],
)
def test_a_directory_takes_the_place_of_a_link_and_not_of_what_it_led_to(
    tmp_path: Path, hunks: list[str], after: dict[str, bytes]
) -> None:
    plant(tmp_path, {"real/a": "a\n"})
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").symlink_to("real/a")
    run(tmp_path, patch(*hunks))
    assert harvest(tmp_path) == {"real/a": b"a\n", **after}


@pytest.mark.parametrize("hunk", [["*** Update File: link/a", "-a", "+b"], ["*** Delete File: link/a"]])
def test_behind_a_link_that_is_deleted_there_is_nothing(tmp_path: Path, hunk: list[str]) -> None:
    plant(tmp_path, {"real/a": "a\n"})
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(PatchError, match="not a directory"):
        run(tmp_path, patch("*** Delete File: link", *hunk))
    assert harvest(tmp_path) == {"link": b"-> real", "real/a": b"a\n"}
