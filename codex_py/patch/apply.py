"""Bringing a planned patch to disk: every file old or new at any moment, and all of them or none.

All new contents are staged beside their targets first (temporary file, fsync); then each is renamed into place, or
written into the file where a rename would not leave it the same file (`replace_file`). A failure in between puts back
what was already in place. Only a kill between two files can leave some new and others old.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from codex_py.errors import ToolError
from codex_py.patch.files import identity_of
from codex_py.patch.plan import FileWrite, PatchPlan, plan_patch
from codex_py.paths import opened_directory
from codex_py.replace_file import NotRestored, install, is_writable, opened_like, replace_at, rewrite, stage

__all__ = ["ApplyError", "apply_plan", "plan_patch"]

_TEMPORARY: Final = ".codex-patch-"


class ApplyError(ToolError):
    """The files could not be written; the message says what was changed and what was not."""


def apply_plan(plan: PatchPlan, *, checkpoint: Callable[[], None] | None = None) -> None:
    """Write what was planned. Raise `ApplyError` when a file cannot be written or is no longer what was planned for.

    `checkpoint` is called before the first step on disk and between any two, but not after the last; when it raises,
    everything is put back and its exception goes on.
    """
    transaction = _Transaction(plan.writes, checkpoint or _go_on)
    try:
        transaction.run()
    except BaseException as error:
        unrestored = transaction.undo()
        if isinstance(error, NotRestored):
            unrestored.append(transaction.at)
        if not isinstance(error, OSError):
            raise
        raise ApplyError(_failure(transaction.at, error, unrestored, plan.writes)) from error
    transaction.finish()


def _go_on() -> None:
    pass


class _Step:
    """One file on its way. The names are of temporary files beside it: the new content, and the old file."""

    def __init__(self, write: FileWrite) -> None:
        self.write = write
        self.staged: str | None = None
        self.saved: str | None = None
        self.rewritten: bytes | None = None
        """The old content of a file that was rewritten in place."""
        self.is_link = False
        """Whether `staged` is another name of the file that is moved, and not a new file."""
        self.done = False


class _Transaction:
    def __init__(self, writes: Sequence[FileWrite], checkpoint: Callable[[], None]) -> None:
        self.at = writes[0].path if writes else Path("/")
        self._steps = [_Step(write) for write in writes]
        directories = {directory for write in writes for directory in write.path.parents}
        # A file that a directory is to stand in place of goes before anything can be staged there.
        self._giving_way = [step for step in self._steps if step.write.path in directories]
        self._checkpoint = checkpoint
        self._made: list[Path] = []

    def run(self) -> None:
        gone = {step.write.path for step in self._giving_way}
        blocked = [step for step in self._steps if not gone.isdisjoint(step.write.path.parents)]
        self._stage_all(step for step in self._steps if step not in blocked)
        self._replace(self._giving_way)
        self._stage_all(blocked)
        self._replace(step for step in self._steps if step not in self._giving_way)

    def _stage_all(self, steps: Iterable[_Step]) -> None:
        for step in steps:
            if step.write.after is not None:
                self._enter(step)
                self._stage(step, step.write.after)

    def _replace(self, steps: Iterable[_Step]) -> None:
        for step in steps:
            self._enter(step)
            with opened_directory(step.write.path.parent) as directory:
                # A file with several names that was moved already is the same one under its old name.
                if step.write.path not in [other.write.moved for other in self._steps if other.is_link and other.done]:
                    _check_unchanged(step.write, directory)
                if self._save(step, directory):
                    self._checkpoint()
                self._install(step, directory)

    def finish(self) -> None:
        """Make the new names durable and drop the old files."""
        self._sync_directories()
        for step in self._steps:
            # Renaming a file to another of its own names leaves both.
            for name in (step.saved, step.staged if step.is_link else None):
                if name is not None:
                    _remove(step.write.path.parent, name)

    def undo(self) -> list[Path]:
        """Put back every file already replaced. Give back those that could not be."""
        unrestored = self._undo_steps(step for step in reversed(self._steps) if step not in self._giving_way)
        for directory in reversed(self._made):
            with suppress(OSError), opened_directory(directory.parent) as parent:
                os.rmdir(directory.name, dir_fd=parent)
        return unrestored + self._undo_steps(self._giving_way)

    def _undo_steps(self, steps: Iterable[_Step]) -> list[Path]:
        unrestored: list[Path] = []
        for step in steps:
            try:
                if step.done:
                    _put_back(step)
            except OSError:
                unrestored.append(step.write.path)
            for name in (step.staged, step.saved):
                if name is not None and step.write.path not in unrestored:
                    _remove(step.write.path.parent, name)
        return unrestored

    def _enter(self, step: _Step) -> None:
        self.at = step.write.path
        self._checkpoint()

    def _stage(self, step: _Step, content: bytes) -> None:
        write, before = step.write, step.write.before
        with opened_directory(write.path.parent, self._made) as directory:
            if before is not None and before.regular and not is_writable(directory, write.path.name):
                raise PermissionError(0, "the file is read-only")
            draft = _temporary_name()
            step.is_link = write.moved is not None and _link(write.moved, directory, draft)
            with _opened(write.moved) if write.moved else opened_like(directory, write.path.name) as like:
                if step.is_link or stage(directory, draft, content, mode=write.mode, like=like):
                    step.staged = draft

    def _save(self, step: _Step, directory: int) -> bool:
        """Keep the old file under a second name until all is done."""
        # One write alone needs no way back: its rename is the last thing that can fail.
        if step.write.before is None or step.write.after is None or len(self._steps) == 1:
            return False
        step.saved = _temporary_name()
        try:
            os.link(step.write.path.name, step.saved, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        except OSError:
            # Not every file system has hard links; the content read for the plan is the second best.
            step.saved = None
        return step.saved is not None

    def _install(self, step: _Step, directory: int) -> None:
        name, after = step.write.path.name, step.write.after
        if after is None:
            step.saved = _temporary_name()
            os.rename(name, step.saved, src_dir_fd=directory, dst_dir_fd=directory)
        elif step.staged is None:
            step.rewritten = rewrite(directory, name, after)
        else:
            step.rewritten = install(directory, step.staged, name)
        step.done = True
        if step.is_link and step.rewritten is None and after is not None:
            step.rewritten = rewrite(directory, name, after)

    def _sync_directories(self) -> None:
        for path in {step.write.path.parent for step in self._steps} | {made.parent for made in self._made}:
            with suppress(OSError), opened_directory(path) as directory:
                descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)


def _check_unchanged(write: FileWrite, directory: int) -> None:
    try:
        found = identity_of(os.stat(write.path.name, dir_fd=directory, follow_symlinks=False))
    except FileNotFoundError:
        found = None
    if found != (write.before.identity if write.before else None):
        raise OSError(0, "it changed on disk in the meantime; read it again")


def _put_back(step: _Step) -> None:
    path, before = step.write.path, step.write.before
    with opened_directory(path.parent) as directory:
        if step.rewritten is not None:
            rewrite(directory, path.name, step.rewritten)
            if not step.is_link:
                return
        if before is None:
            os.unlink(path.name, dir_fd=directory)
        elif step.saved is not None:
            os.rename(step.saved, path.name, src_dir_fd=directory, dst_dir_fd=directory)
        elif before.content is None:
            raise FileNotFoundError(path)
        else:
            replace_at(directory, path.name, _temporary_name(), before.content, mode=before.mode)


@contextmanager
def _opened(file: Path) -> Generator[int | None, None, None]:
    """`opened_like` for a path; None as well where an earlier write of the patch has taken its directory."""
    with ExitStack() as stack:
        try:
            directory = stack.enter_context(opened_directory(file.parent))
        except OSError:
            yield None
            return
        yield stack.enter_context(opened_like(directory, file.name))


def _link(file: Path, directory: int, name: str) -> bool:
    """Give a file that has several names one more, so that it stays the same file when it is moved."""
    try:
        with opened_directory(file.parent) as own:
            if os.stat(file.name, dir_fd=own, follow_symlinks=False).st_nlink < 2:
                return False
            os.link(file.name, name, src_dir_fd=own, dst_dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return True


def _remove(directory: Path, name: str) -> None:
    with suppress(OSError), opened_directory(directory) as descriptor:
        os.unlink(name, dir_fd=descriptor)


def _temporary_name() -> str:
    return _TEMPORARY + os.urandom(8).hex()


def _failure(path: Path, error: OSError, unrestored: Sequence[Path], writes: Sequence[FileWrite]) -> str:
    reason = (error.strerror or str(error)).lower()
    verb = "delete" if any(write.path == path and write.after is None for write in writes) else "write"
    lead = f"Failed to {verb} file {path}: {reason}"
    if not unrestored:
        return f"{lead}\nnothing was changed"
    changed = "\n".join(f"  {path}" for path in unrestored)
    others = "\n".join(f"  {write.path}" for write in writes if write.path not in unrestored)
    return f"{lead}\nchanged, and could not be put back:\n{changed}\nnot changed:\n{others or '  (none)'}"
