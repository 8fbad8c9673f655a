"""Plans the changes of a whole patch before anything is written, and summarises them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from codex_py.patch.edit import edit_text, replace_text
from codex_py.patch.files import MAX_FILE_BYTES, FileState, look_at, resolve_entry, resolve_file
from codex_py.patch.grammar import (
    AddFile,
    DeleteFile,
    ParsedPatch,
    PatchError,
    PlainEdit,
    TextReplacement,
    UpdateFile,
    WholeFile,
)
from codex_py.patch.seek import Effort

Permit: TypeAlias = Callable[[Path], None]
"""Raises `PatchError` for a directory entry (its directories resolved) that may not be written."""

_WORTH_SHOWING: Final = 128 * 1024


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One hunk's effect. `path` is as written in the patch, `target` absolute; the texts are for showing."""

    kind: Literal["add", "delete", "update"]
    path: str
    target: Path
    old: str = ""
    new: str = ""
    move_path: str | None = None
    move_target: Path | None = None


@dataclass(frozen=True, slots=True)
class FileWrite:
    """One file's way from what it is (None: not there) to what it shall be (None: gone).

    `mode` None leaves it to the umask. `moved` is the file that it was before it was moved.
    """

    path: Path
    before: FileState | None
    after: bytes | None
    mode: int | None
    moved: Path | None = None


@dataclass(frozen=True, slots=True)
class PatchPlan:
    """`writes` has each file once, those that go last; `changes` and `notes` are in the order of the patch."""

    changes: tuple[PlannedChange, ...]
    writes: tuple[FileWrite, ...]
    notes: tuple[str, ...] = ()


def plan_patch(patch: ParsedPatch | PlainEdit, root: Path, *, permit: Permit | None = None) -> PatchPlan:
    """Decide every write of a patch whose relative paths start at `root`, an absolute directory.

    A hunk sees what the hunks before it did. `permit` is asked before a file is read. Raise `PatchError` when any hunk
    does not fit the files, or when there is none at all.
    """
    if not patch.hunks:
        raise PatchError("No files were modified.")
    planner = _Planner(root, permit)
    for hunk in patch.hunks:
        match hunk:
            case AddFile():
                planner.add(hunk)
            case DeleteFile():
                planner.delete(hunk)
            case UpdateFile():
                planner.update(hunk)
            case TextReplacement():
                planner.replace(hunk)
            case WholeFile():
                planner.write(hunk)
    return planner.plan()


class _Planner:
    def __init__(self, root: Path, permit: Permit | None) -> None:
        self._root = root
        self._permit = permit
        self._effort = Effort()
        self._before: dict[Path, FileState | None] = {}
        self._after: dict[Path, bytes | None] = {}
        self._modes: dict[Path, int | None] = {}
        self._moved: dict[Path, Path] = {}
        self._directories: set[Path] = set()
        self._unlinked: set[Path] = set()
        self._changes: list[PlannedChange] = []
        self._notes: list[str] = []

    def plan(self) -> PatchPlan:
        writes = [
            FileWrite(path, self._before[path], after, self._modes[path], self._moved.get(path))
            for path, after in self._after.items()
            if not self._is_unchanged(path, after)
        ]
        writes.sort(key=lambda write: write.after is None)
        return PatchPlan(tuple(self._changes), tuple(writes), tuple(self._notes))

    def add(self, hunk: AddFile) -> None:
        target = self._target(hunk.path)
        self._put(target, hunk.content.encode(), None)
        self._changes.append(PlannedChange("add", hunk.path, target, new=hunk.content))

    def delete(self, hunk: DeleteFile) -> None:
        target = self._target(hunk.path)
        entry = self._entry(target)
        failed = f"Failed to delete file {target}"
        self._allow(entry)
        content = self._content(entry, failed, limit=_WORTH_SHOWING)
        self._remove(entry)
        old = (content or b"").decode(errors="replace")
        self._changes.append(PlannedChange("delete", hunk.path, target, old=old))

    def update(self, hunk: UpdateFile) -> None:
        target = self._target(hunk.path)
        file = self._file(target)
        self._allow(file)
        failed = f"Failed to read file to update {target}"
        old = self._text(file, failed)
        edited = edit_text(old, hunk, name=str(target), effort=self._effort)
        self._notes += edited.notes
        content = edited.text.encode()
        if hunk.move_to is None:
            self._after[file] = content
            self._changes.append(PlannedChange("update", hunk.path, target, old, edited.text))
            return
        destination = self._target(hunk.move_to)
        if self._is_same(file, destination):
            self._after[file] = content
        else:
            entry = self._entry(target)
            self._allow(entry)
            if entry != file:
                self._content(entry, failed)
            origin = self._moved.pop(file, file)
            self._remove(entry)
            placed = self._put(destination, content, self._modes[file])
            if entry == file and self._before[origin] is not None:
                self._moved[placed] = origin
        self._changes.append(PlannedChange("update", hunk.path, target, old, edited.text, hunk.move_to, destination))

    def replace(self, hunk: TextReplacement) -> None:
        target = self._target(hunk.path)
        file = self._file(target)
        self._allow(file)
        old = self._text(file, f"Failed to read file to edit {target}")
        new = replace_text(old, hunk, name=str(target))
        self._after[file] = new.encode()
        self._changes.append(PlannedChange("update", hunk.path, target, old, new))

    def write(self, hunk: WholeFile) -> None:
        target = self._target(hunk.path)
        content = hunk.content.encode()
        self._put(target, content, None)
        found = self._before[self._file(target)]
        old = "" if found is None else (found.content or b"").decode(errors="replace")
        self._changes.append(PlannedChange("add" if found is None else "update", hunk.path, target, old, hunk.content))

    def _target(self, path: str) -> Path:
        self._effort.spend(path.count("/") ** 2 // 4)
        if path.endswith("/"):
            raise PatchError(f"`{path}` names a directory, not a file")
        return self._root / ("/" + path.lstrip("/") if path.startswith("/") else path)

    def _entry(self, target: Path) -> Path:
        if not target.name or target.name == "..":
            raise PatchError(f"`{target}` names a directory, not a file")
        for directory in reversed(target.parents) if self._unlinked else ():
            # What was a link to another directory when the patch began leads nowhere now.
            if (link := resolve_entry(directory)) in self._unlinked:
                return Path(os.path.normpath(link / target.relative_to(directory)))
        return resolve_entry(target)

    def _remove(self, entry: Path) -> None:
        self._after[entry] = None
        before = self._before[entry]
        if before is not None and not before.regular:
            self._unlinked.add(entry)

    def _file(self, target: Path) -> Path:
        """Where a path leads, links that an earlier hunk removed or replaced left aside."""
        entry = self._entry(target)
        is_below = not self._unlinked.isdisjoint(entry.parents)
        return entry if is_below or entry in self._after else resolve_file(entry)

    def _allow(self, path: Path) -> None:
        if self._permit is not None:
            self._permit(path)

    def _is_same(self, file: Path, destination: Path) -> bool:
        other = self._file(destination)
        if other == file:
            return True
        self._allow(other)
        if other in self._after or file in (*self._after, *other.parents):
            return False
        here, there = self._before.get(file), _look(other, f"Failed to write file {destination}", limit=0)
        # One file under two names that are not two links: a file system that ignores case.
        return bool(here and there and here.links == 1 and here.identity == there.identity)

    def _put(self, target: Path, content: bytes, mode: int | None) -> Path:
        failed = f"Failed to write file {target}"
        file = self._file(target)
        self._allow(file)
        self._check_directories(file, failed)
        if file not in self._after:
            # Below a file that an earlier hunk removes there is nothing yet.
            is_new = any(directory in self._after for directory in file.parents)
            found = self._before[file] = None if is_new else _look(file, failed, limit=_WORTH_SHOWING)
            if found is not None and not found.regular:
                raise PatchError(f"{failed}: not a regular file")
        found = self._before[file]
        self._after[file] = content
        self._modes[file] = found.mode if mode is None and found is not None and found.regular else mode
        self._moved.pop(file, None)
        return file

    def _check_directories(self, file: Path, failed: str) -> None:
        if file in self._directories:
            raise PatchError(f"{failed}: the patch also makes it a directory")
        for directory in file.parents:
            if directory in self._directories:
                return
            if self._after.get(directory) is not None:
                raise PatchError(f"{failed}: the patch also makes `{directory}` a file")
            self._directories.add(directory)

    def _content(self, path: Path, failed: str, *, limit: int = MAX_FILE_BYTES) -> bytes | None:
        """The content of a file at this point of the patch. Raises `PatchError` when it does not exist."""
        if path in self._after:
            content = self._after[path]
            if content is None:
                raise PatchError(f"{failed}: an earlier hunk of the patch removes it")
            return content
        found = self._before[path] = _look(path, failed, limit=limit)
        if found is None:
            raise PatchError(f"{failed}: no such file")
        self._modes[path] = found.mode
        if found.content is not None:
            self._effort.spend_on(found.content)
        return found.content

    def _text(self, file: Path, failed: str) -> str:
        content = self._content(file, failed)
        if content is None:
            found = self._before[file]
            large = found is not None and found.regular
            reason = f"larger than the {MAX_FILE_BYTES} bytes a patch can change" if large else "not a regular file"
            raise PatchError(f"{failed}: {reason}")
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise PatchError(f"{failed}: not UTF-8 (byte {error.start})") from error

    def _is_unchanged(self, path: Path, after: bytes | None) -> bool:
        before = self._before[path]
        if before is None:
            return after is None
        return after is not None and before.content == after and before.mode == self._modes[path]


def _look(path: Path, failed: str, *, limit: int = MAX_FILE_BYTES) -> FileState | None:
    try:
        return look_at(path, limit=limit)
    except IsADirectoryError as error:
        raise PatchError(f"{failed}: it is a directory") from error
    except OSError as error:
        raise PatchError(f"{failed}: {(error.strerror or str(error)).lower()}") from error


_SHOWN_NOTES: Final = 20


def summarize(plan: PatchPlan) -> str:
    """The files as the patch wrote them, added ones first, then changed, then deleted; a moved one where it is now.

    The layout of the first lines is the format models know; notes follow it.
    """
    lines = ["Success. Updated the following files:"]
    for letter, change_kind in (("A", "add"), ("M", "update"), ("D", "delete")):
        lines += [
            f"{letter} {change.move_path or change.path}" for change in plan.changes if change.kind == change_kind
        ]
    lines += [f"note: {note}" for note in plan.notes[:_SHOWN_NOTES]]
    if len(plan.notes) > _SHOWN_NOTES:
        lines.append(f"note: {len(plan.notes) - _SHOWN_NOTES} more places were not certain")
    return "\n".join(lines) + "\n"
