"""The stage between a session and its command without bubblewrap: namespaces or Landlock, then `exec`.

Runs in a process of its own (`python -I -S`) and imports little. `backends` writes its options. A failure is told on
stderr with status 1, and the command is not run.
"""

from __future__ import annotations

import os
import resource
import signal
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NoReturn

from codex_py.sandbox import kernel
from codex_py.sandbox.kernel_settings import KERNEL_SETTINGS, owns_kernel_settings

MIN_VERSION: Final = 3  # the first that stops a file from being cut short

_WRITE_FILE, _READ_FILE, _TRUNCATE = 1 << 1, 1 << 2, 1 << 14
# Removing and making of every kind, and linking from one directory to another.
_CHANGE_DIRECTORY: Final = 0x3FF0
_WRITES: Final = _WRITE_FILE | _CHANGE_DIRECTORY | _TRUNCATE
_SCOPED_SINCE: Final = 6
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2
_ALLOWED_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")


def restrict_files(mounts: Sequence[tuple[str, str]], *, whole_network: bool) -> None:
    """Put this process under Landlock: writes below the `writable` mounts only, no reading of the hidden ones.

    What else a mount would do is out of its reach. Raises `OSError` when the kernel's Landlock is too old.
    """
    version = kernel.landlock_version()
    if version < MIN_VERSION:
        raise OSError(0, f"version {version} is too old" if version else "not in this kernel, or forbidden", "Landlock")
    roots = [path for mount_type, path in mounts if mount_type == "writable"]
    hidden = [path for mount_type, path in mounts if mount_type.startswith("hidden")]
    scoped = 0
    if version >= _SCOPED_SINCE:
        scoped = _SCOPE_SIGNALS | (0 if whole_network else _SCOPE_ABSTRACT_SOCKETS)
    ruleset = kernel.create_ruleset(_WRITES | _READ_FILE, scoped)
    for path in roots:
        kernel.grant(ruleset, path, _WRITES)
    # Of the devices only harmless ones: whoever reads a disk reads every file on it, whoever reads the terminal of
    # somebody else what is typed there. So there are no new terminals in here either.
    for path in (*(f"/dev/{name}" for name in _ALLOWED_DEVICES), *_own_terminals()):
        with suppress(OSError):  # not every machine has each
            kernel.grant(ruleset, path, _READ_FILE | _WRITE_FILE | _TRUNCATE)
    screens = _screens(mounts, roots, hidden)
    # A name below each screen, so that it is walked through even when nothing in it is hidden yet.
    for path in _readable("/", ["/dev", *hidden, *(f"{screen}/" for screen in screens)], screens):
        with suppress(OSError):  # gone since it was listed
            kernel.grant(ruleset, path, _READ_FILE)
    kernel.enforce_ruleset(ruleset)
    os.close(ruleset)


def _own_terminals() -> Iterator[str]:
    for fd in range(3):
        with suppress(OSError):
            yield os.ttyname(fd)


def _screens(
    mounts: Sequence[tuple[str, str]], roots: Sequence[str], hidden: Sequence[str]
) -> dict[str, frozenset[str]]:
    """The screens with what may be seen in each.

    One in a writable directory counts only when there is something to hide already: what a command makes in the
    directories that lead to it, the command could not read.
    """
    seen = frozenset(
        path for mount_type, path in mounts if mount_type in ("writable", "screen") or mount_type.startswith("shown")
    )
    return {
        screen: seen
        for mount_type, screen in mounts
        if mount_type == "screen"
        and (
            any(path.startswith(f"{screen}/") for path in hidden)
            or not any(screen.startswith(f"{root}/") for root in roots)
        )
    }


def _readable(directory: str, hidden: Sequence[str], screens: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Everything beside the hidden paths and the directories that lead to them; in a screen only what it shows."""
    with suppress(OSError), os.scandir(directory) as listing:
        for entry in listing:
            below = f"{entry.path}/"
            unseen = directory in screens and entry.path not in screens[directory]
            if unseen or entry.path in hidden or entry.is_symlink():
                continue
            if any(path.startswith(below) for path in hidden):
                yield from _readable(entry.path, hidden, screens)
            else:
                yield entry.path


_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
_NOT_FOUND: Final = 127
_NOT_RUN: Final = 126
# As `backends.STARTED`.
_STARTED: Final = b"exit-code"
_NEW_DIRECTORIES: Final = ("hidden-folder", "screen")
_HELD: Final = ("writable", "read-only", "link")

_Mounts = list[tuple[str, str]]


def main(arguments: list[str]) -> NoReturn:
    """`WAY NETWORK FILTER_FD,STATUS_FD PARENT WORKDIR COUNT (KIND PATH)… COMMAND…`; never returns."""
    way, network, fds, parent, workdir, count, *rest = arguments
    filter_fd, status_fd = map(int, fds.split(","))
    split = 2 * int(count)
    mounts = list(zip(rest[:split:2], rest[1:split:2], strict=True))
    command = rest[split:]
    try:
        program = os.read(filter_fd, 65536)
        os.close(filter_fd)
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if way == "namespaces":
            _enter_namespaces(mounts, network=network, parent=int(parent), status_fd=status_fd)
        else:
            with suppress(PermissionError):  # it leads a session already
                os.setsid()
            kernel.die_with_parent(int(parent))
            kernel.drop_capabilities()
            restrict_files(mounts, whole_network=network == "all")
        os.chdir(workdir)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a handler outside the sandbox would get the dumps
        kernel.drop_capabilities()
        kernel.apply_filter(program)
        if way == "namespaces":
            _become_init()
        if status_fd >= 0:
            os.write(status_fd, _STARTED)
            os.close(status_fd)
    except OSError as error:
        sys.stderr.write(f"sandbox: {error.filename or 'cannot start'}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(1)
    _start(command)


def _start(command: list[str]) -> NoReturn:
    try:
        os.execvp(command[0], command)
    except FileNotFoundError:
        status, reason = _NOT_FOUND, "not found"
    except OSError as error:
        status, reason = _NOT_RUN, error.strerror or str(error)
    os.write(2, f"{command[0]}: {reason}\n".encode("utf-8", "surrogateescape"))
    os._exit(status)


def _enter_namespaces(mounts: _Mounts, *, network: str, parent: int, status_fd: int) -> None:
    """Go on as the first process of new namespaces; the one before it waits and ends as the new one does."""
    freeze = owns_kernel_settings()
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(network=network != "all")
    kernel.map_identity(uid, gid)
    kernel.die_with_parent(parent)
    child = os.fork()
    if child:
        if status_fd >= 0:
            os.write(status_fd, b'{"child-pid": %d}' % child)
        _, status = os.waitpid(child, 0)
        os._exit(_exit_code(status))
    os.setsid()
    kernel.die_with_parent(None)
    _lay_out(mounts, freeze=freeze)
    if network == "loopback":
        kernel.raise_loopback()


def _become_init() -> None:
    """Fork off the command and reap until it ends, then end with its status; all that is left ends with this."""
    command = os.fork()
    if not command:
        return
    kernel.close_from(0)
    kernel.shut_memory()
    while True:
        ended, status = os.wait()
        if ended == command:
            os._exit(_exit_code(status))


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _lay_out(mounts: _Mounts, *, freeze: bool) -> None:
    kernel.keep_mounts_private()
    whole = ("writable", "/") in mounts
    mounts = [mount for mount in mounts if mount != ("writable", "/")]
    # Held before the world turns read-only: what is put back later is as it was.
    held = {path: kernel.clone_mount(path) for mount_type, path in mounts if mount_type in _HELD}
    held |= _hold_shown(mounts, "shown-writable")
    devices = [(name, kernel.clone_mount(f"/dev/{name}")) for name in _DEVICES if os.path.exists(f"/dev/{name}")]  # noqa: PTH110
    kernel.set_attributes("/", (0 if whole else kernel.READ_ONLY) | kernel.NO_SUID | kernel.NO_DEVICES)
    held |= _hold_shown(mounts, "shown", "shown-link")
    _make_devices(devices)
    kernel.mount_new("proc", "/proc", "")
    if freeze:
        _freeze_settings()
    sealed: list[str] = []
    for mount_type, path in mounts:
        _put(mount_type, path, held.get(path), passed=_is_passed(path, mounts))
        if mount_type in _NEW_DIRECTORIES:
            sealed.append(path)
    for path in sealed:
        kernel.set_attributes(path, kernel.READ_ONLY, recursive=False)
    for fd in held.values():
        os.close(fd)


def _hold_shown(mounts: _Mounts, *mount_types: str) -> dict[str, int]:
    """Entries of screens, without those that are gone by now."""
    held: dict[str, int] = {}
    for mount_type, path in mounts:
        if mount_type in mount_types:
            with suppress(FileNotFoundError):
                held[path] = kernel.clone_mount(path)
    return held


def _put(mount_type: str, path: str, held: int | None, *, passed: bool) -> None:
    if mount_type in _NEW_DIRECTORIES:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103
        mode = "700" if mount_type == "screen" else "111" if passed else "000"
        kernel.mount_new("tmpfs", path, f"mode={mode}")
    elif mount_type.startswith("shown"):
        if held is not None:
            _show(held, path, writable=mount_type == "shown-writable")
    elif mount_type == "hidden-entry":
        os.mkdir(path, 0)  # noqa: PTH102
    elif mount_type == "hidden-file":
        if not os.path.exists(path):  # noqa: PTH110 - it is in a screen, which nothing changes once it is sealed
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0))
            return
        # A device on a mount without devices: to open it is an error, not the end of an empty file.
        fd = kernel.clone_mount("/dev/null")
        kernel.set_attributes_of(fd, kernel.READ_ONLY | kernel.NO_DEVICES)
        kernel.attach_mount(fd, path)
        os.close(fd)
    elif held is not None:
        restrictions = kernel.NO_SUID | kernel.NO_DEVICES | (0 if mount_type == "writable" else kernel.READ_ONLY)
        kernel.set_attributes_of(held, restrictions)
        if mount_type == "writable":
            os.makedirs(path, exist_ok=True)  # noqa: PTH103 - it may lie below a directory that is hidden now
        kernel.attach_mount(held, path)


def _show(held: int, path: str, *, writable: bool) -> None:
    mode = os.fstat(held).st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink("", dir_fd=held), path)  # noqa: PTH211
        return
    if stat.S_ISDIR(mode):
        os.makedirs(path, exist_ok=True)  # noqa: PTH103
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    restrictions = kernel.NO_SUID | kernel.NO_DEVICES | (0 if writable else kernel.READ_ONLY)
    kernel.set_attributes_of(held, restrictions)
    kernel.attach_mount(held, path)


def _is_passed(directory: str, mounts: _Mounts) -> bool:
    return any(mount_type == "writable" and path.startswith(f"{directory}/") for mount_type, path in mounts)


def _make_devices(devices: list[tuple[str, int]]) -> None:
    kernel.mount_new("tmpfs", "/dev", "mode=755")
    for name, fd in devices:
        os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666))
        kernel.attach_mount(fd, f"/dev/{name}")
        os.close(fd)
    for name in ("shm", "pts"):
        os.mkdir(f"/dev/{name}")  # noqa: PTH102
    kernel.mount_new("tmpfs", "/dev/shm", "mode=1777")
    kernel.mount_new("devpts", "/dev/pts", "newinstance,ptmxmode=0666,mode=620")
    links = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd"}
    links |= {name: f"/proc/self/fd/{number}" for number, name in enumerate(("stdin", "stdout", "stderr"))}
    for name, target in links.items():
        os.symlink(target, f"/dev/{name}")  # noqa: PTH211
    kernel.set_attributes("/dev", kernel.READ_ONLY, recursive=False)


def _freeze_settings() -> None:
    for path in KERNEL_SETTINGS:
        if os.path.exists(path):  # noqa: PTH110
            fd = kernel.clone_mount(path)
            kernel.set_attributes_of(fd, kernel.READ_ONLY)
            kernel.attach_mount(fd, path)
            os.close(fd)
