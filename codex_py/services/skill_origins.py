"""The installed skills of a directory: which there are, what their sources have now, and keeping what is replaced."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.errors import UserError
from codex_py.paths import is_directory
from codex_py.services.skill_install import (
    SkillDirectory,
    SourceSkill,
    current_hash,
    find_skills,
    read_entries,
)
from codex_py.services.skill_source import Fetched, InstallSource, fetch_source, source_of
from codex_py.services.work_directory import work_directory
from codex_py.skills.capabilities import Capabilities, read_capabilities
from codex_py.skills.lock import LockEntry
from codex_py.skills.roots import SkillRootsRequest
from codex_py.skills.tree import TreeFile, TreeRefused, list_tree, read_file, tree_hash
from codex_py.skills.vercel_lock import OtherLock, adopted_entries, project_lock, user_lock
from codex_py.text.diff import unified_diff

_STORE: Final = Path("cache", "skill-trees")
_MAX_STORED: Final = 200
_MAX_DIFF_FILE: Final = 256 * 1024


class InstalledSkill(NamedTuple):
    """A skill with a known origin. `other` is the other program's lock that names it; `is_ours` that ours does."""

    name: str
    target: SkillDirectory
    entry: LockEntry
    other: OtherLock | None
    is_ours: bool = True

    @property
    def directory(self) -> Path:
        return self.target.root / self.name

    @property
    def is_edited(self) -> bool:
        """Whether its files are there and are not those of the entry."""
        current = current_hash(self.directory)
        return self.is_ours and current is not None and current != self.entry.tree_hash

    @property
    def scope(self) -> str:
        return "project" if self.target.is_shared else "user"


def target_of(request: SkillRootsRequest, scope: str) -> SkillDirectory:
    """Where skills are installed, `user` or `project`. Raises `UserError` when the project's leads out of it."""
    if scope != "project":
        return SkillDirectory(request.home / "skills", is_shared=False)
    project = Path(os.path.realpath(request.project_root or request.cwd))
    root = project / ".agents" / "skills"
    if not Path(os.path.realpath(root)).is_relative_to(project):
        raise UserError(f"`{root}` is a link that leads out of the project")
    return SkillDirectory(root, is_shared=True)


def installed_skills(
    request: SkillRootsRequest, env: Mapping[str, str], scope: str | None = None
) -> list[InstalledSkill]:
    """The skills of both scopes, or of one, that a lock names: project first, then by name. Raises `UserError`."""
    found: list[InstalledSkill] = []
    for target in _targets(request, scope):
        other = other_lock(request, env, target)
        entries = {name: (entry, True) for name, entry in read_entries(target).items()}
        for name, entry in (adopted_entries(other) if other else {}).items():
            entries.setdefault(name, (entry, False))
        found += [
            InstalledSkill(name, target, entry, other if other and name in other.skills else None, is_ours)
            for name, (entry, is_ours) in sorted(entries.items())
        ]
    return found


def _targets(request: SkillRootsRequest, scope: str | None) -> Iterator[SkillDirectory]:
    if scope != "user":
        yield target_of(request, "project")
    if scope != "project":
        yield target_of(request, "user")
        if request.user_home / ".agents" / "skills" != request.home / "skills":
            yield SkillDirectory(request.user_home / ".agents" / "skills", is_shared=False)


def other_lock(request: SkillRootsRequest, env: Mapping[str, str], target: SkillDirectory) -> OtherLock | None:
    """The other program's lock about a directory of skills, if there is one."""
    if target.is_shared:
        return project_lock(target.root.parents[1], target.root)
    if target.root == request.user_home / ".agents" / "skills":
        return user_lock(env, request.user_home, target.root)
    return None


class SourceCache:
    """Fetches each source once, below a directory."""

    def __init__(self, stage: Path, env: Mapping[str, str]) -> None:
        self._stage = stage
        self._env = env
        self._fetched: dict[tuple[str, str, str | None], Fetched] = {}

    def fetch(self, source: InstallSource) -> Fetched:
        """The files of a whole source. Raises `UserError`."""
        key = (source.kind, source.address, source.ref)
        if key not in self._fetched:
            stage = self._stage / str(len(self._fetched))
            stage.mkdir(mode=0o700, exist_ok=True)
            self._fetched[key] = fetch_source(source, stage, self._env)
        return self._fetched[key]

    def available(self, installed: InstalledSkill, *, at_lock: bool = False) -> tuple[SourceSkill, Fetched]:
        """The version that a source has now; with `at_lock` the one of the lock. Raises `UserError`."""
        entry = installed.entry
        ref = (entry.commit or entry.version or entry.ref) if at_lock else entry.ref
        fetched = self.fetch(source_of(entry.replace(ref=ref)))
        skills = find_skills(fetched.top)
        same = [skill for skill in skills if skill.name == installed.name]
        exact = [skill for skill in same if skill.inner == entry.path]
        if not (exact or len(same) == 1):
            raise UserError(f"the skill `{installed.name}` is not in `{entry.source}` any more")
        found = (exact or same)[0]
        if found.problem:
            raise UserError(f"the skill `{installed.name}` is refused: {found.problem}")
        # The entry keeps the branch or tag that was asked for.
        source = fetched.source._replace(ref=entry.ref)
        return found, fetched._replace(source=source)

    def agreed(self, installed: InstalledSkill) -> Path | None:
        """The files that were agreed to, from the source; None when it does not have them any more."""
        try:
            found, _ = self.available(installed, at_lock=True)
            return found.directory if available_hash(found) == installed.entry.tree_hash else None
        except UserError:
            return None


def available_hash(found: SourceSkill) -> str:
    """The hash that a skill of a source would have once it is installed. Raises `UserError`."""
    try:
        return tree_hash(found.directory, list_tree(found.directory, copying=True))
    except TreeRefused as error:
        raise UserError(f"the skill `{found.name}` is refused: {error}") from None
    except OSError as error:
        raise UserError(f"cannot read `{found.name}`: {(error.strerror or str(error)).lower()}") from error


def store_tree(home: Path, directory: Path) -> Path | None:
    """Keep a copy of a skill's files, to compare with and to go back to; where it is, None when it cannot be kept."""
    store = home / _STORE
    try:
        files = list_tree(directory)
        location = store / tree_hash(directory, files).removeprefix("sha256:")
        if location.exists():
            os.utime(location)
            return location
        with work_directory(store) as stage:
            draft = stage / "tree"
            shutil.copytree(directory, draft, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".git"))
            draft.rename(location)
        stored = sorted(store.glob("[!.]*"), key=lambda path: path.stat().st_mtime_ns)
        for old in stored[:-_MAX_STORED]:
            shutil.rmtree(old, ignore_errors=True)
    except (OSError, TreeRefused, UserError):
        return None
    return location


def stored_tree(home: Path, tree: str) -> Path | None:
    """The kept copy with a hash; None when there is none, or it is not that any more."""
    location = home / _STORE / tree.removeprefix("sha256:")
    return location if is_directory(location) and current_hash(location) == tree else None


def tree_diff(before: Path | None, after: Path | None, *, copying: bool = False) -> str:
    """A unified diff of two versions of a skill, with mode changes. Raises `UserError`."""
    try:
        old, new = _files(before, copying=False), _files(after, copying=copying)
        parts = [
            part
            for path in sorted(old.keys() | new.keys())
            if (part := _file_diff(path, (before, old.get(path)), (after, new.get(path))))
        ]
    except TreeRefused as error:
        raise UserError(f"the files cannot be compared: {error}") from None
    except OSError as error:
        raise UserError(f"the files cannot be compared: {(error.strerror or str(error)).lower()}") from error
    return "".join(parts)


def _files(directory: Path | None, *, copying: bool) -> dict[str, TreeFile]:
    return {file.path: file for file in list_tree(directory, copying=copying)} if directory else {}


def _file_diff(
    path: str, before: tuple[Path | None, TreeFile | None], after: tuple[Path | None, TreeFile | None]
) -> str:
    old, new = (read_file(top, file) if top and file else None for top, file in (before, after))
    modes = [file.mode if file else None for _, file in (before, after)]
    lines = ""
    if None not in modes and modes[0] != modes[1]:
        lines = f"mode of {path}: {modes[0]} -> {modes[1]}\n"
    if old == new:
        return lines
    if any(content and (b"\0" in content or len(content) > _MAX_DIFF_FILE) for content in (old, new)):
        return f"{lines}{path}: {_size(old)} -> {_size(new)}\n"
    texts = [(content or b"").decode("utf-8", "replace") for content in (old, new)]
    names = [f"a/{path}" if old is not None else "/dev/null", f"b/{path}" if new is not None else "/dev/null"]
    text = unified_diff(texts[0], texts[1], old_name=names[0], new_name=names[1])
    return lines + (text if text.endswith("\n") or not text else f"{text}\n")


def _size(content: bytes | None) -> str:
    return "not there" if content is None else f"{len(content)} bytes"


def capabilities_of(directory: Path) -> Capabilities:
    """The capabilities of a directory with a skill. Raises `UserError`."""
    try:
        return read_capabilities(directory)
    except (TreeRefused, OSError) as error:
        raise UserError(f"cannot read `{directory}`: {error}") from None


def capability_lines(before: Capabilities, after: Capabilities) -> Sequence[str]:
    """The capabilities that a new version adds, and those that it drops."""
    return [*(f"+ {line}" for line in after.added_to(before)), *(f"- {line}" for line in before.added_to(after))]
