"""Fetches an untrusted plugin: one commit of a repository, or a copy of a directory, within limits; runs nothing.

Anything that may not be copied stops the copy: half a plugin is worse than none.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from codex_py.errors import UserError
from codex_py.paths import opened_directory
from codex_py.services.git_fetch import GitSource, GitWriter
from codex_py.text.sanitize import sanitize_line

MAX_FILES: Final = 20_000
MAX_BYTES: Final = 256 * 1024 * 1024
MAX_FILE_BYTES: Final = 64 * 1024 * 1024
_MAX_DEPTH: Final = 32
_MAX_LISTING: Final = 16 * 1024 * 1024
_CHUNK_BYTES: Final = 1024 * 1024
_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")
_LEFT_OUT: Final = frozenset({".git", ".hg", ".svn", ".jj"})


def copy_plugin(source: Path, target: Path) -> None:
    """Copy a directory, without version control, to a new one that only the user can read.

    Raises `UserError`, and leaves nothing, for what cannot be copied: a link out of the directory, a device, a name
    that cannot be shown, too much of anything.
    """
    try:
        copy = _Copy(Path(os.path.realpath(source)))
        copy.copy_directory("", target, 0)
        copy.check_links(Path(os.path.realpath(target)))
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise UserError(f"cannot copy `{source}`: {(error.strerror or str(error)).lower()}") from error
    except UserError:
        shutil.rmtree(target, ignore_errors=True)
        raise


class _Copy:
    def __init__(self, source: Path) -> None:
        self._source = source
        self._files = 0
        self._bytes = 0
        self._links: list[tuple[str, Path]] = []

    def copy_directory(self, inner: str, target: Path, depth: int) -> None:
        """Copy one directory; `inner` is its path inside the source."""
        if depth > _MAX_DEPTH:
            raise _refusal(inner, f"more than {_MAX_DEPTH} directories deep")
        target.mkdir(mode=0o700)
        with os.scandir(self._source / inner) as entries:
            for entry in entries:
                if entry.name in _LEFT_OUT:
                    continue
                self._count(inner, entry.name)
                self._entry(f"{inner}/{entry.name}".lstrip("/"), entry, target / entry.name, depth)

    def _count(self, inner: str, name: str) -> None:
        if sanitize_line(name) != name:
            raise UserError(f"the plugin is refused: a name in `{inner or '.'}` has characters that cannot be shown")
        self._files += 1
        if self._files > MAX_FILES:
            raise UserError(f"the plugin is refused: it has more than {MAX_FILES} files")

    def _entry(self, inner: str, entry: os.DirEntry[str], target: Path, depth: int) -> None:
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            self._link(inner, target)
        elif stat.S_ISDIR(mode):
            self.copy_directory(inner, target, depth + 1)
        elif stat.S_ISREG(mode):
            self._file(inner, target)
        else:
            raise _refusal(inner, "not a regular file")

    def _link(self, inner: str, target: Path) -> None:
        """A link is kept when it is relative and everything on its way stays inside."""
        path = self._source / inner
        written = path.readlink()
        real = Path(os.path.realpath(path))
        below = real.relative_to(self._source).parts if real.is_relative_to(self._source) else None
        if written.is_absolute() or below is None or not _LEFT_OUT.isdisjoint(below):
            raise _refusal(inner, "a link that leads out of the plugin")
        target.symlink_to(written)
        self._links.append((inner, target))

    def check_links(self, top: Path) -> None:
        """Raise `UserError` for a link in the copy at `top` that leads out of it: what was copied may have changed."""
        for inner, link in self._links:
            if not Path(os.path.realpath(link)).is_relative_to(top):
                raise _refusal(inner, "a link that leads out of the plugin")

    def _file(self, inner: str, target: Path) -> None:
        # Opened without following links and looked at again: what was listed may have been exchanged.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        path = self._source / inner
        with opened_directory(path.parent) as directory:
            opened = os.open(path.name, flags, dir_fd=directory)
        with os.fdopen(opened, "rb") as source:
            status = os.fstat(source.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _refusal(inner, "not a regular file")
            mode = 0o700 if status.st_mode & 0o100 else 0o600
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
            with os.fdopen(descriptor, "wb") as out:
                copied = 0
                while chunk := source.read(_CHUNK_BYTES):
                    copied += len(chunk)
                    self._bytes += len(chunk)
                    if copied > MAX_FILE_BYTES:
                        raise _refusal(inner, f"larger than {MAX_FILE_BYTES // 1024 // 1024} MiB")
                    if self._bytes > MAX_BYTES:
                        raise UserError(f"the plugin is refused: it has more than {MAX_BYTES // 1024 // 1024} MiB")
                    out.write(chunk)


def _refusal(inner: str, why: str) -> UserError:
    return UserError(f"the plugin is refused: `{inner}` in it is {why}" if inner else f"the plugin is refused: {why}")


def fetch(source: GitSource, directory: Path, env: Mapping[str, str], *, submodules: bool = True) -> str:
    """Check out a repository into a new directory; gives back the commit. Raises `UserError`.

    Submodules are never fetched; without `submodules` a repository that has any is refused. git runs outside the
    sandbox, because it needs the network, but starts only the programs that connect to the server.
    """
    git = GitWriter(directory, env, source.protocols)
    directory.mkdir(mode=0o700)
    git.run("init", "-q", "--template=", ".")
    git.switch_off_filters()
    commit = _fetch_commit(git, source)
    # Directories are listed too: ten levels of ten each are ten thousand million, without a file in any of them.
    listing = git.run_limited("ls-tree", "-r", "-t", "-l", "-z", commit, max_bytes=_MAX_LISTING)
    _check_size(listing)
    if not submodules and any(line.startswith("160000 ") for line in listing.split("\0")):
        raise UserError("the repository is refused: it has submodules", hint="give a repository with the skill itself")
    git.run("checkout", "-q", "--detach", commit)
    return git.run("rev-parse", "HEAD").strip()


def _fetch_commit(git: GitWriter, source: GitSource) -> str:
    """Fetch what the source names; the name under which git has it then."""
    try:
        git.fetch("-q", "--depth=1", "--no-tags", "--", source.url, source.ref or "HEAD", max_bytes=MAX_BYTES)
    except UserError:
        # A server need not give away a commit by its name, and none does by a short one.
        if source.ref is None or not _COMMIT.fullmatch(source.ref):
            raise
        every = "+refs/heads/*:refs/remotes/source/*"
        git.fetch("-q", "--tags", "--", source.url, every, max_bytes=MAX_BYTES)
        return git.run("rev-parse", "--verify", "--end-of-options", f"{source.ref}^{{commit}}").strip()
    return "FETCH_HEAD"


def _check_size(listing: str) -> None:
    """Check the sizes of all files before they are unpacked, because a small download may hold very large files."""
    sizes = [
        int(size)
        for line in listing.split("\0")
        if (size := line.partition("\t")[0].rpartition(" ")[2].strip()).isdecimal()
    ]
    is_whole = len(os.fsencode(listing)) < _MAX_LISTING and listing.count("\0") <= 2 * MAX_FILES
    if not is_whole or len(sizes) > MAX_FILES or sum(sizes) > MAX_BYTES or max(sizes, default=0) > MAX_FILE_BYTES:
        raise UserError(
            f"the repository is refused: more than {MAX_FILES} files, {MAX_BYTES // 1024 // 1024} MiB, or a file of"
            f" {MAX_FILE_BYTES // 1024 // 1024} MiB"
        )
