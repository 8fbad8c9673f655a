"""Bringing files back: a plan made of three states, and the writes that carry it out.

The plan is pure: `target` is what the files were, `known` what they were when the program last looked, and `now` what
they are. A file that differs from what was last known was changed by somebody else since: it is a conflict, and stays.
Each file is written whole under another name and then takes its place; no link is followed, nothing outside written.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Literal, NamedTuple, TypeAlias

from codex_py.checkpoints.entries import (
    Entry,
    is_ordinary,
    is_safe,
    is_same,
    open_directory,
    open_root,
    outermost,
    parent_directory,
)
from codex_py.checkpoints.file_reader import git_hash
from codex_py.checkpoints.snapshot import Snapshot
from codex_py.checkpoints.store import CheckpointStore, Missing
from codex_py.checkpoints.trees import read_blobs
from codex_py.errors import UserError
from codex_py.replace_file import install, opened_like, replace_at
from codex_py.services.git import GitReader

CONFLICT_SUFFIX: Final = b".rewind-conflict"
# So many contents are asked of git, and held, at once.
_PART: Final = 256

StepType: TypeAlias = Literal["restore", "delete", "bring_back", "conflict"]


class Step(NamedTuple):
    """What becomes of a file: `target` is what it shall be, `now` what it is."""

    type: StepType
    root: str
    path: bytes
    target: Entry | None
    now: Entry | None


class Plan(NamedTuple):
    """`missing` are files whose content is gone, `uncovered` those that were never stored; both stay as they are."""

    steps: tuple[Step, ...]
    missing: tuple[tuple[str, bytes], ...] = ()
    uncovered: tuple[tuple[str, bytes], ...] = ()

    def paths(self, type_: StepType) -> list[tuple[str, bytes]]:
        return [(step.root, step.path) for step in self.steps if step.type == type_]


Files: TypeAlias = Mapping[bytes, Entry | None]


def plan_root(
    root: str, target: Files, known: Sequence[Files], now: Files
) -> tuple[list[Step], list[tuple[str, bytes]]]:
    """The steps for one root, and the files that cannot be restored because they were never stored.

    A file that is in none of the `known` states is a conflict. Without any nobody can say what changed since, and
    nothing is one.
    """
    steps: list[Step] = []
    uncovered: list[tuple[str, bytes]] = []
    for path in sorted(target.keys() | now.keys()):
        wanted, current = target.get(path), now.get(path)
        if is_same(wanted, current) or not is_safe(path):
            continue
        if wanted is not None and not wanted.is_covered:
            uncovered.append((root, path))
        elif known and not any(is_same(state.get(path), current) for state in known):
            steps.append(Step("conflict", root, path, wanted, current))
        elif current is not None and not current.is_covered:
            # It could not come back by a second rewind.
            uncovered.append((root, path))
        elif wanted is None:
            steps.append(Step("delete", root, path, None, current))
        else:
            steps.append(Step("restore" if current is not None else "bring_back", root, path, wanted, current))
    return steps, uncovered


class Contents:
    """The contents of files in snapshots: those of the store, and those that git has."""

    def __init__(self, store: CheckpointStore, git_for: Mapping[str, GitReader]) -> None:
        self._store = store
        self._git_for = git_for
        self._blobs: dict[tuple[str, bytes], bytes | None] = {}

    def load(self, root: str, entries: Iterable[Entry]) -> None:
        """Ask git for what only it has, in one go."""
        wanted = [
            entry.oid for entry in entries if not entry.stored and entry.oid and (root, entry.oid) not in self._blobs
        ]
        if not wanted:
            return
        git = self._git_for.get(root)
        found: Mapping[bytes, bytes | None] = {}
        if git is not None:
            with suppress(UserError):
                found = read_blobs(git, wanted)
        for oid in wanted:
            content = found.get(oid)
            # Repositories may name their contents by another hash than SHA-1; those are taken as they are.
            is_right = content is not None and (len(oid) != 40 or git_hash(content) == oid)
            self._blobs[(root, oid)] = content if is_right else None

    def of(self, root: str, entry: Entry) -> bytes | None:
        """The content of a file; None for one that is gone."""
        if entry.stored:
            try:
                return self._store.get(entry.stored.decode())
            except Missing:
                return None
        self.load(root, [entry])
        return self._blobs[(root, entry.oid)]

    def forget(self) -> None:
        self._blobs.clear()


def check_contents(plan: Plan, contents: Contents) -> Plan:
    """The plan without the steps whose content is gone, which `missing` names."""
    missing: list[tuple[str, bytes]] = []
    steps: list[Step] = []
    for root in dict.fromkeys(step.root for step in plan.steps):
        own = [step for step in plan.steps if step.root == root]
        for part in _in_parts([step for step in own if step.type in ("restore", "bring_back")]):
            contents.load(root, [step.target for step in part if step.target is not None])
            gone = {step.path for step in part if step.target and contents.of(root, step.target) is None}
            missing += [(root, step.path) for step in part if step.path in gone]
            contents.forget()
        lost = {path for where, path in missing if where == root}
        steps += [step for step in own if step.path not in lost]
    return plan._replace(steps=tuple(steps), missing=tuple(missing))


def _in_parts(steps: Sequence[Step]) -> list[Sequence[Step]]:
    return [steps[start : start + _PART] for start in range(0, len(steps), _PART)]


class WriteRules(NamedTuple):
    """How a plan is carried out. `roots` are all of the target's, and `permanent` directories that stay when empty.

    With `copies_conflicts` the files in conflict are restored too, and what they are is left beside them.
    """

    roots: tuple[str, ...]
    permanent: tuple[str, ...]
    draft_prefix: bytes
    copies_conflicts: bool = False


def apply_plan(plan: Plan, contents: Contents, rules: WriteRules) -> Plan:
    """Carry a plan out; gives back what became of it: a file that changed meanwhile is a conflict now.

    Raises `UserError` where the disk is full or a file cannot be written; what was written by then stays.
    """
    outcome: list[Step] = []
    for root in dict.fromkeys(step.root for step in plan.steps):
        own = [step for step in plan.steps if step.root == root]
        top = os.fsencode(outermost(rules.roots, root))
        try:
            directory = open_root(os.fsencode(root), top, make=any(step.target for step in own))
        except (NotADirectoryError, FileNotFoundError):
            # Something else is there now, or on the way to it.
            outcome += [step._replace(type="conflict") for step in own]
            continue
        except OSError as error:
            raise UserError(f"cannot open `{root}`: {(error.strerror or str(error)).lower()}", status=1) from error
        try:
            writer = _Writer(directory, root, contents, rules)
            # What is in the way goes first: a file where a directory was, or the other way round.
            outcome += [writer.carry_out(step) for step in own if step.target is None]
            for part in _in_parts([step for step in own if step.target is not None]):
                contents.load(root, [step.target for step in part if step.target is not None])
                outcome += [writer.carry_out(step) for step in part]
                contents.forget()
        finally:
            os.close(directory)
    return plan._replace(steps=tuple(sorted(outcome, key=lambda step: (step.root, step.path))))


class _Writer:
    def __init__(self, directory: int, root: str, contents: Contents, rules: WriteRules) -> None:
        self._directory = directory
        self._root = root
        self._contents = contents
        self._rules = rules

    def carry_out(self, step: Step) -> Step:
        if step.type == "conflict" and not self._rules.copies_conflicts:
            return step
        if step.target is not None and self._contents.of(self._root, step.target) is None:
            return step._replace(type="conflict")
        try:
            if step.type == "conflict":
                self._set_aside(step.path)
            elif not self._is_as_planned(step):
                return step._replace(type="conflict")
            if step.target is None:
                self._remove(step.path)
            else:
                self._write(step.path, step.target)
        except (NotADirectoryError, IsADirectoryError, FileExistsError) as error:
            # Something else is there now, or on the way.
            return step._replace(type="conflict") if error.errno else step
        except OSError as error:
            if error.errno in (39, 40):  # a directory that is not empty, a link on the way
                return step._replace(type="conflict")
            shown = os.fsdecode(step.path)
            raise UserError(
                f"cannot write `{shown}` in `{self._root}`: {(error.strerror or str(error)).lower()}",
                hint="what was restored by then stays; `--to latest` undoes it",
                status=1,
            ) from error
        return step

    def _is_as_planned(self, step: Step) -> bool:
        """Whether the file is what it was when the plan was made, by its content."""
        try:
            with parent_directory(self._directory, step.path) as (directory, name):
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if not is_ordinary(status.st_mode):
                    return step.now is None and stat.S_ISDIR(status.st_mode)
                if step.now is None or status.st_mode != step.now.mode:
                    return False
                if stat.S_ISLNK(status.st_mode):
                    content = os.readlink(name, dir_fd=directory)
                else:
                    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
                    with os.fdopen(descriptor, "rb") as file:
                        content = file.read()
        except (FileNotFoundError, NotADirectoryError):
            return step.now is None
        expected = step.now
        if expected.oid:
            return len(expected.oid) != 40 or git_hash(content) == expected.oid
        return self._contents.of(self._root, expected) == content

    def _remove(self, path: bytes) -> None:
        with suppress(FileNotFoundError), parent_directory(self._directory, path) as (directory, name):
            os.unlink(name, dir_fd=directory)
        parent = path.rpartition(b"/")[0]
        while parent and f"{self._root}/{os.fsdecode(parent)}" not in self._rules.permanent:
            try:
                with parent_directory(self._directory, parent) as (directory, name):
                    os.rmdir(name, dir_fd=directory)
            except OSError:
                return
            parent = parent.rpartition(b"/")[0]

    def _write(self, path: bytes, target: Entry) -> None:
        content = self._contents.of(self._root, target)
        assert content is not None  # checked by the caller
        with parent_directory(self._directory, path, make=True) as (directory, name):
            draft = os.fsdecode(self._rules.draft_prefix) + os.urandom(8).hex()
            with suppress(OSError):
                # Empty directories where the file was: these do not count.
                _remove_empty(directory, name)
            if stat.S_ISLNK(target.mode):
                os.symlink(content, draft, dir_fd=directory)
                install(directory, draft, os.fsdecode(name))
            else:
                mode = stat.S_IMODE(target.mode)
                replace_at(directory, os.fsdecode(name), draft, content, mode=mode)
                with opened_like(directory, os.fsdecode(name)) as written:
                    # One that was rewritten in place has kept its own.
                    if written is not None and stat.S_IMODE(os.fstat(written).st_mode) != mode:
                        os.fchmod(written, mode)

    def _set_aside(self, path: bytes) -> None:
        with suppress(FileNotFoundError), parent_directory(self._directory, path) as (directory, name):
            aside, number = name + CONFLICT_SUFFIX, 1
            while _is_taken(directory, aside):
                number += 1
                aside = name + CONFLICT_SUFFIX + b"-%d" % number
            os.rename(name, aside, src_dir_fd=directory, dst_dir_fd=directory)


def _remove_empty(directory: int, name: bytes) -> None:
    """Remove a directory in which there are only directories. Raises `OSError` for any other."""
    inner = open_directory(name, directory)
    try:
        with os.scandir(inner) as entries:
            names = [os.fsencode(entry.name) for entry in entries]
        for below in names:
            _remove_empty(inner, below)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=directory)


def _is_taken(directory: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def moved_heads(target: Snapshot, now: Snapshot) -> list[str]:
    """A line for each repository whose HEAD has moved since, with the command that moves it back."""
    return [
        f"HEAD of `{root}` has moved since and stays where it is; "
        f"`git -C {root} {_command_to(target.head(root))}` moves the branch back"
        for root in target.roots
        if now.has(root) and target.is_git(root) and target.head(root) != now.head(root)
    ]


def _command_to(commit: str) -> str:
    """The command of git that moves a branch to a commit; before the first one there is none."""
    return f"reset --soft {commit}" if commit else "update-ref -d HEAD"
