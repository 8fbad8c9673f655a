"""Gives each task a clean copy of its repository, and leaves its changes there as a branch; nothing is pushed.

A directory is cloned at its commit, without what is not committed. A URL is fetched once for all its tasks. Nothing
that a repository names is run: see `services/git_fetch.py`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from codex_py.errors import UserError
from codex_py.paths import open_private
from codex_py.services.git import GitReader
from codex_py.services.git_fetch import GitWriter, git_source
from codex_py.text.files import os_reason

_SECONDS: Final = 3600.0
# Everything is copied from this machine once it has been fetched.
_LOCAL: Final = ("file",)
# The file beside a workspace that says it is whole.
_BASE: Final = "base"
# As `checkpoints/workspace_patch.py` has them.
_DIFF: Final = ("--binary", "--full-index", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv")
_KINDS: Final = {"A": "add", "D": "delete"}
_BASE_REF: Final = "refs/codex-py/base"


class TaskWorkspace(NamedTuple):
    """Where a task works: `cwd` in the checkout `top`. `git` is the repository it came from, `base` its commit."""

    top: Path
    cwd: Path
    git: Path | None = None
    base: str = ""


class _Local(NamedTuple):
    """A repository of this machine, what asks it, and where in its working tree a directory is."""

    git: Path
    writer: GitWriter
    inner: Path


class WorkspaceMaker:
    """Makes workspaces; repositories that are fetched are kept in `fetched`. Blocks, so call it in a thread."""

    def __init__(self, fetched: Path, env: Mapping[str, str]) -> None:
        self._fetched = fetched
        self._env = env

    def make(self, repo: str, ref: str, top: Path) -> TaskWorkspace:
        """Make the workspace of a task at `top`, in place of what is there. Raises `UserError`."""
        try:
            (top.parent / _BASE).unlink(missing_ok=True)
            _remove(top)
            top.parent.mkdir(parents=True, exist_ok=True)
            if not repo:
                top.mkdir(mode=0o700)
                return TaskWorkspace(top, top)
            if git_source(repo) is not None:
                git = self._fetch(repo, ref)
                return self._clone(git, self._commit(self._bare(git), ref), top, inner=Path())
            directory = Path(repo)
            found = self._local(directory)
            if found is None:
                if ref:
                    raise UserError(f"`{repo}` is not a git repository, which `ref` needs")
                shutil.copytree(directory, top, symlinks=True)
                return TaskWorkspace(top, top)
            return self._clone(found.git, self._commit(found.writer, ref), top, inner=found.inner)
        except OSError as error:
            reason = os_reason(error)[:200]
            raise UserError(f"cannot make the workspace `{top}`: {reason}") from error

    def open(self, repo: str, ref: str, top: Path) -> TaskWorkspace:
        """The workspace that an earlier attempt has made, as it was left; a new one where there is none."""
        base = _read_text(top.parent / _BASE)
        if not repo:
            return TaskWorkspace(top, top) if top.is_dir() else self.make(repo, ref, top)
        if not (top.is_dir() and base):
            return self.make(repo, ref, top)
        commit, _, inner = base.partition(" ")
        if git_source(repo) is not None:
            git = self._mirror(repo)
        else:
            found = self._local(Path(repo))
            git = found and found.git
        return TaskWorkspace(top, top / inner, git, commit)

    def check_branch(self, workspace: TaskWorkspace, branch: str, message: str) -> None:
        """Raise `UserError` where `commit` would take commits off a branch, or files out of a working tree.

        `message` begins with the id of the task and a colon.
        """
        assert workspace.git is not None  # checked before the batch begins
        git, name = self._bare(workspace.git), f"refs/heads/{branch}"
        if git.run("for-each-ref", "--format=%(refname)", f"{name}/", "--count=1").strip():
            raise UserError(f"no branch can be named `{branch}`: there are branches below it")
        if git.run("for-each-ref", "--format=%(refname)", name).strip() != name:
            return
        for entry in git.run("worktree", "list", "--porcelain").split("\n\n"):
            lines = entry.splitlines()
            if f"branch {name}" in lines and "bare" not in lines:
                where = lines[0].removeprefix("worktree ")
                raise UserError(f"the branch `{branch}` is checked out in `{where}`; choose another `--branch`")
        # A commit of this task, by an earlier attempt, is replaced.
        parents, _, subject = git.run("log", "-1", "--format=%P%x00%s", name, "--").strip().partition("\0")
        is_own = parents == workspace.base and subject.partition(": ")[0] == message.partition(": ")[0]
        if not is_own and git.run("rev-list", "--count", name, "--not", workspace.base, "--").strip() != "0":
            raise UserError(f"the branch `{branch}` has other commits; choose another `--branch`")

    def commit(self, workspace: TaskWorkspace, branch: str, message: str) -> str:
        """Commit the changes of a workspace on its base, as `branch` of the repository it came from; gives the commit.

        The workspace's own `.git` is not used: commands may have changed it. Empty when nothing was changed.
        """
        assert workspace.git is not None  # checked before the batch begins
        git, tree = self._tree(workspace, workspace.git, {})
        if tree == git.run("rev-parse", "--verify", f"{workspace.base}^{{tree}}").strip():
            return ""
        identity = [] if _has_identity(git) else ["-c", "user.name=codex-py", "-c", "user.email=codex-py@localhost"]
        commit = git.run(*identity, "commit-tree", "--no-gpg-sign", "-p", workspace.base, "-m", message, tree).strip()
        with _locked(self._fetched / "branches.lock"):
            self.check_branch(workspace, branch, message)
            git.run("update-ref", f"refs/heads/{branch}", commit)
        if workspace.git.parent == self._fetched:
            # The clone is the only repository here that a user would look into.
            clone = self._writer(workspace.top, {"GIT_DIR": str(workspace.top / ".git")})
            clone.run("fetch", "-q", "--no-tags", str(workspace.git), f"+refs/heads/{branch}:refs/heads/{branch}")
        return commit

    def patch(self, workspace: TaskWorkspace) -> tuple[bytes, list[tuple[str, str]]]:
        """The changes of a workspace since its base, as `exec --artifacts` writes them: the patch, and the path of each
        changed file with `add`, `update` or `delete`. Writes nothing into the repository that it came from.
        """
        assert workspace.git is not None  # the caller has asked
        with TemporaryDirectory(dir=workspace.top.parent) as objects:
            known = {
                "GIT_OBJECT_DIRECTORY": objects,
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(workspace.git / "objects"),
            }
            git, tree = self._tree(workspace, workspace.git, known)
            words = git.run("diff", "--no-renames", "--name-status", "-z", workspace.base, tree).split("\0")
            patch = git.run("diff", *_DIFF, workspace.base, tree)
        pairs = zip(words[:-1:2], words[1::2], strict=True)
        return os.fsencode(patch), [(path, _KINDS.get(kind, "update")) for kind, path in pairs]

    def _tree(self, workspace: TaskWorkspace, repository: Path, own: Mapping[str, str]) -> tuple[GitWriter, str]:
        """The tree of a workspace as it is now, and the git that has stored it."""
        index = workspace.top.parent / "index"
        index.unlink(missing_ok=True)
        places = {"GIT_DIR": str(repository), "GIT_WORK_TREE": str(workspace.top), "GIT_INDEX_FILE": str(index)}
        git = self._writer(workspace.top, {**places, **own})
        git.run("read-tree", workspace.base)
        # git would look into the repository of a submodule, which commands may have made, and run what that names.
        listed = git.run("ls-files", "-s", "-z").split("\0")
        submodules = [line.partition("\t")[2] for line in listed if line.startswith("160000 ")]
        git.run("add", "-A", "--", ".", *(f":(top,exclude,literal){path}" for path in submodules))
        tree = git.run("write-tree").strip()
        index.unlink(missing_ok=True)
        return git, tree

    def _clone(self, git: Path, commit: str, top: Path, *, inner: Path) -> TaskWorkspace:
        """Clone a repository of this machine, at a commit, without a remote."""
        writer = self._writer(top.parent, {})
        writer.run("clone", "-q", "--local", "--no-checkout", "--template=", "--", str(git), str(top))
        clone = self._writer(top, {"GIT_DIR": str(top / ".git"), "GIT_WORK_TREE": str(top)})
        clone.run("checkout", "-q", "--detach", commit)
        clone.run("remote", "remove", "origin")
        cwd = top / inner
        if not cwd.is_dir():
            raise UserError(f"`{inner}` is not a directory at commit {commit[:12]}")
        (top.parent / _BASE).write_text(f"{commit} {inner}")
        return TaskWorkspace(top, cwd, git, commit)

    def _fetch(self, url: str, ref: str) -> Path:
        """Fetch a repository, or what is new in it, into a bare one."""
        source = git_source(url)
        assert source is not None  # the caller has asked
        mirror = self._mirror(url)
        self._fetched.mkdir(mode=0o700, exist_ok=True)
        with _locked(mirror.with_suffix(".lock")):
            writer = GitWriter(self._fetched, self._env, source.protocols, seconds=_SECONDS)
            if not (mirror / "HEAD").exists():
                writer.run("init", "-q", "--bare", "--template=", str(mirror))
            if self._knows(mirror, ref):
                return mirror
            own = {"GIT_DIR": str(mirror)}
            git = GitWriter(self._fetched, self._env, source.protocols, own=own, seconds=_SECONDS)
            heads = ("+refs/heads/*:refs/fetched/heads/*", "+refs/tags/*:refs/tags/*", f"+HEAD:{_BASE_REF}")
            git.run("fetch", "-q", "--no-write-fetch-head", "--", source.url, *heads)
            if ref and not self._knows(mirror, ref):
                git.run("fetch", "-q", "--no-write-fetch-head", "--", source.url, f"+{ref}:refs/fetched/refs/{ref}")
        return mirror

    def _mirror(self, url: str) -> Path:
        return self._fetched / f"{hashlib.sha256(url.encode()).hexdigest()[:16]}.git"

    def _knows(self, git: Path, ref: str) -> bool:
        try:
            self._commit(self._bare(git), ref)
        except UserError:
            return False
        return True

    def _bare(self, git: Path) -> GitWriter:
        return self._writer(git, {"GIT_DIR": str(git)})

    def _commit(self, writer: GitWriter, ref: str) -> str:
        """The commit that a ref names, or that is checked out where there is none."""
        names = [f"refs/fetched/heads/{ref}", f"refs/fetched/refs/{ref}", ref] if ref else [_BASE_REF, "HEAD"]
        for name in names:
            try:
                return writer.run("rev-parse", "--verify", "-q", "--end-of-options", f"{name}^{{commit}}").strip()
            except UserError:
                continue
        raise UserError(f"no commit `{ref}` in the repository" if ref else "the repository has no commit")

    def _local(self, directory: Path) -> _Local | None:
        """The repository of a directory, which may be a bare one; None where it has none."""
        root = GitReader(directory, self._env, looks_below=False).root
        if root is not None:
            writer = self._writer(root, {})
            git = Path(writer.run("rev-parse", "--path-format=absolute", "--git-common-dir").rstrip("\n"))
            return _Local(git, writer, directory.relative_to(os.path.realpath(root)))
        if (directory / "HEAD").is_file() and all((directory / name).is_dir() for name in ("objects", "refs")):
            return _Local(directory, self._bare(directory), Path())
        return None

    def _writer(self, directory: Path, own: Mapping[str, str]) -> GitWriter:
        writer = GitWriter(directory, self._env, _LOCAL, own=own, seconds=_SECONDS)
        writer.switch_off_filters()
        return writer


def _has_identity(git: GitWriter) -> bool:
    try:
        return bool(git.run("config", "user.name").strip() and git.run("config", "user.email").strip())
    except UserError:
        return False


@contextmanager
def _locked(path: Path) -> Generator[None, None, None]:
    """Hold a lock that tasks of this batch wait for."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read_text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""


def _remove(top: Path) -> None:
    """Remove what an earlier attempt has left, directories that commands made unreadable included."""
    if not os.path.lexists(top):
        return
    for directory, names, _ in os.walk(top):
        for name in names:
            path = Path(directory, name)
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(top)
