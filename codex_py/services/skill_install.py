"""Puts skills into a directory and takes them out: copied beside, exchanged in one step, written to `skills.lock`.

At every moment the old or the new skill is there whole, and the lock agrees with either. The next command puts right
whatever a killed program has left.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.errors import UserError
from codex_py.paths import is_directory, lock, sync_directory
from codex_py.services.skill_source import Fetched
from codex_py.skills.capabilities import Capabilities, read_capabilities
from codex_py.skills.lock import NO_HASH, SKILL_NAME, LockEntry, LockRefused, now, read_lock, write_lock
from codex_py.skills.parse import SkillRefused, parse_skill, read_skill_text
from codex_py.skills.service import LOCK_FILE
from codex_py.skills.tree import NOT_COPIED, TreeFile, TreeRefused, check_name, list_tree, read_file, tree_hash

_MAX_DEPTH: Final = 8
_MAX_DIRECTORIES: Final = 20_000
_NOT_SEARCHED: Final = NOT_COPIED | {".git", ".hg", ".svn", ".jj"}
_LOCK_SECONDS: Final = 30.0
_STAGE: Final = ".skills-new-"
# What `replace_private` calls the next version of the lock.
_LOCK_DRAFT: Final = re.compile(r"\.skills-[0-9a-f]{16}")
_EXCHANGE: Final = 2
_AT_FDCWD: Final = -100


class SourceSkill(NamedTuple):
    """A skill in a source; `inner` is its directory there, and `problem` why it cannot be installed."""

    name: str
    directory: Path
    inner: str
    problem: str = ""


class StagedSkill(NamedTuple):
    """A checked copy of a skill that is not in place yet, with the entry that it would have."""

    name: str
    directory: Path
    files: tuple[TreeFile, ...]
    entry: LockEntry

    @property
    def declared(self) -> Capabilities:
        return self.entry.declared


class SkillDirectory(NamedTuple):
    """A directory of skills. `is_shared` says that it belongs to a project."""

    root: Path
    is_shared: bool


def find_skills(top: Path) -> list[SourceSkill]:
    """The skills of a source, by path. Links are not followed; a skill inside another one belongs to that."""
    found: list[SourceSkill] = []
    queue = [(top, 0)]
    for number, (directory, depth) in enumerate(queue):
        if number > _MAX_DIRECTORIES:
            break
        try:
            with os.scandir(directory) as scanned:
                entries = sorted(scanned, key=lambda entry: entry.name)
        except OSError:
            continue
        inner = directory.relative_to(top).as_posix()
        if any(entry.name == "SKILL.md" for entry in entries):
            found.append(_read_skill(directory, "" if inner == "." else inner))
        elif depth < _MAX_DEPTH:
            queue += [
                (Path(entry.path), depth + 1)
                for entry in entries
                if entry.is_dir(follow_symlinks=False) and entry.name not in _NOT_SEARCHED
            ]
    return found


def _read_skill(directory: Path, inner: str) -> SourceSkill:
    try:
        if (directory / "SKILL.md").is_symlink():
            raise TreeRefused("its `SKILL.md` is a link")
        name = parse_skill(read_skill_text(directory / "SKILL.md", None)).name
        check_name(name)
        if not SKILL_NAME.fullmatch(name):
            raise TreeRefused(f"its name `{name}` is not fit for a directory: use letters, digits, `-`, `_` and `.`")
    except (SkillRefused, TreeRefused) as error:
        return SourceSkill(directory.name, directory, inner, str(error))
    return SourceSkill(name, directory, inner)


@contextmanager
def opened_target(target: SkillDirectory) -> Generator[Path, None, None]:
    """Make the directory of skills ready to be changed by this process alone; gives an empty directory inside it.

    Raises `UserError`. Leftovers of killed programs are put right first.
    """
    try:
        target.root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(target.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _failure(target.root, error) from error
    try:
        until = time.monotonic() + _LOCK_SECONDS
        while not lock(descriptor):
            if time.monotonic() > until:
                raise UserError(f"another program is changing the skills in `{target.root}`", hint="try again later")
            time.sleep(0.05)
        settle(target)
        stage = target.root / f"{_STAGE}{os.urandom(6).hex()}"
        try:
            stage.mkdir(mode=0o700)
        except OSError as error:
            raise _failure(stage, error) from error
        try:
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    finally:
        os.close(descriptor)


def stage_skill(found: SourceSkill, fetched: Fetched, stage: Path, *, pinned: bool) -> StagedSkill:
    """Copy a skill to a directory of its name below `stage`, checked. Raises `UserError`."""
    try:
        if found.problem:
            raise TreeRefused(found.problem)
        directory = stage / "skills" / found.name
        directory.mkdir(parents=True)
        files = list_tree(found.directory, copying=True)
        for file in files:
            _copy(found.directory, file, directory)
        copied = list_tree(directory)
        source = fetched.source
        tree = tree_hash(directory, copied)
        entry = LockEntry(
            source.stored,
            source.kind,
            tree,
            now(),
            read_capabilities(directory, copied),
            "/".join(filter(None, (source.path, found.inner))),
            source.ref,
            fetched.commit,
            fetched.version,
            pinned,
            tree,
        )
    except TreeRefused as error:
        raise UserError(f"the skill `{found.name}` is refused: {error}") from None
    except OSError as error:
        raise UserError(f"cannot copy `{found.name}`: {(error.strerror or str(error)).lower()}") from error
    return StagedSkill(found.name, directory, tuple(copied), entry)


def _copy(source: Path, file: TreeFile, target: Path) -> None:
    content = read_file(source, file)
    path = target / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    if file.mode == "120000":
        path.symlink_to(os.fsdecode(content))
        return
    with path.open("xb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    path.chmod(0o755 if file.mode == "100755" else 0o644)


def read_entries(target: SkillDirectory) -> dict[str, LockEntry]:
    """The entries of a directory of skills. Raises `UserError` for a lock that cannot be read."""
    try:
        return read_lock(target.root)
    except LockRefused as error:
        raise UserError(f"cannot read `{target.root / LOCK_FILE}`: {error}", hint="restore it, or delete it") from None


def require_free(target: SkillDirectory, staged: StagedSkill) -> None:
    """Raise `UserError` where something is that this program did not install, or a name that differs only in case."""
    existing = [entry.name for entry in os.scandir(target.root)]
    clash = next((name for name in existing if name != staged.name and name.casefold() == staged.name.casefold()), None)
    if clash:
        raise UserError(f"`{staged.name}` and the installed `{clash}` differ only in case")
    if staged.name not in existing or staged.name in read_entries(target):
        return
    if current_hash(target.root / staged.name) != staged.entry.tree_hash:
        raise UserError(
            f"`{target.root / staged.name}` is there already, and no lock says where it came from",
            hint="move it away, or choose another `--scope`",
        )


def put_in_place(target: SkillDirectory, staged: StagedSkill) -> None:
    """Exchange a skill, or add it. Raises `UserError`, and keeps the old one, on failure.

    The lock names both while the exchange is under way, so that either is what it says.
    """
    entries = read_entries(target)
    location = target.root / staged.name
    old = entries.get(staged.name) or staged.entry.replace(tree_hash=NO_HASH)
    try:
        _write(target, {**entries, staged.name: old.replace(pending=staged.entry)})
        if os.path.lexists(location):
            _exchange(staged.directory, location)
        else:
            staged.directory.rename(location)
        sync_directory(target.root)
        _write(target, {**entries, staged.name: staged.entry})
    except OSError as error:
        with suppress(OSError):
            _write(target, entries)
        raise _failure(location, error) from error


def take_out(target: SkillDirectory, name: str, stage: Path) -> None:
    """Remove a skill and its entry; the files are gone in one step. Raises `UserError`."""
    entries = read_entries(target)
    location = target.root / name
    try:
        if os.path.lexists(location):
            location.rename(stage / "removed")
        _write(target, {key: entry for key, entry in entries.items() if key != name})
    except OSError as error:
        raise _failure(location, error) from error


def record_entry(target: SkillDirectory, name: str, entry: LockEntry) -> None:
    """Write one entry of the lock. Raises `UserError`."""
    try:
        _write(target, {**read_entries(target), name: entry})
    except OSError as error:
        raise _failure(target.root / LOCK_FILE, error) from error


def settle(target: SkillDirectory) -> None:
    """Put right what a killed program has left: entries that were being written, and copies. Raises `UserError`."""
    entries = read_entries(target)
    settled: dict[str, LockEntry] = {}
    for name, entry in entries.items():
        settled[name] = entry
        if entry.pending is None:
            continue
        tree = current_hash(target.root / name)
        if tree == entry.pending.tree_hash:
            settled[name] = entry.pending
        elif entry.tree_hash == NO_HASH:
            del settled[name]
        else:
            settled[name] = entry.replace(pending=None)
    try:
        if settled != entries:
            _write(target, settled)
        for left in _leftovers(target.root):
            shutil.rmtree(left, ignore_errors=True)
    except OSError as error:
        raise _failure(target.root, error) from error


def _leftovers(root: Path) -> Iterator[Path]:
    with os.scandir(root) as entries:
        for entry in entries:
            is_stage = entry.name.startswith(_STAGE) and entry.is_dir(follow_symlinks=False)
            if is_stage:
                yield Path(entry.path)
            elif _LOCK_DRAFT.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                Path(entry.path).unlink(missing_ok=True)


def current_hash(directory: Path) -> str | None:
    """The hash of a skill as it is; None when it is not there or cannot be one."""
    if not is_directory(directory):
        return None
    try:
        return tree_hash(directory, list_tree(directory))
    except (TreeRefused, OSError):
        return None


def _write(target: SkillDirectory, entries: Mapping[str, LockEntry]) -> None:
    write_lock(target.root, entries, shared=target.is_shared)


def _exchange(new: Path, location: Path) -> None:
    """Swap two directories in one step where the system can, else in two."""
    with suppress(AttributeError, OSError):
        library = ctypes.CDLL(None, use_errno=True)
        paths = os.fsencode(new), os.fsencode(location)
        if hasattr(library, "renameat2"):
            if library.renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _EXCHANGE) == 0:
                return
        elif library.renamex_np(*paths, _EXCHANGE) == 0:
            return
    aside = new.with_name(f"{new.name}.old")
    location.rename(aside)
    try:
        new.rename(location)
    except OSError:
        aside.rename(location)
        raise


def _failure(path: Path, error: OSError) -> UserError:
    return UserError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}")
