"""Fetches from addresses of repositories and writes into repositories, without the programs that either could name.

git runs outside the sandbox here, because it needs the network or writes, but starts only the programs that connect to
a server. To read a repository use `services/git.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from codex_py.errors import UsageError, UserError
from codex_py.programs import program_finder
from codex_py.protocol.command import PreparedCommand
from codex_py.services.git import SWITCHED_OFF, git_argv, git_env, settings_argv, switched_off
from codex_py.services.git_process import run_git
from codex_py.text.address import is_loopback
from codex_py.text.credentials import masked_url

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
# The unit of `ulimit -f`.
_BLOCK: Final = 512
_TOO_LARGE: Final = re.compile(r"File too large|index-pack (?:died of signal|output|failed)|signal 25")
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


def limit_argv(max_bytes: int) -> tuple[str, ...]:
    """Prefix a command line with this so that no file it writes grows above `max_bytes`."""
    return ("/bin/sh", "-c", 'ulimit -f "$0" && exec "$@"', str(max_bytes // _BLOCK))


class GitWriter:
    """Runs git in a directory; `own` are variables such as `GIT_DIR`, and `seconds` is what a command may take."""

    def __init__(
        self,
        directory: Path,
        env: Mapping[str, str],
        protocols: Sequence[str],
        *,
        own: Mapping[str, str] = MappingProxyType({}),
        seconds: float = _SECONDS,
    ) -> None:
        self._directory = directory
        self._seconds = seconds
        self._programs = program_finder(env, Path.cwd())
        self._env = git_env(env, self._programs, {**_ENV, "GIT_ALLOW_PROTOCOL": ":".join(protocols), **own})
        self._settings: Mapping[str, str] = _SETTINGS
        git_argv(self._programs, [])  # before a directory is made

    def switch_off_filters(self) -> None:
        """Switch off the user's filters, which the files of a repository may ask for."""
        names = self.run("config", "--list", "--name-only", "-z").encode("utf-8", "surrogateescape")
        self._settings = {**_SETTINGS, **switched_off(names)}

    def fetch(self, *arguments: str, max_bytes: int) -> None:
        """Run `git fetch`. Raises `UserError` when it fails, and when a file that it writes grows above `max_bytes`.

        What is downloaded is one file, so that a repository of any size takes no more of the disk.
        """
        # With fewer objects than `unpackLimit`, git would write each to a file of its own.
        settings = {"fetch.unpackLimit": "1", "transfer.unpackLimit": "1"}
        try:
            self._run([*settings_argv(settings), "fetch", *arguments], limit_argv(max_bytes))
        except UserError as error:
            if not _TOO_LARGE.search(str(error)):
                raise
            size = f"{max_bytes // 1024 // 1024} MiB"
            raise UserError(f"the repository is refused: more than {size} would be downloaded") from error

    def run_limited(self, *arguments: str, max_bytes: int) -> str:
        """The first `max_bytes` of the output of a git command, which is stopped then."""
        return self._run(arguments, ("/bin/sh", "-c", '"$@" | head -c "$0"', str(max_bytes)))

    def run(self, *arguments: str) -> str:
        """The output of a git command. Raises `UserError` when it fails."""
        return self._run(arguments)

    def _run(self, arguments: Sequence[str], before: Sequence[str] = ()) -> str:
        argv = (*before, *git_argv(self._programs, [*settings_argv(self._settings), *arguments]))
        ended = run_git(PreparedCommand(argv, self._directory, self._env), seconds=self._seconds)
        if ended.status:
            hint = "it redirects, which is not followed: give the address that it leads to"
            name = next(word for word in arguments if word[:1] != "-" and "=" not in word)
            raise UserError(
                f"`git {name}` failed: {ended.complaint}",
                hint=hint if _REDIRECTED.search(ended.complaint) else None,
            )
        return os.fsdecode(ended.out)
