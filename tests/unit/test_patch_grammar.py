from __future__ import annotations

from contextlib import suppress

import pytest

from codex_py.patch.grammar import MAX_PATCH_BYTES, AddFile, Chunk, DeleteFile, PatchError, UpdateFile, parse_patch
from tests.support.work import within
from tests.unit.patch_cases import patch, update


def test_every_kind_of_hunk_is_read() -> None:
    text = patch(
        "*** Add File: new.txt",
        "+one",
        "+",
        "*** Update File: old name.py",
        "*** Move to: lib/new name.py",
        "@@ class A:",
        "@@     def f(self):",
        " kept",
        "-gone",
        "+come",
        "*** End of File",
        "@@",
        "+tail",
        "*** Delete File: dead.txt",
    )

    assert parse_patch(text).hunks == (
        AddFile("new.txt", "one\n\n", 2),
        UpdateFile(
            "old name.py",
            "lib/new name.py",
            (
                Chunk(("class A:", "    def f(self):"), ((" ", "kept"), ("-", "gone"), ("+", "come")), True, 0, 7),
                Chunk((), (("+", "tail"),), False, 0, 13),
            ),
            5,
        ),
        DeleteFile("dead.txt", 15),
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("*** Begin Patch\n*** Add File: a\n+x\n*** End Patch", id="plain"),
        pytest.param("\n\n *** Begin Patch \n*** Add File: a\n+x\n  *** End Patch\t\n\n", id="space around"),
        pytest.param("*** Begin Patch\r\n*** Add File: a\r\n+x\r\n*** End Patch\r\n", id="crlf"),
        pytest.param("*** Begin Patch\n   *** Add File: a   \n+x\n*** End Patch", id="indented header"),
        pytest.param("*** Begin Patch\n\n*** Add File: a\n+x\n\n  \n*** End Patch", id="blank lines"),
        pytest.param("*** Begin Patch\n*** Environment ID: 7\n*** Add File: a\n+x\n*** End Patch", id="environment"),
        pytest.param("<<EOF\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF", id="heredoc"),
        pytest.param("<<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF\n", id="quoted heredoc"),
        pytest.param('<<"EOF"\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF', id="double quoted heredoc"),
    ],
)
def test_the_frame_may_be_untidy(text: str) -> None:
    [hunk] = parse_patch(text).hunks
    assert isinstance(hunk, AddFile)
    assert (hunk.path, hunk.content) == ("a", "x\n")


@pytest.mark.parametrize(
    ("header", "headers"),
    [
        (["@@"], ()),
        (["@@ "], ()),
        (["@@ def f():"], ("def f():",)),
        (["@@   indented"], ("  indented",)),
        (["@@def f():"], ("def f():",)),
        (["@@ class A:", "@@ def f():"], ("class A:", "def f():")),
        (["@@ class A:", "", "@@ def f():"], ("class A:", "def f():")),
        (["@@", "@@ def f():"], ("def f():",)),
        (["@@ -1,3 +1,3 @@"], ()),
        (["@@ -1 +1,2 @@ def f():"], ()),
        (["@@ -1,3 @@"], ("-1,3 @@",)),
        ([], ()),
    ],
)
def test_headers_of_a_chunk(header: list[str], headers: tuple[str, ...]) -> None:
    [hunk] = parse_patch(update("a", *header, "-x", "+y")).hunks
    assert isinstance(hunk, UpdateFile)
    assert [chunk.headers for chunk in hunk.chunks] == [headers]
    assert hunk.chunks[0].lines == (("-", "x"), ("+", "y"))


def test_an_empty_line_in_a_chunk_is_context_and_counted_as_loose_at_its_end() -> None:
    [hunk] = parse_patch(update("a", "@@", "-x", "", "+y", "", "")).hunks
    assert isinstance(hunk, UpdateFile)
    assert hunk.chunks == (Chunk((), (("-", "x"), (" ", ""), ("+", "y"), (" ", ""), (" ", "")), False, 2, 3),)


def test_a_header_behind_a_space_is_context_inside_an_update() -> None:
    [hunk] = parse_patch(update("a", "-x", " *** Delete File: b")).hunks
    assert isinstance(hunk, UpdateFile)
    assert hunk.chunks[0].lines == (("-", "x"), (" ", "*** Delete File: b"))


def test_a_patch_without_hunks_is_read() -> None:
    assert parse_patch("*** Begin Patch\n*** End Patch").hunks == ()


_HEADERS = "Valid hunk headers: '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'"
_SIGNS = "Every line should start with ' ' (context line), '+' (added line), or '-' (removed line)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Invalid patch: The first line of the patch must be '*** Begin Patch'"),
        ("hello", "Invalid patch: The first line of the patch must be '*** Begin Patch'"),
        ("say\n" + patch("*** Add File: a"), "Invalid patch: The first line of the patch must be '*** Begin Patch'"),
        ("*** begin patch\n*** End Patch", "Invalid patch: The first line of the patch must be '*** Begin Patch'"),
        ("*** Begin Patch", "Invalid patch: The last line of the patch must be '*** End Patch'"),
        ("*** Begin Patch\n*** Add File: a\n+x", "Invalid patch: The last line of the patch must be '*** End Patch'"),
        (patch("*** Add File: a") + "\nbye", "Invalid patch: The last line of the patch must be '*** End Patch'"),
        (
            "<<X\n" + patch("*** Add File: a") + "\nX",
            "Invalid patch: The first line of the patch must be '*** Begin Patch'",
        ),
        (
            patch("*** Frob File: a"),
            f"Invalid patch hunk on line 2: '*** Frob File: a' is not a valid hunk header. {_HEADERS}",
        ),
        (
            patch("*** Add File:a"),
            f"Invalid patch hunk on line 2: '*** Add File:a' is not a valid hunk header. {_HEADERS}",
        ),
        (
            patch("*** add file: a"),
            f"Invalid patch hunk on line 2: '*** add file: a' is not a valid hunk header. {_HEADERS}",
        ),
        (
            patch("*** Add File: a", "+x", "junk"),
            f"Invalid patch hunk on line 4: 'junk' is not a valid hunk header. {_HEADERS}",
        ),
        (
            patch("*** Add File: a", "+x", "", "+y"),
            f"Invalid patch hunk on line 5: '+y' is not a valid hunk header. {_HEADERS}",
        ),
        (
            patch("*** Delete File: a", "-x"),
            f"Invalid patch hunk on line 3: '-x' is not a valid hunk header. {_HEADERS}",
        ),
        (update("a"), "Invalid patch hunk on line 2: Update file hunk for path 'a' is empty"),
        (update("a", "*** Move to: b"), "Invalid patch hunk on line 2: Update file hunk for path 'a' is empty"),
        (update("a", "@@"), "Invalid patch hunk on line 4: Update hunk does not contain any lines"),
        (update("a", "@@", "*** End of File"), "Invalid patch hunk on line 4: Update hunk does not contain any lines"),
        (
            update("a", "junk"),
            f"Invalid patch hunk on line 3: Unexpected line found in update hunk: 'junk'. {_SIGNS}",
        ),
        (
            update("a", "@@", "junk"),
            f"Invalid patch hunk on line 4: Unexpected line found in update hunk: 'junk'. {_SIGNS}",
        ),
        (
            update("a", "-x", "junk"),
            "Invalid patch hunk on line 4: Expected update hunk to start with a @@ context marker, got: 'junk'",
        ),
        (patch("*** Add File: \0"), "Invalid patch hunk on line 2: a path cannot have a NUL"),
        (update("a", "*** Move to:  \0b", "-x"), "Invalid patch hunk on line 3: a path cannot have a NUL"),
        (
            patch(*["*** Add File: a"] * 20_001),
            "Invalid patch hunk on line 20002: a patch may change at most 20000 places",
        ),
        (
            update("a", *["@@", "-x"] * 20_000),
            "Invalid patch hunk on line 40001: a patch may change at most 20000 places",
        ),
        (
            update("a", *["@@ x"] * 33, "-x"),
            "Invalid patch hunk on line 35: at most 32 @@ lines may lead to one place",
        ),
        (patch("*** Add File: " + "a/" * 3000), "Invalid patch hunk on line 2: a path may have at most 4096 bytes"),
        (
            patch("*** Add File: a", "+\ud83d"),
            "Invalid patch hunk on line 3: half of a surrogate pair is not text",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, message: str) -> None:
    with pytest.raises(PatchError) as error:
        parse_patch(text)
    assert str(error.value) == message


def test_a_patch_over_the_limit_is_refused() -> None:
    text = patch("*** Add File: a", "+" + "x" * MAX_PATCH_BYTES)
    with pytest.raises(PatchError, match=r"Invalid patch: \d+ bytes are more than the 8388608 a patch may have"):
        parse_patch(text)


_MEGABYTE = 1_000_000


HOSTILE = {
    "one line": patch("*** Add File: a", "+" + "x" * _MEGABYTE),
    "short lines": patch("*** Add File: a", *["+"] * (_MEGABYTE // 2)),
    "hunks": patch(*["*** Delete File: a"] * (_MEGABYTE // 19)),
    "chunks": update("a", *["@@", "-a"] * (_MEGABYTE // 6)),
    "headers": update("a", *["@@ x"] * (_MEGABYTE // 5), "-a"),
    "headers and blank lines": update("a", *["@@", ""] * (_MEGABYTE // 4), "-a"),
    "blank lines": update("a", "@@", *[""] * _MEGABYTE, "-a"),
    "digits": update("a", "@@ -" + "1" * _MEGABYTE),
    "spaces": update("a", "@@ " + " " * _MEGABYTE + "x", "-a"),
    "space around": "\n" * _MEGABYTE + "*** Begin Patch" + " " * _MEGABYTE,
    "heredocs": "<<EOF\n" * (_MEGABYTE // 6) + "EOF",
    "begins": "*** Begin Patch\n" * (_MEGABYTE // 16) + "*** End Patch",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_megabyte_is_read_in_linear_time(text: str) -> None:
    with suppress(PatchError):
        within(20 * len(text), lambda: parse_patch(text))
