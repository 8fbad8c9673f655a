"""Fetching a plugin from a git repository: one commit, without its submodules, and nothing of it is run."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.cli.plugin_copy import MAX_BYTES, MAX_FILE_BYTES, MAX_FILES
from codex_py.core.git_program import SWITCHED_OFF, git_argv, git_env, run_git, settings_argv, switched_off
from codex_py.errors import UsageError, UserError
from codex_py.programs import program_finder
from codex_py.sandbox.command import Wrapped
from codex_py.text.address import is_loopback
from codex_py.text.masked import masked_url

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
# A redirect leads where nobody has looked: to another host, or to one without encryption.
_SETTINGS: Final = {
    **SWITCHED_OFF,
    "core.autocrlf": "false",
    "advice.detachedHead": "false",
    "http.followRedirects": "false",
}
# What a setting of the user's (`url.….insteadOf`) may use in place of the address's own.
_PROTECTED: Final = ("https", "ssh")
_REDIRECTED: Final = re.compile(r"returned error: 30[12378]")


class GitSource(NamedTuple):
    """The address of a repository, and the branch, tag or commit in it; None for what it shows by itself."""

    url: str
    ref: str | None

    @property
    def protocols(self) -> tuple[str, ...]:
        """What git may speak on its way to it."""
        scheme, mark, _ = self.url.partition("://")
        return tuple(dict.fromkeys((*_PROTECTED, scheme))) if mark else _PROTECTED


def git_source(text: str) -> GitSource | None:
    """The repository a source means, with `#ref` behind it; None for a folder.

    Raises `UserError` for an address that is not used: an option in disguise, a helper program, plain http elsewhere.
    """
    url, mark, ref = text.partition("#")
    shown = masked_url(url)
    looks_remote = "://" in url or "::" in url or _SCP.fullmatch(url) is not None
    if url.startswith("-"):
        raise UsageError(f"not a source: `{text}` looks like an option", hint="give a folder or a repository's URL")
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
    """Put the files of a repository into a new folder; gives back the commit. Raises `UserError`.

    git runs outside the sandbox, because it needs the network, and starts nothing but what reaches the other side.
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
    """Before anything is unpacked: a small download may hold a great deal."""
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
    """Runs git in a folder."""

    def __init__(self, directory: Path, env: Mapping[str, str], protocols: Sequence[str]) -> None:
        self._directory = directory
        self._programs = program_finder(env, Path.cwd())
        self._env = git_env(env, self._programs, {**_ENV, "GIT_ALLOW_PROTOCOL": ":".join(protocols)})
        self._settings: Mapping[str, str] = _SETTINGS
        git_argv(self._programs, [])  # before a folder is made

    def switch_off_filters(self) -> None:
        """What a repository brings may ask for any filter that the user has set up."""
        names = self.run("config", "--list", "--name-only", "-z").encode("utf-8", "surrogateescape")
        self._settings = {**_SETTINGS, **switched_off(names)}

    def run(self, *arguments: str) -> str:
        argv = git_argv(self._programs, [*settings_argv(self._settings), *arguments])
        ended = run_git(Wrapped(tuple(argv), {}), self._directory, self._env, seconds=_SECONDS)
        if ended.status:
            hint = "it redirects, which is not followed: give the address that it leads to"
            raise UserError(
                f"`git {arguments[0]}` failed: {ended.complaint}",
                hint=hint if _REDIRECTED.search(ended.complaint) else None,
            )
        return os.fsdecode(ended.out)
