"""Attempts on the kernel, on other processes and on the network."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import resource
import signal
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from codex_py.sandbox.seccomp import call_number
from tests.support.escapes.fixture import Attempt, Fixture, Refused

_SIGNAL_CHILD: Final = 17
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
# The 32-bit socket(AF_INET, SOCK_STREAM, 0): mov eax, 359; mov ebx, 2; mov ecx, 1; xor edx, edx; int 0x80.
_OLD_CONVENTION: Final = bytes.fromhex("53b867010000bb02000000b90100000031d2cd805bc3")
_CAPABILITY_VERSION_3: Final = 0x20080522
_PTRACE_SEIZE: Final = 0x4206
# An array of one number; the software's own clock, without the kernel's share.
_BPF_MAP: Final = struct.pack("<4I", 2, 4, 4, 1) + bytes(56)
_CLOCK: Final = struct.pack("<2I5Q", 1, 64, 0, 0, 0, 0, 0x60) + bytes(16)


def _call(number: int, *arguments: int | bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    words = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    result: int = libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _system_call(name: str, *arguments: int | bytes | None) -> Attempt:
    return lambda _: _call(call_number(platform.machine(), name), *arguments)


def _beyond(attempt: Attempt, *errors: int) -> Attempt:
    """An attempt that comes to nothing by itself: with one of these errors it got as far as it ever does."""

    def reached(fixture: Fixture) -> None:
        try:
            attempt(fixture)
        except OSError as error:
            if error.errno not in errors:
                raise

    return reached


def _new_process(flags: int) -> Attempt:
    def attempt(_: Fixture) -> None:
        if _call(call_number(platform.machine(), "clone"), flags | _SIGNAL_CHILD, 0, 0, 0, 0) == 0:
            os._exit(0)

    return attempt


def _join_namespace(_: Fixture) -> None:
    fd = os.open("/proc/1/ns/mnt", os.O_RDONLY)
    _call(call_number(platform.machine(), "setns"), fd, 0)


@contextmanager
def _waiting() -> Generator[int, None, None]:
    """A process that does nothing, started from here: even where only such ones can be traced, it can be."""
    child = os.fork()
    if not child:
        signal.pause()
        os._exit(0)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)


def _trace(_: Fixture) -> None:
    with _waiting() as other:
        _call(call_number(platform.machine(), "ptrace"), _PTRACE_SEIZE, other, 0, 0)


def _take_descriptor(_: Fixture) -> None:
    with _waiting() as other:
        _call(call_number(platform.machine(), "pidfd_getfd"), os.pidfd_open(other), 0, 0)


def _signal_outside(fixture: Fixture) -> None:
    os.kill(fixture.victim, 0)


def _bind_outside(fixture: Fixture) -> None:
    os.sched_setaffinity(fixture.victim, os.sched_getaffinity(fixture.victim))


def _see_outside(fixture: Fixture) -> None:
    with os.scandir("/proc") as listing:
        pids = [entry.name for entry in listing if entry.name.isdigit()]
    for pid in pids:
        try:
            command = Path("/proc", pid, "cmdline").read_bytes()
        except OSError:
            continue
        if f"victim-{fixture.mark}".encode() in command and int(pid) != os.getpid():
            return
    raise Refused("not seen")


def _inherited(_: Fixture) -> None:
    for fd in range(3, 256):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115
        except OSError:
            continue
        if "/kept" in target:
            os.write(fd, b"x")
            return
    raise Refused("none is open")


def _leave_behind(fixture: Fixture) -> None:
    script = "import sys, time; time.sleep(60)"
    subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", script, f"left-{fixture.mark}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _ioctl(request: int) -> Attempt:
    def attempt(_: Fixture) -> None:
        """In a terminal of one's own, which stays open to the end: its closing would be the end."""
        os.setsid()
        _parent_end, child_end = os.openpty()
        fcntl.ioctl(child_end, termios.TIOCSCTTY, 0)
        fcntl.ioctl(child_end, request, b"x")

    return attempt


def _open_terminal(flags: int) -> Attempt:
    def attempt(fixture: Fixture) -> None:
        if not fixture.terminal:
            raise Refused("there is none")
        os.close(os.open(fixture.terminal, flags | os.O_NOCTTY | os.O_NONBLOCK))

    return attempt


def _regain_capabilities(_: Fixture) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    requested = (ctypes.c_uint32 * 6)(0x200000, 0x200000, 0, 0, 0, 0)
    if libc.capset(header, requested) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _raise_limit(resource_id: int, most: int) -> Attempt:
    def attempt(_: Fixture) -> None:
        try:
            resource.setrlimit(resource_id, (most, most))
        except ValueError as error:
            raise Refused("not allowed") from error

    return attempt


def _socket(family: int, socket_type: int = socket.SOCK_STREAM, protocol: int = 0) -> Attempt:
    return lambda _: socket.socket(family, socket_type, protocol).close()


def _connect(family: int, address: tuple[str, int] | str) -> None:
    with socket.socket(family) as made:
        made.settimeout(2)
        made.connect(address)


def _connect_ipv6(fixture: Fixture) -> None:
    if not fixture.tcp6_port:
        raise Refused("there is no IPv6")
    _connect(socket.AF_INET6, ("::1", fixture.tcp6_port))


def _send_datagram(fixture: Fixture) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.sendto(b"out", ("127.0.0.1", fixture.udp_port))


def _by_pair(fixture: Fixture) -> None:
    sender, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with sender, other:
        sender.sendto(b"out", fixture.datagrams)


def _x32_socket(_: Fixture) -> None:
    if platform.machine() != "x86_64":
        raise Refused("another machine")
    _call(0x40000000 | 41, socket.AF_INET, socket.SOCK_STREAM, 0)


def _old_socket(_: Fixture) -> None:
    if platform.machine() != "x86_64":
        raise Refused("another machine")
    code = mmap.mmap(-1, len(_OLD_CONVENTION), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(_OLD_CONVENTION)
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    if result < 0:
        raise OSError(-result, os.strerror(-result))


ATTEMPTS: Final[tuple[tuple[str, Attempt], ...]] = (
    ("make a user namespace", _system_call("unshare", 0x10000000)),
    ("make a mount namespace", _system_call("unshare", 0x20000)),
    ("make a network namespace", _system_call("unshare", 0x40000000)),
    ("start a process in a user namespace", _new_process(0x10000000)),
    ("start a process in a mount namespace", _new_process(0x20000)),
    ("start a process by clone3", _system_call("clone3", bytes(88), 88)),
    ("join another namespace", _join_namespace),
    ("mount something", _system_call("mount", b"none", b"/mnt", b"tmpfs", 0, None)),
    ("unmount something", _system_call("umount2", b"/proc", 2)),
    ("turn the root around", _beyond(_system_call("pivot_root", b".", b"."), errno.EBUSY, errno.EINVAL)),
    ("change the root", lambda _: os.chroot("/")),
    ("open a mount tree", _system_call("open_tree", -100, b"/", 1)),
    ("move a mount", _system_call("move_mount", -100, b"/proc", -100, b"/mnt", 0)),
    ("make a file system", _system_call("fsopen", b"tmpfs", 0)),
    ("change a mount", _system_call("mount_setattr", -100, b"/", 0, bytes(32), 32)),
    ("trace another process", _trace),
    ("read another process's memory", _system_call("process_vm_readv", 1, None, 0, None, 0, 0)),
    ("write another process's memory", _system_call("process_vm_writev", 1, None, 0, None, 0, 0)),
    ("take a descriptor from a process", _take_descriptor),
    ("signal a process outside", _signal_outside),
    ("see a process outside", _see_outside),
    ("hold a process outside", lambda fixture: os.close(os.pidfd_open(fixture.victim))),
    ("bind a process outside to its processors", _bind_outside),
    ("change the limits of a process outside", lambda fixture: resource.prlimit(fixture.victim, resource.RLIMIT_CORE)),
    ("use a descriptor of the session", _inherited),
    ("leave a process behind", _leave_behind),
    ("set up an io_uring", _system_call("io_uring_setup", 1, bytes(120))),
    ("load a kernel program", _system_call("bpf", 0, _BPF_MAP, len(_BPF_MAP))),
    ("watch performance counters", _system_call("perf_event_open", _CLOCK, 0, -1, -1, 0)),
    ("catch page faults", _system_call("userfaultfd", 1)),
    ("use the key ring", _system_call("keyctl", 0, -3, 0, 0, 0)),
    ("add a key", _system_call("add_key", b"user", b"x", b"x", 1, -3)),
    ("push characters into a terminal", _ioctl(_TIOCSTI)),
    ("push characters into the console", _beyond(_ioctl(_TIOCLINUX), errno.ENOTTY)),
    ("write to another terminal", _open_terminal(os.O_WRONLY)),
    ("read what is typed into another terminal", _open_terminal(os.O_RDONLY)),
    ("regain capabilities", _regain_capabilities),
    ("become another user", lambda _: os.setuid(os.getuid() + 1)),
    ("set the machine's name", lambda _: socket.sethostname(socket.gethostname())),
    ("run ahead of others", lambda _: os.nice(-5)),
    ("allow core dumps again", _raise_limit(resource.RLIMIT_CORE, 1 << 20)),
    ("connect to a port of the machine", lambda fixture: _connect(socket.AF_INET, ("127.0.0.1", fixture.tcp_port))),
    ("connect to a port over IPv6", _connect_ipv6),
    ("send a datagram to the machine", _send_datagram),
    ("connect to a socket file", lambda fixture: _connect(socket.AF_UNIX, fixture.unix_socket)),
    ("connect to an abstract socket", lambda fixture: _connect(socket.AF_UNIX, f"\0{fixture.abstract}")),
    ("send to a socket file from one of a pair", _by_pair),
    ("make a netlink socket", _socket(16, socket.SOCK_RAW)),
    ("make a packet socket", _socket(17, socket.SOCK_RAW)),
    ("make a raw socket", _socket(socket.AF_INET, socket.SOCK_RAW, 1)),
    ("make a socket to the hypervisor", _socket(40)),
    ("make a kernel crypto socket", _socket(38, socket.SOCK_SEQPACKET)),
    ("make a Bluetooth socket", _socket(31, socket.SOCK_RAW)),
    ("make a socket by the x32 convention", _x32_socket),
    ("make a socket by the 32-bit convention", _old_socket),
)
