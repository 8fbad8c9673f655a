"""The sandbox of a session, from its settings. Imported when the first command is on its way."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.config.load import LoadedConfig
from codex_py.core.session_settings import denied_patterns
from codex_py.errors import CodexError
from codex_py.programs import ProbeResults
from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.policy import DangerFullAccess, SandboxPolicy, WorkspaceWrite
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.denials import own_secrets, still_denied
from codex_py.sandbox.linux import BACKENDS, BackendName
from codex_py.sandbox.policy import WritableRoot
from codex_py.sandbox.wrapped import Limits

CLOSED_SOCKETS: Final = (
    "the list of `sandbox.allow_unix_sockets` opens nothing: on Linux commands reach all Unix sockets or none; "
    "`true` opens all of them"
)


def allowances_without_effect(loaded: LoadedConfig, *, home: Path, env: Mapping[str, str]) -> list[str]:
    """Warnings for the paths of `sandbox.allow_read` that stay denied: by a directory above them, or in any case; and
    for a list of sockets where it cannot be held.
    """
    rules = loaded.config.sandbox
    own = map(str, own_secrets(home, rules.allow_read, env))
    found = still_denied(rules.allow_read, [*denied_patterns(loaded, env), *own], env)
    sockets = [] if rules.allow_unix_sockets in (True, ()) or sys.platform != "linux" else [CLOSED_SOCKETS]
    return sockets + [
        f"`{path}` in `sandbox.allow_read` opens nothing: `{denied}` stays denied"
        + ("" if is_same else "; allow that directory instead")
        for path, denied, is_same in found
    ]


def make_sandbox(
    loaded: LoadedConfig,
    *,
    home: Path,
    env: Mapping[str, str],
    backends: Sequence[BackendName] = BACKENDS,
    moves_planted: bool = True,
) -> Sandbox:
    """The sandbox that these settings ask for; nothing is looked up or run yet. `env` is the user's own environment,
    `moves_planted` as in `Limits`."""
    return Sandbox(
        env,
        deny_read=denied_patterns(loaded, env),
        secrets=own_secrets(home, loaded.config.sandbox.allow_read, env),
        home=home,
        limits=Limits(loaded.config.sandbox.allow_unix_sockets, loaded.config.sandbox.protected, moves_planted),
        backends=backends,
    )


class ProgramSandbox:
    """The sandbox of the programs that a project brings, for any thread. It is probed on first use, with what is
    `known` to other sandboxes of the session. These programs run beside the user, so they cannot write `.git`: nothing
    moves away what they would make in it."""

    def __init__(
        self, loaded: LoadedConfig, *, home: Path, env: Mapping[str, str], known: ProbeResults | None = None
    ) -> None:
        own = make_sandbox(loaded, home=home, env=env, moves_planted=False)
        self._sandbox = own.with_results(known or ProbeResults())
        self._allow_partial = loaded.config.sandbox.allow_partial
        self._lock = threading.Lock()

    def wrap(
        self, command: PreparedCommand, *, policy: SandboxPolicy, cwd: Path, network: bool = False
    ) -> PreparedCommand:
        """Wrap a command under the policy of a session in `cwd`.

        Raises `CodexError`, also where the sandbox is incomplete and the user has not accepted that.
        """
        if isinstance(policy, WorkspaceWrite):
            policy = policy.replace(git=False)
        with self._lock:
            shortfall = None if self._allow_partial else self._sandbox.shortfall(policy, cwd)
            if shortfall is not None:
                raise CodexError(f"the sandbox here cannot hold everything: {shortfall}")
            return self._sandbox.wrap(command, policy=policy, cwd=cwd, network=network)

    def may_write(self, path: Path, *, policy: SandboxPolicy, cwd: Path) -> bool:
        """Whether commands of a session in `cwd` may write a real path, or put something else in its place.

        With full access nothing holds them, and this is False. Raises `CodexError`.
        """
        if isinstance(policy, DangerFullAccess):
            return False
        with self._lock:
            roots = self._sandbox.roots(policy, cwd)
            # A sandbox that is incomplete protects nothing inside the writable directories.
            protects = self._sandbox.shortfall(policy, cwd) is None
        holders = [root for root in roots if path.is_relative_to(root.path)]
        return bool(holders) and not (protects and _is_protected(path, holders))


def _is_protected(path: Path, holders: Sequence[WritableRoot]) -> bool:
    """Whether a path is protected in the roots that hold it, and no directory on the way to it can be renamed."""
    fixed = {known_path for root in holders for known_path in (root.path, *root.ways)}
    protected = (known_path for root in holders for known_path in root.protected)
    return any(path.is_relative_to(known_path) and known_path.parent in fixed for known_path in protected)
