"""Fetching a plugin from a git repository: one commit, without its submodules, and nothing of it is run."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.cli.plugin_copy import MOST_BYTES, MOST_FILE_BYTES, MOST_FILES
from codex_py.errors import UserError
from codex_py.text.address import is_loopback
from codex_py.text.masked import masked_url
from codex_py.text.sanitize import sanitize_line

_SECONDS: Final = 180.0
_MOST_SAID: Final = 300
# A user and a host in plain characters only: what one program takes for a user, another may take for the host.
_URL: Final = re.compile(
    r"(?P<scheme>https|http|ssh|git|file)://(?:[\w.~%!$&'()*+,;=:-]*@)?"
    r"(?P<host>[\w.-]*|\[[0-9a-fA-F:.]+\])(?::\d+)?/\S+",
    re.ASCII,
)
_SCP: Final = re.compile(r"[A-Za-z0-9_][\w.-]*@[A-Za-z0-9][\w.-]*:[^\s-]\S*")
_REF: Final = re.compile(r"[A-Za-z0-9_][\w./+@-]{0,254}")
# Whatever the user's own git would run or ask by itself is switched off.
_QUIET: Final = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",
    "GCM_INTERACTIVE": "never",
    "LC_ALL": "C",
}
_SETTINGS: Final = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.autocrlf=false"),
    *("-c", "submodule.recurse=false", "-c", "advice.detachedHead=false", "-c", "gc.auto=0"),
)


class GitSource(NamedTuple):
    """The address of a repository, and the branch, tag or commit in it; None for what it shows by itself."""

    url: str
    ref: str | None


def git_source(text: str) -> GitSource | None:
    """The repository a source means, with `#ref` behind it; None for a folder.

    Raises `UserError` for an address that is not used: an option in disguise, a helper program, plain http elsewhere.
    """
    url, mark, ref = text.partition("#")
    shown = masked_url(url)
    looks_remote = "://" in url or "::" in url or _SCP.fullmatch(url) is not None
    if url.startswith("-"):
        raise UserError(f"not a source: `{text}` looks like an option", hint="give a folder or the URL of a repository")
    if not looks_remote:
        return None
    found = _URL.fullmatch(url)
    if found is None and _SCP.fullmatch(url) is None:
        raise UserError(f"not a repository's address: `{shown}`", hint="use `https://`, `ssh://` or `user@host:path`")
    if found is not None and found["host"].startswith("-"):
        raise UserError(f"not a repository's address: `{shown}`: its host looks like an option")
    if found is not None and found["scheme"] in ("http", "git") and not is_loopback(found["host"]):
        raise UserError(f"`{shown}` is not protected on its way: use `https://`")
    if mark and not _REF.fullmatch(ref):
        raise UserError(f"not a branch, tag or commit: `{ref}`")
    return GitSource(url, ref or None)


def fetch(source: GitSource, folder: Path, env: Mapping[str, str]) -> str:
    """Put the files of a repository into a new folder; gives back the commit. Raises `UserError`."""
    if shutil.which("git", path=env.get("PATH")) is None:
        raise UserError("`git` is not on this machine", hint="install it, or give a folder")
    folder.mkdir(mode=0o700)
    quiet = {name: value for name, value in env.items() if not name.startswith("GIT_")} | _QUIET
    quiet["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes"
    _git(["init", "-q", "--template=", "."], folder, quiet)
    _git(["fetch", "-q", "--depth=1", "--no-tags", "--", source.url, source.ref or "HEAD"], folder, quiet)
    _check_size(_git(["ls-tree", "-r", "-l", "-z", "FETCH_HEAD"], folder, quiet))
    _git(["checkout", "-q", "--detach", "FETCH_HEAD"], folder, quiet)
    return _git(["rev-parse", "HEAD"], folder, quiet).strip()


def _check_size(listing: str) -> None:
    """Before anything is unpacked: a small download may hold a great deal."""
    sizes = [
        int(size)
        for line in listing.split("\0")
        if (size := line.partition("\t")[0].rpartition(" ")[2].strip()).isdecimal()
    ]
    if len(sizes) > MOST_FILES or sum(sizes) > MOST_BYTES or max(sizes, default=0) > MOST_FILE_BYTES:
        raise UserError(
            f"the repository is refused: more than {MOST_FILES} files, {MOST_BYTES // 1024 // 1024} MiB, or a file of"
            f" {MOST_FILE_BYTES // 1024 // 1024} MiB"
        )


def _git(arguments: Sequence[str], folder: Path, env: Mapping[str, str]) -> str:
    command = ["git", *_SETTINGS, *arguments]
    pipe = subprocess.PIPE
    # In a group of its own: what git starts to reach the other side holds its pipes, and ends with it.
    with subprocess.Popen(
        command, cwd=folder, env=dict(env), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
    ) as git:
        try:
            out, told = git.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(git.pid, signal.SIGKILL)
            raise UserError(f"`git {arguments[0]}` took longer than {_SECONDS:g} s") from None
        except BaseException:
            os.killpg(git.pid, signal.SIGKILL)
            raise
    if git.returncode:
        said = os.fsdecode(told).strip().splitlines()
        raise UserError(f"`git {arguments[0]}` failed: {sanitize_line(said[-1])[:_MOST_SAID] if said else 'no reason'}")
    return os.fsdecode(out)
