"""What clients of the Agent Client Protocol are shown: diffs, outputs in fences, blocks of MCP tools."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from codex_py.protocol.events import FileChange
from codex_py.server.acp.content import (
    MAX_SHOWN_BYTES,
    change_locations,
    diff_content,
    ends,
    fenced,
    mcp_content,
    output_content,
)
from codex_py.text.diff import unified_diff

FILE = Path("/repo/a.txt")


def changed(old: str, new: str, kind: Literal["add", "delete", "update"] = "update") -> FileChange:
    return FileChange(FILE, kind, diff=unified_diff(old, new, old_name="a/a.txt", new_name="b/a.txt"))


def sides(change: FileChange) -> list[tuple[str | None, str]]:
    return [(one["oldText"], one["newText"]) for one in diff_content([change]) if one["type"] == "diff"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("one\n", "two\n"),
        ("one", "two"),
        ("one\n", "one"),
        ("one", "one\n"),
        ("a\nb", "a\nb\nc\n"),
        ("--- a\n", "+++ b\n"),
        ("@@ -1 +1 @@\nx\n", "@@ -1 +1 @@\ny\n"),
        ("", "\n\n"),
    ],
)
def test_a_diff_has_the_text_before_and_after(old: str, new: str) -> None:
    assert sides(changed(old, new)) == [(old, new)]


def test_each_place_of_a_file_is_a_diff_of_its_own() -> None:
    old = "".join(f"{number}\n" for number in range(40))
    first, second = diff_content([changed(old, old.replace("5\n", "five\n", 1).replace("35\n", "x\n"))])

    assert first["newText"] == "2\n3\n4\nfive\n6\n7\n8\n"
    assert second["oldText"] == "32\n33\n34\n35\n36\n37\n38\n"
    assert change_locations([changed(old, old.replace("35\n", "x\n"))]) == [{"path": str(FILE), "line": 33}]


def test_new_files_had_no_text_and_removed_ones_have_none() -> None:
    assert sides(changed("", "x\n", "add")) == [(None, "x\n")]
    assert sides(changed("x\n", "", "delete")) == [("x\n", "")]
    assert change_locations([changed("x\n", "", "delete")]) == [{"path": str(FILE)}]
    assert sides(FileChange(FILE, "add")) == [(None, "")]


def test_a_file_that_only_moves_says_so() -> None:
    moved = FileChange(FILE, "update", Path("/repo/b.txt"))
    [said] = diff_content([moved])

    assert said["content"]["text"] == "moved from `/repo/a.txt`"
    assert change_locations([moved]) == [{"path": "/repo/b.txt"}]


@pytest.mark.parametrize(
    ("text", "fence"),
    [("plain", "```"), ("```\ncode\n```", "````"), ("  `````", "``````"), ("a ``` b", "```"), ("``", "```")],
)
def test_nothing_in_a_fence_closes_it(text: str, fence: str) -> None:
    assert fenced(text, "sh") == f"{fence}sh\n{text}\n{fence}"


def test_a_long_text_is_shown_by_its_ends() -> None:
    shown = ends("a" + "x" * MAX_SHOWN_BYTES + "z")

    assert len(shown) < MAX_SHOWN_BYTES + 100
    assert (shown[0], shown[-1]) == ("a", "z")
    assert "[… 2 characters left out …]" in shown


def test_an_output_is_shown_without_its_colours_and_nothing_of_an_empty_one() -> None:
    [shown] = output_content("\x1b[1;31mred\x1b[0m\n")

    assert shown["content"]["text"] == "```\nred\n```"
    assert output_content(" \n\n") == []


def test_blocks_of_a_tool_are_passed_on_as_far_as_they_are_whole() -> None:
    blocks = [
        {"type": "text", "text": "hi"},
        {"type": "text", "text": ""},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "image", "data": 5},
        {"type": "resource_link", "uri": "x:y", "name": "y", "size": 5},
        {"type": "resource", "resource": {"uri": "x:z", "text": "inside"}},
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        "junk",
    ]
    shown = [one["content"] for one in mcp_content({"content": blocks}, "")]

    assert shown == [
        {"type": "text", "text": "hi"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "text", "text": "[image: not shown]"},
        {"type": "resource_link", "uri": "x:y", "name": "y"},
        {"type": "resource", "resource": {"uri": "x:z", "text": "inside"}},
        {"type": "text", "text": "[audio: not shown]"},
    ]
    assert mcp_content(None, "text") == output_content("text")
