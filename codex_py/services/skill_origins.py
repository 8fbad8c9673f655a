"""The installed skills of a directory: which there are, what their sources have now, and keeping what is replaced."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.errors import UserError
from codex_py.paths import is_directory
from codex_py.services.skill_install import SkillDirectory, SourceSkill, current_hash, find_skills
from codex_py.services.skill_source import Fetched, InstallSource, fetch_source, source_of
from codex_py.services.work_directory import work_directory
from codex_py.skills.capabilities import Capabilities, read_capabilities
from codex_py.skills.lock_file import content_hash, locked_hash, locked_skills, project_lock, user_lock
from codex_py.skills.records import InstallRecord
from codex_py.skills.roots import SkillRootsRequest
from codex_py.skills.tree import TreeFile, TreeRefused, list_tree, read_file, tree_hash
from codex_py.text.diff import unified_diff
from codex_py.text.files import os_reason

_STORE: Final = Path("cache", "skill-trees")
_MAX_STORED: Final = 200
_MAX_DIFF_FILE: Final = 256 * 1024


class InstalledSkill(NamedTuple):
    """A skill with a known source."""

    name: str
    target: SkillDirectory
    record: InstallRecord
    """With an empty hash when nobody has agreed to the skill on this machine."""
    lock_hash: str = ""
    """The hash in the project's lock file."""

    @property
    def directory(self) -> Path:
        return self.target.root / self.name

    @property
    def is_edited(self) -> bool:
        """Whether its files are there and are not those that were agreed to."""
        current = current_hash(self.directory)
        return bool(self.record.tree_hash) and current is not None and current != self.record.tree_hash

    @property
    def is_as_locked(self) -> bool:
        """Whether its files are those of the project's lock file, or else of the record. Raises `UserError`."""
        current = current_hash(self.directory)
        if self.lock_hash and current:
            return content_hash(self.directory) == self.lock_hash
        return current is not None and current == (self.record.tree_hash or current)

    @property
    def scope(self) -> str:
        return "project" if self.target.is_shared else "user"


def target_of(request: SkillRootsRequest, scope: str, env: Mapping[str, str]) -> SkillDirectory:
    """Where skills are installed, `user` or `project`. Raises `UserError` when the project's leads out of it."""
    # A command in the sandbox could not write records, and must not.
    has_records = not env.get("CODEX_SANDBOX")
    if scope != "project":
        root, lock = request.user_home / ".agents" / "skills", user_lock(env, request.user_home)
        return SkillDirectory(root, False, request.home, lock, has_records)
    project = Path(os.path.realpath(request.project_root or request.cwd))
    root = project / ".agents" / "skills"
    if not Path(os.path.realpath(root)).is_relative_to(project):
        raise UserError(f"`{root}` is a link that leads out of the project")
    return SkillDirectory(root, True, request.home, project_lock(project), has_records)


def targets(request: SkillRootsRequest, env: Mapping[str, str], scope: str | None = None) -> Iterator[SkillDirectory]:
    """The directories with installed skills: the project's, the user's, and where 0.1 installed those of the user."""
    if scope != "user":
        yield target_of(request, "project", env)
    if scope != "project":
        user = target_of(request, "user", env)
        yield user
        yield user._replace(root=request.home / "skills", lock=None)


def installed_skills(
    request: SkillRootsRequest, env: Mapping[str, str], scope: str | None = None
) -> list[InstalledSkill]:
    """The skills of both scopes, or of one, whose source is known: project first, then by name. Raises `UserError`.

    A lock file names the source, and a record of the same source what was agreed to.
    """
    found: list[InstalledSkill] = []
    for target in targets(request, env, scope):
        records = target.records()
        locked = locked_skills(target.lock) if target.lock else {}
        for name in sorted({**records, **locked}):
            record, entry = records.get(name), locked.get(name)
            if record is None or (entry and (entry.source, entry.ref) != (record.source, record.ref)):
                assert entry is not None
                agreed = {"tree_hash": record.tree_hash, "declared": record.declared} if record else {}
                record = entry.replace(**agreed)
            lock_hash = locked_hash(target.lock, name) if entry and target.is_shared and target.lock else ""
            found.append(InstalledSkill(name, target, record, lock_hash))
    return found


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

    def available(self, installed: InstalledSkill, *, ref: str | None = None) -> tuple[SourceSkill, Fetched]:
        """The version that a source has now; with `ref` the one of that commit. Raises `UserError`."""
        record = installed.record
        fetched = self.fetch(source_of(record.replace(ref=ref or record.ref)))
        same = [skill for skill in find_skills(fetched.top) if skill.name == installed.name]
        exact = [skill for skill in same if skill.inner == record.path]
        if not (exact or len(same) == 1):
            raise UserError(f"the skill `{installed.name}` is not in `{record.source}` any more")
        found = (exact or same)[0]
        if found.problem:
            raise UserError(f"the skill `{installed.name}` is refused: {found.problem}")
        # The record keeps the branch or tag that was asked for.
        return found, fetched._replace(source=fetched.source._replace(ref=record.ref))

    def locked(self, installed: InstalledSkill) -> tuple[SourceSkill, Fetched]:
        """The version of the lock file, or of the record. Raises `UserError` where the source does not have it."""
        record = installed.record
        for ref in dict.fromkeys((record.commit, record.ref)):
            found, fetched = self.available(installed, ref=ref)
            is_same = (
                content_hash(found.directory) == installed.lock_hash
                if installed.lock_hash
                else available_hash(found) == record.tree_hash or not record.tree_hash
            )
            if is_same:
                return found, fetched
        raise UserError(
            f"the skill `{installed.name}` in `{record.source}` is not the one of the lock",
            hint="`codex-py skills update` takes the new one",
        )


def available_hash(found: SourceSkill) -> str:
    """The hash that a skill of a source would have once it is installed. Raises `UserError`."""
    try:
        return tree_hash(found.directory, list_tree(found.directory, copying=True))
    except TreeRefused as error:
        raise UserError(f"the skill `{found.name}` is refused: {error}") from None
    except OSError as error:
        raise UserError(f"cannot read `{found.name}`: {os_reason(error)}") from error


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


def tree_diff(before: Path, after: Path) -> str:
    """A unified diff of two versions of a skill, with mode changes. Raises `UserError`."""
    try:
        old, new = ({file.path: file for file in list_tree(top)} for top in (before, after))
        parts = [_file_diff(path, (before, old.get(path)), (after, new.get(path))) for path in sorted({**old, **new})]
    except TreeRefused as error:
        raise UserError(f"the files cannot be compared: {error}") from None
    except OSError as error:
        raise UserError(f"the files cannot be compared: {os_reason(error)}") from error
    return "".join(parts)


def _file_diff(path: str, before: tuple[Path, TreeFile | None], after: tuple[Path, TreeFile | None]) -> str:
    old, new = (read_file(top, file) if file else None for top, file in (before, after))
    modes = [file.mode for _, file in (before, after) if file]
    lines = f"mode of {path}: {modes[0]} -> {modes[1]}\n" if len(set(modes)) == 2 else ""
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
