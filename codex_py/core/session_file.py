"""The file a session is written to: a new one, the one it resumes, or none; and the git state it records."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from codex_py import __version__
from codex_py.core.session_request import SessionRequest
from codex_py.paths import is_directory, is_there
from codex_py.protocol.encoding import timestamp
from codex_py.protocol.value import Value
from codex_py.rollout.format import GitState, SessionMeta, StoredSession, SubagentSource
from codex_py.rollout.recorder import Inherited, NullRecorder, Recorder, RolloutRecorder

_MAX_BYTES: Final = 1 << 20
_MAX_REFS_BYTES: Final = 64 << 20
_HASH: Final = r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z"


class GitDirectories(Value):
    """Where git keeps what: `root` holds the `.git`, `own` is what that leads to, `common` is shared by worktrees."""

    root: Path
    own: Path
    common: Path


def git_directories(cwd: Path) -> GitDirectories | None:
    """The git directories of the checkout around `cwd`; None outside of one. Their content is not trusted."""
    root = next((directory for directory in (cwd, *cwd.parents) if has_repository(directory)), None)
    if root is None:
        return None
    own = root / ".git"
    if not is_directory(own):
        # That of a worktree, or of a submodule.
        own = root / _read(own).removeprefix("gitdir:").strip()
    common = own / _read(own / "commondir").strip() if is_there(own / "commondir") else own
    return GitDirectories(root, own, common)


def has_repository(directory: Path) -> bool:
    """Whether there is a `.git` that git takes for a repository: no empty directory, for example."""
    git = directory / ".git"
    return is_there(git) and (not is_directory(git) or os.path.lexists(git / "HEAD"))


def read_git_state(cwd: Path) -> GitState | None:
    """Commit, branch and origin of the checkout around `cwd`; None outside of one, and for what cannot be read."""
    found = git_directories(cwd)
    if found is None:
        return None
    head = _read(found.own / "HEAD").strip()
    reference = head.removeprefix("ref: ")
    commit = head if reference == head else _resolve(found.common, reference)
    origin = _origin(_read(found.common / "config"))
    return GitState(
        commit_hash=commit if commit and re.match(_HASH, commit) else None,
        branch=reference.removeprefix("refs/heads/") if reference.startswith("refs/heads/") else None,
        repository_url=_without_password(origin) if origin else None,
    )


def _resolve(common: Path, reference: str) -> str | None:
    if loose := _read(common / reference).strip():
        return loose
    packed = _read_bytes(common / "packed-refs", _MAX_REFS_BYTES)
    end = packed.find(f" {reference}\n".encode())
    return packed[packed.rfind(b"\n", 0, end) + 1 : end].decode(errors="replace") if end >= 0 else None


def _origin(config: str) -> str | None:
    """The `url` of the remote `origin`."""
    is_origin = False
    for line in config.splitlines():
        stripped = line.strip()
        if stripped.startswith("["):
            is_origin = stripped.startswith('[remote "origin"]')
        elif is_origin and stripped.startswith("url"):
            name, _, value = stripped.partition("=")
            if name.strip() == "url" and value.strip():
                return value.split()[0]
    return None


def _without_password(url: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "", url)


def _read(path: Path) -> str:
    """The text of a regular file, 1 MiB of it at most; empty for what is none, or cannot be read."""
    return _read_bytes(path, _MAX_BYTES).decode(errors="replace")


def _read_bytes(path: Path, most: int) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        chunks: list[bytes] = []
        left = most
        while left and (chunk := os.read(descriptor, left)):
            chunks.append(chunk)
            left -= len(chunk)
        return b"".join(chunks)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


class SessionFile:
    """Opens the recorders of the sessions of one request: that of the session, and those of its agents.

    `inherited` is what a fork of the `stored` session begins with; without it the session goes on in that file.
    """

    def __init__(self, request: SessionRequest, stored: StoredSession | None, inherited: Inherited | None) -> None:
        self._request = request
        self._stored = stored
        self._inherited = inherited

    @property
    def home(self) -> Path:
        return self._request.state_home

    def open(self, thread_id: str, *, instructions: str, warn: Callable[[str], None]) -> Recorder:
        """The recorder of the session itself."""
        request, stored = self._request, self._stored
        if request.ephemeral:
            return NullRecorder()
        if stored is not None and self._inherited is None:
            return RolloutRecorder.resume(stored, warn=warn)
        meta = self._meta(thread_id, instructions).replace(forked_from_id=stored.meta.id if stored else None)
        return RolloutRecorder.create(request.state_home, meta, warn=warn, inherited=self._inherited)

    def open_agent(
        self,
        thread_id: str,
        source: SubagentSource,
        *,
        stored: StoredSession | None,
        instructions: str,
        warn: Callable[[str], None],
    ) -> Recorder:
        """The recorder of an agent of the session; with `stored` it goes on with an earlier one."""
        if self._request.ephemeral:
            return NullRecorder()
        if stored is not None:
            return RolloutRecorder.resume(stored, warn=warn)
        meta = self._meta(thread_id, instructions).replace(source="subagent", subagent=source)
        return RolloutRecorder.create(self._request.state_home, meta, warn=warn)

    def _meta(self, thread_id: str, instructions: str) -> SessionMeta:
        request = self._request
        return SessionMeta(
            id=thread_id,
            timestamp=timestamp(),
            cwd=str(request.cwd),
            originator=request.originator,
            cli_version=__version__,
            source=request.source or ("cli" if request.can_ask else "exec"),
            model_provider=request.loaded.config.model_provider,
            base_instructions=instructions,
            git=read_git_state(request.cwd),
        )
