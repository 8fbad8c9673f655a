"""Wrap a command line so that it runs inside the sandbox of a policy."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.errors import ToolError
from codex_py.protocol.policy import DangerFullAccess, NetworkAccess, ReadOnly, SandboxPolicy, WorkspaceWrite
from codex_py.protocol.value import Value
from codex_py.sandbox.linux import Mounts, bwrap_argv, find_bwrap, open_filter
from codex_py.sandbox.macos import SANDBOX_EXEC, seatbelt_argv
from codex_py.sandbox.pins import Pins
from codex_py.sandbox.placeholders import hold_all
from codex_py.sandbox.policy import WritableRoot, writable_roots

_ADVICE: Final = {
    "linux": "install bubblewrap (`apt install bubblewrap`) and allow user namespaces",
    "darwin": "`/usr/bin/sandbox-exec` is part of macOS and must be executable",
}


class SandboxUnavailable(ToolError):
    """No sandbox works here and the policy asks for one; the command was not run."""


def _nothing() -> None:
    """What an unsandboxed command has to release and to clean up."""


class Wrapped(Value):
    """A command line ready to start.

    `env` is added to the command's environment. `fds` must be inherited under their own numbers; `release` closes them
    once the process has started (or failed to), `cleanup` removes what the sandbox left on the host once it has ended.
    Each of the two must be called exactly once.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    sandboxed: bool = False
    fds: tuple[int, ...] = ()
    release: Callable[[], None] = _nothing
    cleanup: Callable[[], None] = _nothing


class Sandbox:
    """The sandbox of one session. The backend is probed once, at the first wrap that needs it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._lock = threading.Lock()
        self._probed = False
        self._bwrap: str | None = None
        self._failure: str | None = None
        self._roots: dict[tuple[SandboxPolicy, Path], tuple[WritableRoot, ...]] = {}
        self._pins: dict[tuple[SandboxPolicy, Path], Pins] = {}

    @classmethod
    def detect(cls, env: Mapping[str, str]) -> Sandbox:
        """A sandbox for this machine; cheap, nothing is run yet. `env` is the user's own environment."""
        return cls(env)

    def roots(self, policy: SandboxPolicy, cwd: Path) -> tuple[WritableRoot, ...]:
        """`writable_roots`, looked up on disk once for a policy and a folder."""
        known = self._roots.get((policy, cwd))
        if known is None:
            known = writable_roots(policy, cwd, self._env)
            self._pins[policy, cwd] = Pins(path for root in known for path in root.protected)
            self._roots[policy, cwd] = known
        return known

    def prepare(self, policy: SandboxPolicy, cwd: Path) -> None:
        """Do ahead of time, once, what the first `wrap` would have to; for a thread, while the network is waited for.

        Raises `SandboxUnavailable` as `wrap` would.
        """
        if isinstance(policy, DangerFullAccess):
            return
        roots = self.roots(policy, cwd)
        with self._lock:
            if not self._probed:
                self._failure = self._probe(roots)
                self._probed = True
        if self._failure is not None:
            advice = _ADVICE.get(sys.platform, "only Linux and macOS have a sandbox")
            raise SandboxUnavailable(
                f"no sandbox works here, so no command is run: {self._failure}; "
                f"{advice}, or choose `-s danger-full-access` to run without one"
            )

    def wrap(self, argv: Sequence[str], *, policy: SandboxPolicy, cwd: Path, workdir: Path) -> Wrapped:
        """Wrap `argv`; raise `SandboxUnavailable` when the policy needs a sandbox and none works.

        What is writable follows from the session's `cwd`; `workdir` is only where the command starts.
        """
        match policy:
            case DangerFullAccess():
                return Wrapped(tuple(argv), {})
            case ReadOnly():
                network = False
            case WorkspaceWrite():
                network = policy.network_access
        self.prepare(policy, cwd)
        env: dict[str, str] = {} if network is True else {"CODEX_SANDBOX_NETWORK_DISABLED": "1"}
        roots = self.roots(policy, cwd)
        if self._bwrap is None:
            return Wrapped((*seatbelt_argv(roots, network), *argv), {**env, "CODEX_SANDBOX": "seatbelt"}, True)
        if not roots:
            # The sandbox's own memory, gone with the command: many programs do not start without a temporary folder.
            env["TMPDIR"] = "/dev/shm"
        mounts = Mounts(roots, self._pins[policy, cwd].paths())
        try:
            return _in_bwrap([self._bwrap, *argv], mounts, network=network, workdir=workdir, env=env)
        except OSError as error:
            raise SandboxUnavailable(f"cannot set up the sandbox, so the command is not run: {error}") from error

    def _probe(self, roots: Sequence[WritableRoot]) -> str | None:
        if sys.platform == "linux":
            self._bwrap, reason = find_bwrap(self._env, roots)
            return None if self._bwrap else reason
        if sys.platform == "darwin":
            return None if os.access(SANDBOX_EXEC, os.X_OK) else f"cannot run `{SANDBOX_EXEC}`"
        return f"no sandbox for `{sys.platform}`"


def _in_bwrap(
    argv: Sequence[str], mounts: Mounts, *, network: NetworkAccess, workdir: Path, env: Mapping[str, str]
) -> Wrapped:
    """`argv` is the sandbox program and then the command."""
    holder, mounts.missing = hold_all(mounts.missing)
    try:
        fd = open_filter(network)
    except BaseException:
        holder.release()
        raise
    options = bwrap_argv(
        argv[0], mounts=mounts, network=network, seccomp_fd=fd, workdir=workdir, as_root=os.geteuid() == 0
    )
    return Wrapped(
        (*options, *argv[1:]), env, sandboxed=True, fds=(fd,), release=lambda: os.close(fd), cleanup=holder.release
    )
