"""Fetches an untrusted plugin: one commit of a repository, or a copy of a directory, within limits; runs nothing.

Anything that may not be copied stops the copy: half a plugin is worse than none.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.errors import UsageError, UserError
from codex_py.programs import program_finder
from codex_py.protocol.command import PreparedCommand
from codex_py.services.git import SWITCHED_OFF, git_argv, git_env, run_git, settings_argv, switched_off
from codex_py.text.address import is_loopback
from codex_py.text.credentials import masked_url
from codex_py.text.sanitize import sanitize_line

MAX_FILES: Final = 20_000
MAX_BYTES: Final = 256 * 1024 * 1024
MAX_FILE_BYTES: Final = 64 * 1024 * 1024
_MAX_DEPTH: Final = 32
_CHUNK_BYTES: Final = 1024 * 1024
_LEFT_OUT: Final = frozenset({".git", ".hg", ".svn", ".jj"})


def copy_plugin(source: Path, target: Path) -> None:
    """Copy a directory, without version control, to a new one that only the user can read.

    Raises `UserError`, and leaves nothing, for what cannot be copied: a link out of the directory, a device, a name
    that cannot be shown, too much of anything.
    """
    try:
        _Copy(Path(os.path.realpath(source))).copy_directory("", target, 0)
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

    def _file(self, inner: str, target: Path) -> None:
        # Opened without following links and looked at again: what was listed may have been exchanged.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(self._source / inner, flags), "rb") as source:
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


_SECONDS: Final = 180.0
# A user and a host in plain characters only: what one program takes for a user, another may take for the host.
_URL: Final = re.compile(
    r"(?P<scheme>https|http|ssh|git|file)://(?:[\w.~%!$&'()*+,;=:-]*@)?"
    r"(?P<host>[\w.-]*|\[[0-9a-fA-F:.]+\])(?::\d+)?/\S+",
    re.ASCII,
)
_SCP: Final = re.compile(r"[A-Za-z0-9_][\w.-]*@[A-Za-z0-9][\w.-]*:[^\s-]\S*")
_REF: Final = re.compile(r"[A-Za-z0-9_][\w./+@-]{0,254}")
_ENV: Final = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
    "GCM_INTERACTIVE": "never",
    "LC_ALL": "C",
}
# A redirect may lead to another host, or to one without encryption.
_SETTINGS: Final = {
    **SWITCHED_OFF,
    "core.autocrlf": "false",
    "advice.detachedHead": "false",
    "http.followRedirects": "false",
}
# The protocols that a user's setting (`url.….insteadOf`) may substitute.
_PROTECTED: Final = ("https", "ssh")
_REDIRECTED: Final = re.compile(r"returned error: 30[12378]")


class GitSource(NamedTuple):
    """The address of a repository, and a branch, tag or commit; None for its default."""

    url: str
    ref: str | None

    @property
    def protocols(self) -> tuple[str, ...]:
        """The protocols that git may use."""
        scheme, mark, _ = self.url.partition("://")
        return tuple(dict.fromkeys((*_PROTECTED, scheme))) if mark else _PROTECTED


def git_source(text: str) -> GitSource | None:
    """The repository of a source, with an optional `#ref`; None for a directory.

    Raises `UserError` for an unsafe address: one like an option, a helper program, plain http to another machine.
    """
    url, mark, ref = text.partition("#")
    shown = masked_url(url)
    looks_remote = "://" in url or "::" in url or _SCP.fullmatch(url) is not None
    if url.startswith("-"):
        raise UsageError(f"not a source: `{text}` looks like an option", hint="give a directory or a repository's URL")
    if not looks_remote:
        return None
    found = _URL.fullmatch(url)
    if found is None and _SCP.fullmatch(url) is None:
        raise UsageError(f"not a repository's address: `{shown}`", hint="use `https://`, `ssh://` or `user@host:path`")
    if found is not None and found["host"].startswith("-"):
        raise UsageError(f"not a repository's address: `{shown}`: its host looks like an option")
    if found is not None and found["scheme"] in ("http", "git") and not is_loopback(found["host"]):
        raise UsageError(f"`{shown}` is not protected on its way: use `https://`")
    if mark and not _REF.fullmatch(ref):
        raise UsageError(f"not a branch, tag or commit: `{ref}`")
    return GitSource(url, ref or None)


def fetch(source: GitSource, directory: Path, env: Mapping[str, str]) -> str:
    """Check out a repository into a new directory; gives back the commit. Raises `UserError`.

    git runs outside the sandbox, because it needs the network, but starts only the programs that connect to the server.
    """
    git = _Git(directory, env, source.protocols)
    directory.mkdir(mode=0o700)
    git.run("init", "-q", "--template=", ".")
    git.switch_off_filters()
    git.run("fetch", "-q", "--depth=1", "--no-tags", "--", source.url, source.ref or "HEAD")
    _check_size(git.run("ls-tree", "-r", "-l", "-z", "FETCH_HEAD"))
    git.run("checkout", "-q", "--detach", "FETCH_HEAD")
    return git.run("rev-parse", "HEAD").strip()


def _check_size(listing: str) -> None:
    """Check the sizes of all files before they are unpacked, because a small download may hold very large files."""
    sizes = [
        int(size)
        for line in listing.split("\0")
        if (size := line.partition("\t")[0].rpartition(" ")[2].strip()).isdecimal()
    ]
    if len(sizes) > MAX_FILES or sum(sizes) > MAX_BYTES or max(sizes, default=0) > MAX_FILE_BYTES:
        raise UserError(
            f"the repository is refused: more than {MAX_FILES} files, {MAX_BYTES // 1024 // 1024} MiB, or a file of"
            f" {MAX_FILE_BYTES // 1024 // 1024} MiB"
        )


class _Git:
    """Runs git in a directory."""

    def __init__(self, directory: Path, env: Mapping[str, str], protocols: Sequence[str]) -> None:
        self._directory = directory
        self._programs = program_finder(env, Path.cwd())
        self._env = git_env(env, self._programs, {**_ENV, "GIT_ALLOW_PROTOCOL": ":".join(protocols)})
        self._settings: Mapping[str, str] = _SETTINGS
        git_argv(self._programs, [])  # before a directory is made

    def switch_off_filters(self) -> None:
        """Switch off the user's filters, which the files of a repository may ask for."""
        names = self.run("config", "--list", "--name-only", "-z").encode("utf-8", "surrogateescape")
        self._settings = {**_SETTINGS, **switched_off(names)}

    def run(self, *arguments: str) -> str:
        argv = git_argv(self._programs, [*settings_argv(self._settings), *arguments])
        ended = run_git(PreparedCommand(tuple(argv), self._directory, self._env), seconds=_SECONDS)
        if ended.status:
            hint = "it redirects, which is not followed: give the address that it leads to"
            raise UserError(
                f"`git {arguments[0]}` failed: {ended.complaint}",
                hint=hint if _REDIRECTED.search(ended.complaint) else None,
            )
        return os.fsdecode(ended.out)
