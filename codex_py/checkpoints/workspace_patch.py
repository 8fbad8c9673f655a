"""The changes of a run to the files of its workspace, by patches and by commands, as a patch for `git apply`."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.checkpoints.entries import Entry, outermost
from codex_py.checkpoints.restore import Contents
from codex_py.checkpoints.rewind import git_readers
from codex_py.checkpoints.session import caps_of
from codex_py.checkpoints.snapshot import Change, Photographer, Snapshot, area_of, changes_between, load_snapshot
from codex_py.checkpoints.store import CheckpointStore
from codex_py.config.sections import CheckpointsConfig
from codex_py.errors import UserError
from codex_py.paths import make_private_dir
from codex_py.programs import ProbeResults, program_finder
from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.encoding import as_object
from codex_py.protocol.policy import SandboxPolicy, extra_roots
from codex_py.services.git import git_argv, git_env, settings_argv
from codex_py.services.git_process import run_git

_NOTE: Final = "states.json"
_SECONDS: Final = 60.0
# Only what is asked for here, whatever the configuration of the user or the machine says.
_ENV: Final = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1", "LC_ALL": "C"}
_SETTINGS: Final = {"core.quotePath": "true", "core.attributesFile": os.devnull, "diff.noprefix": "false"}
_DIFF: Final = ("--binary", "--full-index", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv")
_DIFF_PREFIXES: Final = ("--src-prefix=a/", "--dst-prefix=b/")


class WorkspacePatch(NamedTuple):
    """`files` are the changed paths in the patch and what was done to each: `add`, `update` or `delete`.

    Paths are relative to `root`, the top of the repository. `left_out` names changed files that the patch does not
    have: too large, unreadable, or outside of `root`.
    """

    root: str
    patch: bytes
    files: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]


class WorkspaceStates:
    """The states of a workspace before tasks, by the tasks' keys, kept in `directory` until `forget`.

    `moved` are directories that were elsewhere then: the path before, and now. Blocks: for a thread.
    """

    def __init__(
        self,
        directory: Path,
        settings: CheckpointsConfig,
        env: Mapping[str, str],
        *,
        cwd: Path,
        policy: SandboxPolicy,
        excluded: Sequence[Path],
    ) -> None:
        """`excluded` are directories in which nothing is work of the task."""
        self._store = CheckpointStore(directory)
        self._known = ProbeResults()
        self._photographer = Photographer(self._store, env, caps_of(settings), known=self._known)
        self._env = env
        self._cwd = cwd
        self._policy = policy
        self._excluded = tuple(f"{path}/" for path in excluded)
        self.moved: Sequence[tuple[str, str]] = ()

    def note_start(self, task: str) -> None:
        """Put the state before a task on record, unless an earlier run of the task has. Raises `OSError`."""
        names = self._names()
        if task not in names:
            self._store.write_note(_NOTE, json.dumps({**names, task: self._take().name}).encode())

    def patch_of(self, task: str) -> WorkspacePatch:
        """The changes since the task began. Raises `UserError` when that cannot be known, and `OSError`."""
        name = self._names().get(task)
        if name is None:
            raise UserError("the files before the task are not on record")
        return self._patch(self._load(name), self._take())

    def forget(self) -> None:
        """Remove everything on record."""
        shutil.rmtree(self._store.directory, ignore_errors=True)

    def _names(self) -> dict[str, str]:
        try:
            return {key: str(value) for key, value in as_object(json.loads(self._store.read_note(_NOTE))).items()}
        except ValueError:
            return {}

    def _load(self, name: str) -> Snapshot:
        snapshot = load_snapshot(self._store, name)
        if not self.moved:
            return snapshot
        content = as_object(json.loads(self._store.get(name)))
        roots = [{**root, "path": mapped_path(str(root["path"]), self.moved)} for root in content["roots"]]
        return Snapshot(name, self._store, {**content, "roots": roots})

    def _take(self) -> Snapshot:
        area = area_of(self._cwd, self._policy, self._cwd)._replace(excluded=self._excluded, whole_tree=True)
        return self._photographer.take(area, self._policy, {})

    def _patch(self, before: Snapshot, after: Snapshot) -> WorkspacePatch:
        root = outermost(before.roots, str(self._cwd))
        if not before.has(root):
            raise UserError("the task began in another directory")
        changes: list[tuple[str, Change]] = []
        # Repositories below the workspace that are new or gone: a patch cannot make them.
        nested = {path for path in (*before.roots, *after.roots) if not (before.has(path) and after.has(path))}
        left_out = [path[len(root) + 1 :] if path.startswith(f"{root}/") else path for path in sorted(nested)]
        for change in changes_between(before, after):
            path = os.path.join(change.root, os.fsdecode(change.path))  # noqa: PTH118 - many, and `Path` is slow
            if change.after is None and after.is_hidden(change.root, change.path) and os.path.lexists(path):
                continue
            if f"{path}/".startswith(self._excluded):
                continue
            if path.startswith(f"{root}/"):
                changes.append((path[len(root) + 1 :], change))
            else:
                left_out.append(path)
        contents = Contents(self._store, git_readers(before, self._env, self._known))
        trees: tuple[list[bytes], list[bytes]] = ([], [])
        files: list[tuple[str, str]] = []
        for path, change in changes:
            pieces = [_file_command(path, entry, change.root, contents) for entry in (change.before, change.after)]
            contents.forget()
            if None in pieces:
                left_out.append(path)
                continue
            for tree, piece in zip(trees, pieces, strict=True):
                tree.append(piece or b"")
            files.append((path, "add" if change.before is None else "delete" if change.after is None else "update"))
        patch = self._diff(trees) if files else b""
        return WorkspacePatch(root, patch, tuple(files), tuple(left_out))

    def _diff(self, trees: Sequence[Sequence[bytes]]) -> bytes:
        """The diff of two trees, made by git in a repository of its own that holds only the changed files."""
        make_private_dir(self._store.directory)
        top = self._store.directory / f"patch-{os.urandom(6).hex()}"
        programs = program_finder(self._env, self._cwd, extra_roots(self._policy))
        env = {**git_env(self._env, programs, _ENV), "HOME": str(top)}

        def git(*arguments: str, stdin: bytes = b"") -> bytes:
            argv = git_argv(programs, [*settings_argv(_SETTINGS), *arguments])
            ended = run_git(PreparedCommand(tuple(argv), top, env), seconds=_SECONDS, stdin=stdin)
            if ended.status:
                raise UserError(f"git cannot write the patch: {ended.complaint}")
            return ended.out

        top.mkdir(mode=0o700)
        try:
            git("init", "--quiet", "--bare", "--template=", ".")
            git("fast-import", "--quiet", stdin=b"".join(_import_stream(trees)))
            return git("diff", *_DIFF, *_DIFF_PREFIXES, "refs/heads/before", "refs/heads/after")
        finally:
            shutil.rmtree(top, ignore_errors=True)


def mapped_path(path: str, moved: Sequence[tuple[str, str]]) -> str:
    """Where a path is now, after directories were moved."""
    for old, new in moved:
        if path == old or path.startswith(f"{old.rstrip('/')}/"):
            return new + path[len(old.rstrip("/")) :]
    return path


def _import_stream(trees: Sequence[Sequence[bytes]]) -> Iterator[bytes]:
    for name, tree in zip((b"before", b"after"), trees, strict=True):
        yield b"commit refs/heads/%b\ncommitter codex-py <codex-py> 0 +0000\ndata 0\n\n" % name
        yield from tree
        yield b"\n"
    yield b"done\n"


def _file_command(path: str, entry: Entry | None, root: str, contents: Contents) -> bytes | None:
    """The line of `git fast-import` for a file, with its content; empty for no file, None for a lost content."""
    if entry is None:
        return b""
    content = contents.of(root, entry) if entry.is_covered else None
    if content is None:
        return None
    mode = b"120000" if stat.S_ISLNK(entry.mode) else b"100755" if entry.mode & 0o100 else b"100644"
    return b"M %b inline %b\ndata %d\n%b\n" % (mode, _quoted(os.fsencode(path)), len(content), content)


def _quoted(path: bytes) -> bytes:
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"%b"' % escaped
