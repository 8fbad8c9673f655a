"""The ways to hold a command on Linux, best first, and what each of them cannot hold."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from codex_py.protocol.policy import NetworkAccess
from codex_py.sandbox.kernel_settings import owns_kernel_settings
from codex_py.sandbox.layout import Mount
from codex_py.sandbox.linux import bwrap_argv, find_bwrap, try_out
from codex_py.sandbox.policy import WritableRoot

BackendName: TypeAlias = Literal["bubblewrap", "namespaces", "landlock"]
BACKENDS: Final[tuple[BackendName, ...]] = ("bubblewrap", "namespaces", "landlock")

_LANDLOCK_SHORTFALL: Final = (
    "only Landlock works here: commands can change `.git`, `.codex`, `.agents`, `CODEX_HOME`, directories of git "
    "hooks, files that git's configuration includes, submodules, shell profiles and settings of editors and other "
    "agents inside writable folders, change modes and times of files everywhere, see other processes and leave some "
    "behind, and list the names of what they must not read"
)
# What bubblewrap writes when the command has ended, which it has not begun without; the stage writes it at the start.
STARTED: Final = b"exit-code"
# The package is found by its place: `-I` keeps the user's environment and the current folder out of the stage.
_STAGE: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); from codex_py.sandbox.enter import main; main(sys.argv[1:])"
)


class Backend(Protocol):
    """`contains` says that its end takes everything inside along; `shortfall` what it cannot hold, if anything.

    `copies` says that it copies what is shown in a screen and open. `max_mounts` is how many it lays out in a time that
    a command can wait.
    """

    @property
    def name(self) -> BackendName: ...

    @property
    def contains(self) -> bool: ...

    @property
    def copies(self) -> bool: ...

    @property
    def max_mounts(self) -> int: ...

    @property
    def shortfall(self) -> str | None: ...

    def probe(self, roots: Sequence[WritableRoot]) -> str | None:
        """Try it out; why it does not work, if it does not. Runs a process, but none from below `roots`."""
        ...

    def can_hold(self, mount: Mount) -> bool:
        """Whether it makes of a place what the mount says, as far as it ever does."""
        ...

    def options(
        self, mounts: Sequence[Mount], *, network: NetworkAccess, workdir: Path, filter_fd: int, status_fd: int
    ) -> list[str]:
        """The command line up to the command. `STARTED` is written to `status_fd`, if not -1, once it has begun."""
        ...


class Bubblewrap:
    """Needs no process of ours inside and is the fastest."""

    name: BackendName = "bubblewrap"
    contains = True
    copies = True
    # For each it reads the table of all: 300 take a tenth of a second, 1000 more than a whole one.
    max_mounts = 300
    shortfall = None

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._program = "bwrap"

    def probe(self, roots: Sequence[WritableRoot]) -> str | None:
        program, reason = find_bwrap(self._env, roots)
        self._program = program or self._program
        return None if program else reason

    def can_hold(self, mount: Mount) -> bool:
        return mount.type != "link"

    def options(
        self, mounts: Sequence[Mount], *, network: NetworkAccess, workdir: Path, filter_fd: int, status_fd: int
    ) -> list[str]:
        program, *options = bwrap_argv(
            self._program,
            mounts=mounts,
            network=network,
            seccomp_fd=filter_fd,
            workdir=workdir,
            as_root=owns_kernel_settings(),
        )
        status = ("--json-status-fd", str(status_fd)) if status_fd >= 0 else ()
        return [program, *status, *options]


class Staged:
    """A backend whose restrictions a stage of ours takes on before it turns into the command."""

    copies = False
    max_mounts = 10_000

    def __init__(self, name: Literal["namespaces", "landlock"]) -> None:
        self.name: BackendName = name
        self.contains = name == "namespaces"
        self.shortfall = None if self.contains else _LANDLOCK_SHORTFALL

    def probe(self, roots: Sequence[WritableRoot]) -> str | None:
        failure = try_out(lambda fd: self.options((), network=False, workdir=Path("/"), filter_fd=fd, status_fd=-1))
        return None if failure is None else f"{self.name} cannot be used: {failure}"

    def can_hold(self, mount: Mount) -> bool:
        return True

    def options(
        self, mounts: Sequence[Mount], *, network: NetworkAccess, workdir: Path, filter_fd: int, status_fd: int
    ) -> list[str]:
        words = [word for mount in mounts for word in (mount.type, str(mount.path))]
        reach = "all" if network is True else "loopback" if network else "none"
        package = str(Path(__file__).parents[2])
        stage = [sys.executable, "-I", "-S", "-c", _STAGE, package]
        fds = f"{filter_fd},{status_fd}"
        return [*stage, self.name, reach, fds, str(os.getpid()), str(workdir), str(len(mounts)), *words]


def make_backend(name: BackendName, env: Mapping[str, str]) -> Backend:
    """A backend by its name. `env` is the user's own environment."""
    return Bubblewrap(env) if name == "bubblewrap" else Staged(name)
