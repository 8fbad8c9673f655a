"""The file changes in a patch, read from its text without the files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codex_py.patch.grammar import AddFile, DeleteFile, Hunk, PatchError, UpdateFile, parse_patch
from codex_py.protocol.events import FileChange


def changes_in_patch(text: str, cwd: Path) -> tuple[FileChange, ...]:
    """The changes in order, with diffs without line numbers; none for text that is not a patch."""
    try:
        return tuple(_change(hunk, cwd) for hunk in parse_patch(text).hunks)
    except PatchError:
        return ()


def _change(hunk: Hunk, cwd: Path) -> FileChange:
    diff = "".join(f"{line}\n" for line in _diff(hunk))
    match hunk:
        case AddFile(path):
            return FileChange(cwd / path, "add", diff=diff)
        case DeleteFile(path):
            return FileChange(cwd / path, "delete", diff=diff)
        case UpdateFile(path, move_to):
            return FileChange(cwd / path, "update", None if move_to is None else cwd / move_to, diff)


def _diff(hunk: Hunk) -> Iterator[str]:
    match hunk:
        case AddFile(path, content):
            lines = content.removesuffix("\n").split("\n") if content else []
            yield from ("--- /dev/null", f"+++ b/{path}", f"@@ -0,0 +1,{len(lines)} @@")
            yield from (f"+{line}" for line in lines)
        case DeleteFile(path):
            yield from (f"--- a/{path}", "+++ /dev/null")
        case UpdateFile(path, move_to, chunks):
            yield from (f"--- a/{path}", f"+++ b/{move_to or path}")
            for chunk in chunks:
                yield " ".join(("@@", *chunk.headers))
                yield from (f"{sign}{line}" for sign, line in chunk.lines)
