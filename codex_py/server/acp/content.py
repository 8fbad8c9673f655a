"""Content blocks for clients: texts, fenced outputs, results of MCP tools, and patches as diffs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.events import FileChange

Json: TypeAlias = dict[str, Any]

# The most that is sent of one output, because clients draw all of it.
MAX_SHOWN_BYTES: Final = 128 * 1024
_MAX_PICTURE: Final = 8 * 1024 * 1024
# A patch as the model writes it has no line numbers.
_HUNK: Final = re.compile(r"^@@(?: -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@)?")
_TICKS: Final = re.compile(r"^\s*(`{3,})", re.MULTILINE)
_COLOR: Final = re.compile(r"\x1b\[[0-9;:]*[A-Za-z]")


def text_block(text: str) -> Json:
    """A text, which clients draw as Markdown."""
    return {"type": "text", "text": text}


def text_content(text: str) -> Json:
    """A text as the content of a tool call."""
    return {"type": "content", "content": text_block(text)}


def output_content(output: str) -> list[Json]:
    """The output of a command in a fence; empty for no output."""
    shown = ends(_COLOR.sub("", output)).strip("\n")
    return [text_content(fenced(shown))] if shown.strip() else []


def fenced(text: str, language: str = "") -> str:
    """A text in a fence that nothing in it can close."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def ends(text: str) -> str:
    """A long text by its beginning and its end."""
    if len(text) <= MAX_SHOWN_BYTES:
        return text
    half = MAX_SHOWN_BYTES // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def mcp_content(result: Mapping[str, Any] | None, output: str) -> list[Json]:
    """The result of an MCP tool: its valid blocks, which this protocol shares, else its text output."""
    blocks = [block for item in as_list((result or {}).get("content")) if (block := _mcp_block(as_object(item)))]
    if not blocks:
        return output_content(output)
    return [{"type": "content", "content": block} for block in blocks]


def _mcp_block(block: Json) -> Json | None:
    match block:
        case {"type": "text", "text": str(text)}:
            return text_block(ends(text)) if text.strip() else None
        case {"type": "image", "data": str(encoded), "mimeType": str(media)} if len(encoded) <= _MAX_PICTURE:
            return {"type": "image", "data": encoded, "mimeType": media}
        case {"type": "resource_link", "uri": str(uri), "name": str(name)}:
            return {"type": "resource_link", "uri": uri, "name": name}
        case {"type": "resource", "resource": {"uri": str(uri), "text": str(text)}}:
            return {"type": "resource", "resource": {"uri": uri, "text": ends(text)}}
        case {"type": str(block_type)}:
            return text_block(f"[{block_type}: not shown]")
        case _:
            return None


def diff_content(changes: Sequence[FileChange]) -> list[Json]:
    """The files of a patch as diffs, one for each hunk.

    Taken from the redacted unified diff and not from the files, which may hold secrets.
    """
    return [block for change in changes for block in _diffs_of(change)]


def _diffs_of(change: FileChange) -> Iterator[Json]:
    path = str(change.move_path or change.path)
    if change.move_path is not None:
        yield text_content(f"moved from `{change.path}`")
    found = False
    for _, old, new in _hunks(change.diff):
        found = True
        before = None if change.kind == "add" else old
        yield {"type": "diff", "path": path, "oldText": before, "newText": new}
    if not found and change.move_path is None:
        yield {"type": "diff", "path": path, "oldText": None if change.kind == "add" else "", "newText": ""}


def change_locations(changes: Sequence[FileChange]) -> list[Json]:
    """The files of a patch, each with its first changed line, for clients that follow along."""
    located: list[Json] = []
    for change in changes:
        line = next((line for line, _, _ in _hunks(change.diff)), None)
        at: Json = {"path": str(change.move_path or change.path)}
        located.append(at if line is None or change.kind == "delete" else {**at, "line": line})
    return located


def _hunks(diff: str) -> Iterator[tuple[int | None, str, str]]:
    """The hunks of a unified diff: the line in the new file if it is known, the old text and the new text."""
    hunk: _Hunk | None = None
    for row in diff.split("\n"):
        if begins := _HUNK.match(row):
            if hunk is not None:
                yield hunk.whole()
            hunk = _Hunk(int(begins[1]) if begins[1] else None)
        elif hunk is not None:
            hunk.take(row)
    if hunk is not None:
        yield hunk.whole()


class _Hunk:
    def __init__(self, line: int | None) -> None:
        self._line = line
        self._old: list[str] = []
        self._new: list[str] = []
        self._latest: tuple[list[str], ...] = ()

    def take(self, row: str) -> None:
        sides = {" ": (self._old, self._new), "-": (self._old,), "+": (self._new,)}.get(row[:1])
        if sides is not None:
            self._latest = sides
            for side in sides:
                side.append(f"{row[1:]}\n")
        elif row.startswith("\\"):
            # The line before this one ends its file without a line break.
            for side in self._latest:
                side[-1] = side[-1].removesuffix("\n")

    def whole(self) -> tuple[int | None, str, str]:
        return self._line, "".join(self._old), "".join(self._new)
