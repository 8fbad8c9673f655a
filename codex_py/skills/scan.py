"""Finding the `SKILL.md` files below a root and reading those that changed, within limits of number and size.

No clock decides what is found: a busy machine must not change the prompt.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.paths import real_path
from codex_py.skills.model import SkillProblem, SkillRoot
from codex_py.skills.namespace import MANIFEST_DIRECTORIES, Namespaces
from codex_py.skills.parse import MAX_CHECKED_BYTES, read_record, sources
from codex_py.skills.record import NEVER, FoundFile, Scan, SkillRecord, Stamp, stamp
from codex_py.skills.roots import leads_outside
from codex_py.text.sanitize import sanitize_line

SKILL_FILE: Final = "SKILL.md"
MAX_DEPTH: Final = 6
MAX_DIRECTORIES: Final = 20_000
MAX_ENTRIES: Final = 200_000
MAX_TOTAL_BYTES: Final = 256 * 1024 * 1024
_MAX_PEEKED: Final = 20
SKIPPED_DIRECTORIES: Final = frozenset({"node_modules", "__pycache__"})
# Where a link of a project must not lead: remotes keep passwords there.
_REFUSED_TARGETS: Final = frozenset({".git", ".hg", ".svn", ".jj"})
# Errors of a machine at its limits: what met one is looked at again by the next search.
_OF_MACHINE: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.ESTALE, errno.ETIMEDOUT)
_KERNEL_DIRECTORIES: Final = frozenset({"/proc", "/sys", "/dev"})


class Found(NamedTuple):
    """The result of a search. `stamps` cover everything that could change the result; `notes` name limits hit."""

    files: list[FoundFile]
    refused: list[SkillProblem]
    notes: list[str]
    stamps: dict[str, Stamp]


class Directory(NamedTuple):
    """A directory to be read: the path it was reached by, its real path, and its depth below the root."""

    path: str
    real: str
    depth: int


def find_skill_files(root: SkillRoot) -> Found:
    """Search a root breadth-first, directories in the order of their names.

    At most 6 levels, 20,000 directories and 200,000 entries. Hidden directories and `node_modules` are not entered; a
    directory reached twice is read once. A root or a file that leads out of the project it belongs to is refused.
    """
    if leads_outside(root):
        refusal = SkillProblem(root.path, f"a link that leads out of the project `{root.inside}`", root.scope)
        return Found([], [refusal], [], {})
    return _Search(root).run()


def is_kernel_directory(real: str) -> bool:
    """Whether a real path lies where the kernel shows itself, and reading may block or never end."""
    return any(real == name or real.startswith(f"{name}/") for name in _KERNEL_DIRECTORIES)


class _Search:
    def __init__(self, root: SkillRoot) -> None:
        self._root = root
        self._inside = f"{str(root.inside).rstrip('/')}/" if root.inside else ""
        self._found = Found([], [], [], {})
        self._namespaces = None if root.namespace else Namespaces(root.inside, self._found.stamps)
        top = str(root.path)
        self._queue = deque([Directory(top, top, 0)])
        self._seen = {top}
        self._seen_files: set[str] = set()
        self._entries = 0
        self._unreadable: list[str] = []

    def run(self) -> Found:
        while self._queue:
            if self._entries > MAX_ENTRIES:
                self._note(f"has more than {MAX_ENTRIES} files")
                break
            self._visit(self._queue.popleft())
        if self._unreadable:
            count = len(self._unreadable)
            self._found.notes.append(
                f"cannot read {count} director{'y' if count == 1 else 'ies'} with skills, such as {self._unreadable[0]}"
            )
        return self._found

    def _note(self, why: str) -> None:
        note = f"`{self._root.path}` {why}: some of its skills were not looked for"
        if note not in self._found.notes:
            self._found.notes.append(note)

    def _visit(self, directory: Directory) -> None:
        self._found.stamps[directory.path] = stamp(directory.path)
        children: list[tuple[str, bool]] = []
        skill: os.DirEntry[str] | None = None
        has_manifest = False
        try:
            with os.scandir(directory.path) as entries:
                for entry in entries:
                    self._entries += 1
                    name = entry.name
                    if name == SKILL_FILE and not entry.is_dir(follow_symlinks=False):
                        skill = entry
                    elif name[0] == ".":
                        has_manifest = has_manifest or name in MANIFEST_DIRECTORIES
                    elif entry.is_dir(follow_symlinks=False):
                        children.append((name, False))
                    elif entry.is_symlink():
                        children.append((name, True))
                    if self._entries > MAX_ENTRIES:
                        break
        except OSError as error:
            if error.errno in _OF_MACHINE:
                self._found.stamps[directory.path] = NEVER
            self._unreadable.append(f"`{directory.path}`: {(error.strerror or str(error)).lower()}")
            return
        namespace = self._namespace(directory, has_manifest=has_manifest)
        if skill is not None:
            self._add_file(directory, skill, namespace, {name for name, _ in children})
        self._enqueue(directory, children)

    def _namespace(self, directory: Directory, *, has_manifest: bool) -> str | None:
        if self._namespaces is None:
            return self._root.namespace
        if not has_manifest:
            self._namespaces.inherit(directory.real)
        return self._namespaces.of(directory.real)

    def _add_file(
        self, directory: Directory, entry: os.DirEntry[str], namespace: str | None, children: set[str]
    ) -> None:
        path, real = f"{directory.path}/{SKILL_FILE}", f"{directory.real.rstrip('/')}/{SKILL_FILE}"
        if sanitize_line(path) != path:
            self._refuse(path, "its path has characters that cannot be shown")
            return
        if not entry.is_file(follow_symlinks=False):
            if not entry.is_symlink():
                self._refuse(path, "not a regular file")
                return
            real = real_path(path)
            self._found.stamps[path] = stamp(path)
            if reason := self._why_not(real, stat.S_IFREG):
                self._refuse(path, reason)
                return
        if real not in self._seen_files:
            self._seen_files.add(real)
            self._found.files.append(FoundFile(path, real, namespace, "agents" in children, "references" in children))

    def _enqueue(self, directory: Directory, children: list[tuple[str, bool]]) -> None:
        if directory.depth == MAX_DEPTH:
            self._look_deeper(directory, children)
            return
        children.sort()
        for name, is_link in children:
            if name in SKIPPED_DIRECTORIES:
                continue
            path, real = f"{directory.path}/{name}", f"{directory.real.rstrip('/')}/{name}"
            if is_link:
                if (target := self._link_target(path)) is None:
                    continue
                real = target
            if real in self._seen or is_kernel_directory(real):
                continue
            if len(self._seen) > MAX_DIRECTORIES:
                self._note(f"has more than {MAX_DIRECTORIES} directories")
                return
            self._seen.add(real)
            self._queue.append(Directory(path, real, directory.depth + 1))

    def _look_deeper(self, directory: Directory, children: list[tuple[str, bool]]) -> None:
        """Note that skills lie right below the last level that is searched."""
        for name, is_link in children[:_MAX_PEEKED]:
            path = f"{directory.path}/{name}/{SKILL_FILE}"
            if not is_link and name not in SKIPPED_DIRECTORIES and (there := stamp(path)) is not None:
                self._found.stamps[path] = there
                self._note(f"has skills more than {MAX_DEPTH} directories deep")
                return

    def _link_target(self, path: str) -> str | None:
        """The real directory a link leads to, when it is to be entered."""
        if not self._root.follows_links:
            return None
        self._found.stamps[path] = stamp(path)
        if not os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for what nobody may look at
            return None
        real = real_path(path)
        if reason := self._why_not(real, stat.S_IFDIR):
            self._refuse(path, reason)
            return None
        return real

    def _why_not(self, real: str, file_type: int) -> str:
        """Why what a link leads to does not count; "" when it does."""
        if self._inside and not real.startswith(self._inside):
            return "a link that leads out of the project"
        if self._inside and not _REFUSED_TARGETS.isdisjoint(real.removeprefix(self._inside).split("/")):
            return "a link into a version control directory"
        try:
            return "" if stat.S_IFMT(Path(real).stat().st_mode) == file_type else "not a regular file"
        except OSError:
            return "a link that leads nowhere"

    def _refuse(self, path: str, reason: str) -> None:
        self._found.refused.append(SkillProblem(Path(path), reason, self._root.scope))


def scan_root(root: SkillRoot, earlier: Scan | None) -> Scan:
    """Search a root, reading only the files that changed since an `earlier` scan of it.

    Skills beyond 256 MiB in all are left out, which is noted.
    """
    found = find_skill_files(root)
    known = {record.file: record for record in earlier.records} if earlier else {}
    known_stamps: Mapping[str, Stamp] = earlier.stamps if earlier else {}
    records: list[SkillRecord] = []
    total = 0
    for file in found.files:
        fresh = {path: stamp(path) for path in sources(file)}
        found.stamps.update(fresh)
        total += sum(min(known[2], MAX_CHECKED_BYTES) for known in fresh.values() if known)
        if total > MAX_TOTAL_BYTES:
            left = len(found.files) - len(records)
            found.notes.append(
                f"`{root.path}` has more than {MAX_TOTAL_BYTES // 1024**2} MiB of skills: {left} were left out"
            )
            break
        record = known.get(file)
        if record is None or any(new == NEVER or known_stamps.get(path) != new for path, new in fresh.items()):
            record = read_record(file, root.inside)
            if record.error and record.error.endswith(tuple(os.strerror(number).lower() for number in _OF_MACHINE)):
                found.stamps[file.real] = NEVER
        records.append(record)
    return Scan(root, found.stamps, tuple(records), tuple(found.refused), tuple(found.notes))
