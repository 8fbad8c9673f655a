"""Lists what a session's sandbox allows and denies, each with its reason and the setting that changes it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from codex_py.config.load import LoadedConfig
from codex_py.paths import is_there, real_path
from codex_py.protocol.policy import DangerFullAccess, ReadOnly, SandboxPolicy, WorkspaceWrite, extra_roots
from codex_py.protocol.value import Value
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.denials import ALWAYS_DENIED, OWN_SECRETS, default_denials, expand_home, own_secrets
from codex_py.sandbox.git_directories import RUN_BY_GIT, is_git_directory
from codex_py.sandbox.policy import PROTECTED_NAMES, WritableRoot

Action: TypeAlias = Literal["read", "write", "network", "sockets"]

_ELSE: Final = "everything else"
_MODE: Final = "sandbox_mode"
_ALLOW_READ: Final = "sandbox.allow_read"
_DENY_READ: Final = "sandbox.deny_read"
_PROTECTED: Final = "sandbox.protected"
_SOCKETS: Final = "sandbox.allow_unix_sockets"
_NETWORK: Final = "sandbox_workspace_write.network_access"
_ROOTS: Final = "sandbox_workspace_write.writable_roots"
_GIT: Final = "sandbox_workspace_write.git"
_TMP: Final = "sandbox_workspace_write.exclude_slash_tmp"
_TMPDIR: Final = "sandbox_workspace_write.exclude_tmpdir_env_var"


class Permission(Value):
    """Whether commands may perform an action on a subject, and why. `setting` changes it; None if nothing does.

    `exists` is False for a path that does not exist now.
    """

    action: Action
    subject: str
    allowed: bool
    reason: str
    setting: str | None
    exists: bool = True


def list_permissions(
    loaded: LoadedConfig, sandbox: Sandbox, policy: SandboxPolicy, *, cwd: Path, home: Path, env: Mapping[str, str]
) -> list[Permission]:
    """The permissions of commands in `cwd`: reading, writing, network, sockets. Looks at the disk, runs nothing.

    Raises `SandboxUnavailable` where the settings cannot be held.
    """
    if isinstance(policy, DangerFullAccess):
        reason = "no sandbox with danger-full-access"
        return [
            Permission(action, "everything", True, reason, _MODE) for action in ("read", "write", "network", "sockets")
        ]
    return [
        *_reading(loaded, home, env),
        *_writing(sandbox, policy, cwd, home, env, loaded.config.sandbox.protected),
        *_reaching(loaded, policy),
    ]


def _reading(loaded: LoadedConfig, home: Path, env: Mapping[str, str]) -> Iterator[Permission]:
    rules = loaded.config.sandbox
    yield Permission("read", _ELSE, True, "commands read what is not denied", _DENY_READ)
    denied = dict(default_denials(env, rules.allow_read))
    own = {str(home / name) for name in OWN_SECRETS}
    for path, content in default_denials(env, ()):
        if path in own:
            continue
        reason = f"denied by default: {content}" if path in denied else f"your setting opens it: {content}"
        yield Permission("read", path, path not in denied, reason, _ALLOW_READ, is_there(Path(path)))
    closed = set(own_secrets(home, rules.allow_read, env))
    for name, content in OWN_SECRETS.items():
        path = home / name
        reason = f"in CODEX_HOME: {content}" if path in closed else f"your setting opens it: {content}"
        exists = any(True for _ in home.glob(name))
        yield Permission(
            "read", str(path), path not in closed, reason, None if name in ALWAYS_DENIED else _ALLOW_READ, exists
        )
    for pattern in rules.deny_read:
        yield Permission("read", expand_home(pattern, env), False, "your setting denies it", _DENY_READ)


def _writing(
    sandbox: Sandbox, policy: SandboxPolicy, cwd: Path, home: Path, env: Mapping[str, str], protected: tuple[str, ...]
) -> Iterator[Permission]:
    roots = sandbox.roots(policy, cwd)
    if isinstance(policy, ReadOnly):
        yield Permission("write", _ELSE, False, "only a temporary directory of its own, with read-only", _MODE)
        return
    yield Permission("write", _ELSE, False, "outside of the writable directories", _ROOTS)
    for root in roots:
        reason, setting = _why_writable(root.path, policy, cwd, env)
        yield Permission("write", str(root.path), True, reason, setting)
    own = Path(real_path(home))
    paths = {
        path: root for root in roots for path in root.protected if path not in {other_root.path for other_root in roots}
    }
    hidden = set(sandbox.unreadable(policy, cwd))
    for path, root in paths.items():
        if path in hidden:
            continue
        reason, setting = _why_protected(path, root, own, env, protected)
        exists = is_there(path)
        if not exists:
            reason = f"{reason}; {_missing(path, root)}"
        can_be_made = not exists and sys.platform != "darwin"
        yield Permission("write", str(path), can_be_made, reason, setting, exists)


def _why_writable(root: Path, policy: SandboxPolicy, cwd: Path, env: Mapping[str, str]) -> tuple[str, str | None]:
    if root == Path(real_path(cwd)):
        return "the working directory", _MODE
    added = [Path(real_path(cwd / directory)) for directory in extra_roots(policy)]
    if is_git_directory(root) and root not in added and not os.path.lexists(root / ".git"):
        return "your setting lets commands commit", _GIT
    if root == Path(real_path("/tmp")):
        return "the directory for temporary files", _TMP
    if env.get("TMPDIR") and root == Path(real_path(env["TMPDIR"])):
        return "the directory for temporary files in TMPDIR", _TMPDIR
    return "your setting or --add-dir", _ROOTS


def _why_protected(
    path: Path, root: WritableRoot, home: Path, env: Mapping[str, str], protected: tuple[str, ...]
) -> tuple[str, str | None]:
    if path == home:
        return "CODEX_HOME: settings and rules of this program", None
    if path.name.lower() in PROTECTED_NAMES:
        is_git = path.name.lower() == ".git"
        return "protected name: runs or is trusted outside the sandbox", _GIT if is_git else None
    if path.name in RUN_BY_GIT and is_git_directory(path.parent):
        return "git runs programs by it", None
    if path.name == "HEAD":
        return "git would take the directory for a repository and run what its settings name", None
    user_paths = {Path(real_path(expand_home(name, env))) for name in protected if name.startswith("~/")}
    if path.name.lower() in root.names or path in user_paths:
        return "other programs run what is in it", _PROTECTED
    if any(path == location.path for location in root.locations):
        return "named by git's settings: hooks, or a submodule's repository", None
    return "a protected path leads to it, or it is another name of a protected file", None


def _missing(path: Path, root: WritableRoot) -> str:
    """Says what happens to a missing path that a command makes."""
    if sys.platform == "darwin":
        return "cannot be made"
    if path.name in (".git", "HEAD") or any(path == location.path for location in root.locations):
        return "one that a command makes is moved away if git would run something by it"
    return "one that a command makes is named"


def _reaching(loaded: LoadedConfig, policy: SandboxPolicy) -> Iterator[Permission]:
    if not isinstance(policy, WorkspaceWrite):
        yield Permission("network", "everything", False, "no network with read-only", _MODE)
        yield Permission("sockets", "everything", False, "no Unix sockets with read-only", _MODE)
        return
    match policy.network_access:
        case True:
            yield Permission("network", "everything", True, "your setting opens the network", _NETWORK)
        case "loopback":
            yield Permission("network", "loopback of its own", True, "your setting opens it", _NETWORK)
            yield Permission("network", _ELSE, False, "closed by default", _NETWORK)
        case False:
            yield Permission("network", "everything", False, "closed by default", _NETWORK)
    sockets = loaded.config.sandbox.allow_unix_sockets
    if sockets is True:
        yield Permission("sockets", "everything", True, "your setting opens all", _SOCKETS)
        return
    is_held = sys.platform != "linux"
    reason = "your setting opens it" if is_held else "on Linux a list opens nothing, only `true` opens all"
    yield from (Permission("sockets", str(path), is_held, reason, _SOCKETS) for path in sockets)
    yield Permission("sockets", _ELSE if sockets else "everything", False, "closed by default", _SOCKETS)
