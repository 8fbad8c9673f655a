"""Wraps commands so that they run inside the sandbox of a policy."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Literal, Self

from codex_py.errors import ToolError
from codex_py.paths import make_private_dir, real_path
from codex_py.programs import ProbeResults, project_directory
from codex_py.protocol.policy import (
    DangerFullAccess,
    NetworkAccess,
    ReadOnly,
    SandboxPolicy,
    WorkspaceWrite,
    extra_roots,
)
from codex_py.sandbox.linux import (
    BACKENDS,
    Backend,
    BackendName,
    SystemCallFilters,
    make_backend,
    missing_sandbox,
)
from codex_py.sandbox.macos import SANDBOX_EXEC, seatbelt_argv
from codex_py.sandbox.mounts import Mount, Screens, find_existing_paths, holds_roots, plan_mounts
from codex_py.sandbox.nested import NestedPaths
from codex_py.sandbox.pins import Pins
from codex_py.sandbox.planted import PlantedPaths
from codex_py.sandbox.policy import WritableRoot, writable_roots
from codex_py.sandbox.run_times import RunTimes
from codex_py.sandbox.unreadable import (
    CannotDeny,
    Listings,
    ReadRules,
    find_unreadable,
    has_wildcards,
    is_readable,
    without_nested,
)
from codex_py.sandbox.wrapped import NO_LIMITS, C, Limits, SandboxStatus, wrap_command

_ADVICE: Final = {"darwin": "`/usr/bin/sandbox-exec` is part of macOS and must be executable"}


class SandboxUnavailable(ToolError):
    """The command was not run, because the sandbox that the policy asks for cannot be set up."""


class SandboxMissing(SandboxUnavailable):
    """No sandbox works on this machine, for no command. The message is for the user and says what to do."""


class Sandbox:
    """The sandbox of one session. Nothing is run before the first wrap that needs it, which probes the backends once.

    `deny_read` are paths and patterns that no sandboxed command reads; `secrets` are files that none reads either,
    there or not and whoever replaces them meanwhile; `home` is our own, which none writes. What is relative starts at
    the session's directory. `limits` are further settings of the user's; `backends` are tried in their order.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        deny_read: Sequence[str] = (),
        secrets: Sequence[Path] = (),
        home: Path | None = None,
        limits: Limits = NO_LIMITS,
        backends: Sequence[BackendName] = BACKENDS,
    ) -> None:
        self._env = env
        self._home = home
        self._deny_read = tuple(deny_read)
        self._secrets = tuple(secrets)
        self._secret_directories = tuple(dict.fromkeys(secret.parent for secret in secrets))
        self._limits = limits
        self._filters = SystemCallFilters()
        self._names = tuple(backends)
        self._known = ProbeResults()
        self._lock = threading.Lock()
        self._probed: dict[BackendName, tuple[Backend, str | None]] = {}
        self._roots: dict[tuple[SandboxPolicy, Path], tuple[WritableRoot, ...]] = {}
        self._unreadable: dict[Path, tuple[Path, ...] | SandboxUnavailable] = {}
        self._read_rules: dict[Path, ReadRules] = {}
        self._nested: dict[tuple[SandboxPolicy, Path], NestedPaths] = {}
        self._times = RunTimes()
        self._planted = PlantedPaths(env, self._times, home / "moved" if home else None)
        self._lines: list[str] = []
        self._hidden_pins: dict[Path, Pins] = {}
        self._listings: dict[Path, Listings] = {}
        self._screens: dict[Path, Screens] = {}

    def with_results(self, known: ProbeResults) -> Self:
        """This sandbox, once it shares what is known of backends with others. Called before anything else."""
        self._known = known
        return self

    @property
    def protected(self) -> tuple[str, ...]:
        """The user's names to protect, as in `Limits`."""
        return self._limits.protected

    def roots(self, policy: SandboxPolicy, cwd: Path) -> tuple[WritableRoot, ...]:
        """`writable_roots`, looked up on disk once per policy and directory. Unreadable paths are not writable."""
        known = self._roots.get((policy, cwd))
        if known is None:
            unreadable = self.unreadable(policy, cwd)
            home, names = cwd / self._home if self._home else None, self._limits.protected
            known = writable_roots(policy, cwd, self._env, home=home, unreadable=unreadable, protected=names)
            worked_in = [Path(real_path(cwd / directory)) for directory in (cwd, *extra_roots(policy))]
            planted = self._planted if self._limits.moves_planted else None
            self._nested[policy, cwd] = NestedPaths(known, worked_in, self._env, planted, self._times)
            known = tuple(_without(root, unreadable) for root in known)
            self._roots[policy, cwd] = known
        return known

    def unreadable(self, policy: SandboxPolicy, cwd: Path) -> tuple[Path, ...]:
        """The real paths no command reads; looked up on disk once for a directory. None with full access.

        Raises `SandboxUnavailable` when not all of them could be hidden.
        """
        if isinstance(policy, DangerFullAccess):
            return ()
        known = self._unreadable.get(cwd)
        if known is None:
            known = self._unreadable[cwd] = self._find_unreadable(cwd)
        if isinstance(known, SandboxUnavailable):
            raise known
        return known

    def _look_again(self, cwd: Path) -> None:
        """Look for what has come to match a pattern; what matched before stays denied."""
        known = self._unreadable.get(cwd)
        if isinstance(known, tuple) and has_wildcards(self._deny_read):
            found = self._find_unreadable(cwd)
            is_more = isinstance(found, tuple)
            self._unreadable[cwd] = without_nested({*known, *found}) if is_more else found

    def _find_unreadable(self, cwd: Path) -> tuple[Path, ...] | SandboxUnavailable:
        listings = self._listings.setdefault(cwd, Listings())
        try:
            found = find_unreadable(self._deny_read, cwd, self._env, listings)
        except CannotDeny as error:
            return SandboxUnavailable(str(error))
        found = without_nested({*found, *find_existing_paths(cwd / secret for secret in self._secrets)})
        self._hidden_pins.setdefault(cwd, Pins(())).add(found)
        return found

    def may_read(self, path: Path, policy: SandboxPolicy, cwd: Path) -> bool:
        """Whether a tool may read the absolute `path` for the model; also what appeared since the session began."""
        if isinstance(policy, DangerFullAccess):
            return True
        rules = self._read_rules.get(cwd)
        if rules is None:
            rules = self._read_rules[cwd] = ReadRules(self._deny_read, cwd, self._env, secrets=self._secrets)
        return rules.allows(path) and is_readable(path, self.unreadable(policy, cwd))

    def prepare(self, policy: SandboxPolicy, cwd: Path) -> None:
        """Do ahead of time, once, what the first `wrap` would have to; for a thread, while the network is waited for.

        Raises `SandboxUnavailable` as `wrap` would.
        """
        if isinstance(policy, DangerFullAccess):
            return
        if sys.platform == "linux":
            self._backend(policy, cwd, self._mounts(policy, cwd))
        elif sys.platform != "darwin":
            raise _unavailable(f"no sandbox for `{sys.platform}`")
        elif not os.access(SANDBOX_EXEC, os.X_OK):
            raise _unavailable(f"cannot run `{SANDBOX_EXEC}`")

    def shortfall(self, policy: SandboxPolicy, cwd: Path) -> str | None:
        """Describe for the user what the sandbox in use cannot enforce; None if it enforces everything.

        With a shortfall nothing should be approved automatically. None also where no sandbox works: no command runs.
        """
        if isinstance(policy, DangerFullAccess) or sys.platform != "linux":
            return None
        try:
            roots = self.roots(policy, cwd)
            protected = {path for root in roots for path in root.protected}.union(self._nested[policy, cwd].pinned())
            # Of all mounts only links decide about the backend; looking for them is much less than planning all.
            links = [Mount("link", path) for path in protected if os.path.islink(path)]  # noqa: PTH114
            return self._backend(policy, cwd, links).shortfall
        except SandboxUnavailable:
            return None

    def unsearched(self, policy: SandboxPolicy, cwd: Path) -> str | None:
        """For the user: what the last layout did not find because there is too much to look through."""
        nested = self._nested.get((policy, cwd))
        lines = nested.unsearched() if nested else []
        lines += [line for root in self._roots.get((policy, cwd), ())[:1] for line in root.unread]
        return "; ".join(lines) or None

    def look_at_repositories(self) -> None:
        """Look at what the last commands have made; `take_notices` then has it too. Reads directories, for a thread."""
        for nested in list(self._nested.values()):
            self._lines += nested.end_lines()
        self._lines += self._planted.take_mentions()

    def take_notices(self) -> list[str]:
        """For the user: what commands have made that git or other programs would use, each line once."""
        lines, self._lines = [*self._planted.take_lines(), *self._lines], []
        return lines

    def _unix_sockets(self, policy: SandboxPolicy) -> Literal[True] | tuple[Path, ...]:
        return self._limits.unix_sockets if isinstance(policy, WorkspaceWrite) else ()

    def advice(self, shortfall: str) -> str:
        """The message for the user where no command may run because of the sandbox's `shortfall`."""
        failures = [failure for _, failure in self._probed.values() if failure]
        return missing_sandbox(failures or [shortfall], partial=True)

    def backend_name(self, policy: SandboxPolicy, cwd: Path) -> str:
        """The name of the sandbox for commands under this policy. Raises `SandboxUnavailable` as `wrap` would."""
        if isinstance(policy, DangerFullAccess):
            return "none"
        self.prepare(policy, cwd)
        if sys.platform != "linux":
            return "seatbelt"
        return self._backend(policy, cwd, self._mounts(policy, cwd)).name

    def wrap(self, command: C, *, policy: SandboxPolicy, cwd: Path, network: NetworkAccess = False) -> C:
        """The command inside the sandbox of a policy. Raises `SandboxUnavailable` when it needs one and none works.

        What is writable follows from the session's `cwd`, not from where the command starts. `network` gives this one
        more of it than the policy does.
        """
        match policy:
            case DangerFullAccess():
                return command
            case ReadOnly():
                pass
            case WorkspaceWrite():
                network = network or policy.network_access
        if sys.platform != "linux":
            self.prepare(policy, cwd)
        env = {**command.env, **({} if network is True else {"CODEX_SANDBOX_NETWORK_DISABLED": "1"})}
        self._look_again(cwd)
        roots = self.roots(policy, cwd)
        if sys.platform == "darwin":
            options = seatbelt_argv(roots, network, self.unreadable(policy, cwd), self._unix_sockets(policy))
            return command.replace(
                argv=(*options, *command.argv), env={**env, "CODEX_SANDBOX": "seatbelt"}, sandboxed=True
            )
        self._make_directories(cwd)
        mounts = self._mounts(policy, cwd)
        _check_workdir(command.cwd, mounts)
        backend = self._backend(policy, cwd, mounts)
        env["CODEX_SANDBOX"] = backend.name
        if not roots and backend.contains:
            # The sandbox's own memory, gone with the command: many programs do not start without a temporary directory.
            env["TMPDIR"] = "/dev/shm"
        if not backend.contains and network == "loopback":
            network = False  # there is no network of one's own
        with ExitStack() as ends:
            status = SandboxStatus()
            try:
                # A filter sees no paths: it cannot open some sockets, so a list opens none.
                all_sockets = self._unix_sockets(policy) is True
                fd = self._filters.open(network, unix_sockets=all_sockets, namespaces=backend.contains)
                wrapped = wrap_command(backend, command, mounts, status, network=network, filter_fd=fd)
            except OSError as error:
                raise SandboxUnavailable(f"cannot set up the sandbox, so the command is not run: {error}") from error
            ends.callback(wrapped.cleanup)
            # Ends before the status is closed.
            if self._limits.moves_planted:
                ends.callback(self._look_below, policy, cwd)
                ends.callback(self._times.begin())
                locations = [location for root in roots for location in root.locations]
                ends.callback(self._planted.watch(locations, status.kill_child))
            return wrapped.replace(env=env, cleanup=ends.pop_all().close)

    def _look_below(self, policy: SandboxPolicy, cwd: Path) -> None:
        """Looks below in a thread, because that may take many directories."""
        threading.Thread(target=self._nested[policy, cwd].look, daemon=True).start()

    def _mounts(self, policy: SandboxPolicy, cwd: Path) -> list[Mount]:
        """The mounts as the disk is now: what was found at first is followed to where it has gone."""
        roots, unreadable = self.roots(policy, cwd), self.unreadable(policy, cwd)
        _check_paths(roots, unreadable)
        hidden = [*unreadable, *self._hidden_pins[cwd].paths()]
        nested = self._nested[policy, cwd]
        nested.look()
        free: Collection[Path] = ()
        if self._limits.moves_planted:
            locations = [location for root in roots for location in root.locations]
            self._planted.settle(
                locations, (root.path for root in roots), (path for root in roots for path in root.protected)
            )
            free = nested.free()
        mounts = plan_mounts(roots, moved=nested.pinned(), hidden=hidden, free=free)
        screens = self._screens.get(cwd)
        if screens is None:
            screens = self._screens[cwd] = Screens(cwd / secret for secret in self._secrets)
        return screens.lay(mounts)

    def _make_directories(self, cwd: Path) -> None:
        """A directory that is made while the command runs would be seen in there with all that is put into it."""
        for directory in self._secret_directories:
            with suppress(OSError):
                make_private_dir(cwd / directory)

    def _backend(self, policy: SandboxPolicy, cwd: Path, mounts: Sequence[Mount]) -> Backend:
        """The first backend that works and can hold all of `mounts`."""
        roots = self.roots(policy, cwd)
        reasons: list[str] = []
        with self._lock:
            for name in self._names:
                backend, failure = self._probed.get(name) or self._probe(name, roots, cwd)
                failure = failure or _beyond(backend, mounts)
                if failure is None:
                    return backend
                reasons.append(failure)
        raise SandboxMissing(missing_sandbox(reasons, partial=False))

    def _probe(self, name: BackendName, roots: Sequence[WritableRoot], cwd: Path) -> tuple[Backend, str | None]:
        backend = make_backend(name, self._env)
        self._probed[name] = backend, backend.probe([WritableRoot(project_directory(cwd)), *roots], self._known)
        return self._probed[name]


def _beyond(backend: Backend, mounts: Sequence[Mount]) -> str | None:
    """Why a backend that works cannot make these mounts."""
    if len(mounts) > backend.max_mounts:
        return f"{backend.name} cannot hold {len(mounts)} paths"
    beyond = next((mount for mount in mounts if not backend.can_hold(mount)), None)
    return None if beyond is None else f"{backend.name} cannot hold `{beyond.path}`, a symbolic link"


def _without(root: WritableRoot, unreadable: Sequence[Path]) -> WritableRoot:
    inside = [path for path in unreadable if path.is_relative_to(root.path) and path != root.path]
    return root.replace(protected=(*root.protected, *inside)) if inside else root


def _unavailable(reason: str) -> SandboxMissing:
    advice = _ADVICE.get(sys.platform, "only Linux and macOS have a sandbox")
    return SandboxMissing(
        f"no sandbox works here, so no command is run: {reason}; "
        f"{advice}, or choose `-s danger-full-access` to run without one"
    )


def _check_paths(roots: Sequence[WritableRoot], unreadable: Sequence[Path]) -> None:
    """Raise where no sandbox could be what was asked for; a command outside may have swapped a root meanwhile."""
    if Path("/") in unreadable:
        raise SandboxUnavailable("no command can be run: `/` must not be read, and no program starts without")
    for root in roots:
        now = real_path(root.path)
        if now != str(root.path):
            raise SandboxUnavailable(
                f"cannot run the command: `{root.path}`, a writable directory when the session began, "
                f"now leads to `{now}`"
            )


def _check_workdir(workdir: Path, mounts: Sequence[Mount]) -> None:
    real = Path(real_path(workdir))
    passed = {real, *real.parents}
    holders = [mount for mount in mounts if mount.path in passed]
    if (
        holders
        and holders[-1].type.startswith("hidden")
        and not (real == holders[-1].path and holds_roots(real, mounts))
    ):
        raise ToolError(f"cannot run the command: `{workdir}` is in a directory that must not be read")
