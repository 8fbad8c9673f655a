"""Puts skills into a directory and takes them out: copied beside, exchanged in one step, recorded in CODEX_HOME.

At every moment the old or the new skill is there whole, and its record agrees with either. The next command puts right
whatever a killed program has left.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.errors import UserError
from codex_py.paths import draft_prefix, is_directory, lock, sync_directory
from codex_py.services.skill_source import Fetched
from codex_py.skills.capabilities import read_capabilities
from codex_py.skills.lock_file import LockFile, drop_entry, put_entry
from codex_py.skills.parse import SkillRefused, parse_skill, read_skill_text
from codex_py.skills.records import (
    NO_HASH,
    SKILL_NAME,
    InstallRecord,
    RecordsRefused,
    now,
    read_records,
    records_file,
    write_records,
)
from codex_py.skills.tree import NOT_COPIED, TreeFile, TreeRefused, check_name, list_tree, read_file, tree_hash

_MAX_DEPTH: Final = 8
_MAX_DIRECTORIES: Final = 20_000
_NOT_SEARCHED: Final = NOT_COPIED | {".git", ".hg", ".svn", ".jj"}
_LOCK_SECONDS: Final = 30.0
_STAGE: Final = ".skills-new-"
_EXCHANGE: Final = 2
_AT_FDCWD: Final = -100


class SourceSkill(NamedTuple):
    """A skill in a source; `inner` is its directory there, and `problem` why it cannot be installed."""

    name: str
    directory: Path
    inner: str
    problem: str = ""


class StagedSkill(NamedTuple):
    """A checked copy of a skill that is not in place yet, with the record that it would have."""

    name: str
    directory: Path
    files: tuple[TreeFile, ...]
    record: InstallRecord


class SkillDirectory(NamedTuple):
    """A directory of skills."""

    root: Path
    is_shared: bool
    """It belongs to a project."""
    home: Path
    """CODEX_HOME, with the records."""
    lock: LockFile | None = None
    """The lock file that other programs share."""
    has_records: bool = True
    """False in the sandbox, where a command of the model must agree to nothing."""

    def records(self) -> dict[str, InstallRecord]:
        """The records of its skills. Raises `UserError`."""
        try:
            return read_records(records_file(self.home, self.root)) if self.has_records else {}
        except RecordsRefused as error:
            raise UserError(str(error), hint="restore it, or delete it") from None


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
        if target.lock:
            target.lock.document()  # one that cannot be read stops here
        _settle(target)
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
        record = InstallRecord(
            source.stored,
            source.kind,
            tree,
            now(),
            read_capabilities(directory, copied),
            "/".join(filter(None, (source.path, found.inner))),
            source.ref,
            fetched.commit,
            pinned,
            tree,
        )
    except TreeRefused as error:
        raise UserError(f"the skill `{found.name}` is refused: {error}") from None
    except OSError as error:
        raise UserError(f"cannot copy `{found.name}`: {(error.strerror or str(error)).lower()}") from error
    return StagedSkill(found.name, directory, tuple(copied), record)


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


def require_free(target: SkillDirectory, staged: StagedSkill) -> None:
    """Raise `UserError` where something is that was not installed, or a name that differs only in case."""
    existing = [entry.name for entry in os.scandir(target.root)]
    clash = next((name for name in existing if name != staged.name and name.casefold() == staged.name.casefold()), None)
    if clash:
        raise UserError(f"`{staged.name}` and the installed `{clash}` differ only in case")
    locked = target.lock.skills() if target.lock else {}
    if staged.name not in existing or staged.name in target.records() or staged.name in locked:
        return
    if current_hash(target.root / staged.name) != staged.record.tree_hash:
        raise UserError(
            f"`{target.root / staged.name}` is there already, and nothing says where it came from",
            hint="move it away, or choose another `--scope`",
        )


def put_in_place(target: SkillDirectory, staged: StagedSkill) -> None:
    """Exchange a skill, or add it. Raises `UserError`, and keeps the old one, on failure.

    The records name both while the exchange is under way, so that either is what they say.
    """
    records = target.records()
    location = target.root / staged.name
    old = records.get(staged.name) or staged.record.replace(tree_hash=NO_HASH)
    try:
        _write(target, {**records, staged.name: old.replace(pending=staged.record)})
        if os.path.lexists(location):
            _exchange(staged.directory, location)
        else:
            staged.directory.rename(location)
        sync_directory(target.root)
    except OSError as error:
        with suppress(OSError):
            _write(target, records)
        raise _failure(location, error) from error
    record_skill(target, staged.name, staged.record)


def record_skill(target: SkillDirectory, name: str, record: InstallRecord) -> None:
    """Write the record of a skill in its place, and its entry in the lock file. Raises `UserError`."""
    if target.lock:
        put_entry(target.lock, name, record, target.root / name)
    try:
        _write(target, {**target.records(), name: record})
    except OSError as error:
        raise _failure(records_file(target.home, target.root), error) from error


def take_out(target: SkillDirectory, name: str, stage: Path) -> None:
    """Remove a skill and all that is written of it; the files are gone in one step. Raises `UserError`."""
    location = target.root / name
    try:
        if os.path.lexists(location):
            location.rename(stage / "removed")
        _write(target, {key: record for key, record in target.records().items() if key != name})
    except OSError as error:
        raise _failure(location, error) from error
    if target.lock:
        drop_entry(target.lock, name)


def _settle(target: SkillDirectory) -> None:
    """Put right what a killed program has left: records that were being written, and copies. Raises `UserError`."""
    records = target.records()
    try:
        for name, record in records.items():
            if record.pending is None:
                continue
            if current_hash(target.root / name) == record.pending.tree_hash:
                record_skill(target, name, record.pending)
            elif record.tree_hash == NO_HASH:
                _write(target, {key: other for key, other in target.records().items() if key != name})
            else:
                _write(target, {**target.records(), name: record.replace(pending=None)})
        for left in target.root.glob(f"{_STAGE}*"):
            shutil.rmtree(left, ignore_errors=True)
        for file in (records_file(target.home, target.root), *([target.lock.path] if target.lock else [])):
            for draft in file.parent.glob(f"{draft_prefix(file.name)}*"):
                draft.unlink(missing_ok=True)
    except OSError as error:
        raise _failure(target.root, error) from error


def current_hash(directory: Path) -> str | None:
    """The hash of a skill as it is; None when it is not there or cannot be one."""
    if not is_directory(directory):
        return None
    try:
        return tree_hash(directory, list_tree(directory))
    except (TreeRefused, OSError):
        return None


def _write(target: SkillDirectory, records: Mapping[str, InstallRecord]) -> None:
    if target.has_records:
        write_records(target.home, target.root, records)


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
