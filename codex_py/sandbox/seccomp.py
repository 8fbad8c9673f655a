"""The system call filter of the Linux sandbox, as a classic BPF program for `bwrap --seccomp`.

Everything is allowed but what is listed: what could reach into other processes, change mounts or namespaces, push
characters into a terminal, make a Unix socket, or, with the network off, any socket. Socket pairs keep working (event
loops wake themselves through one), so `sendto` passes when it carries no address.
"""

from __future__ import annotations

import errno
import struct
from typing import Final

from codex_py.protocol.policy import NetworkAccess

_ALLOW: Final = 0x7FFF0000
_KILL: Final = 0x80000000
_REFUSE: Final = 0x00050000 | errno.EPERM
_MISSING: Final = 0x00050000 | errno.ENOSYS

_LOAD: Final = 0x20
_AND: Final = 0x54
_EQUAL: Final = 0x15
_AT_LEAST: Final = 0x35
_ANY_BIT: Final = 0x45
_RETURN: Final = 0x06

# Offsets in struct seccomp_data; both machines are little-endian, so the low half of an argument comes first.
_NUMBER: Final = 0
_MACHINE: Final = 4
_ARGUMENTS: Final = 16

_AF_UNIX, _AF_INET, _AF_INET6, _AF_VSOCK = 1, 2, 10, 40
_SOCK_DGRAM: Final = 2
_SOCK_TYPE_MASK: Final = 0xF
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET; unshare alone also knows NEWTIME.
_NEW_NAMESPACE: Final = 0x7E020000
_NEW_TIME: Final = 0x80

# Numbers from the kernel's unistd tables. Those from 424 on are the same on every machine.
_SHARED: Final = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "open_tree_attr": 467,
}
_X86_64: Final = _SHARED | {
    "ioctl": 16,
    "shmget": 29,
    "shmat": 30,
    "socket": 41,
    "connect": 42,
    "accept": 43,
    "sendto": 44,
    "bind": 49,
    "listen": 50,
    "socketpair": 53,
    "clone": 56,
    "semget": 64,
    "msgget": 68,
    "ptrace": 101,
    "pivot_root": 155,
    "mount": 165,
    "umount2": 166,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "accept4": 288,
    "perf_event_open": 298,
    "prlimit64": 302,
    "open_by_handle_at": 304,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "bpf": 321,
    "userfaultfd": 323,
}
_AARCH64: Final = _SHARED | {
    "ioctl": 29,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "unshare": 97,
    "ptrace": 117,
    "msgget": 186,
    "semget": 190,
    "shmget": 194,
    "shmat": 196,
    "socket": 198,
    "socketpair": 199,
    "bind": 200,
    "listen": 201,
    "accept": 202,
    "connect": 203,
    "sendto": 206,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "clone": 220,
    "perf_event_open": 241,
    "accept4": 242,
    "prlimit64": 261,
    "open_by_handle_at": 265,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "bpf": 280,
    "userfaultfd": 282,
}


# The kernel's name for each machine's calling convention, and its table.
_MACHINES: Final = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}

_X32_BIT: Final = 0x40000000
_ALWAYS_REFUSED: Final = (
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "pidfd_getfd",
    "mount",
    "umount2",
    "pivot_root",
    "open_tree",
    "open_tree_attr",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "open_by_handle_at",
    "setns",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "keyctl",
    "add_key",
    "request_key",
)
# Memory, semaphores and queues that processes of a user share by number, unless a namespace keeps them apart.
_SHARED_CALLS: Final = ("shmget", "shmat", "semget", "msgget")
_NETWORK_CALLS: Final = ("connect", "accept", "accept4", "bind", "listen")


def is_supported(machine: str) -> bool:
    """Whether there is a table of system calls for `machine` (as `os.uname` names it)."""
    return machine in _MACHINES


def call_number(machine: str, name: str) -> int:
    """The number of a system call that the filter knows. Raises `KeyError` for another one."""
    return _MACHINES[machine][1][name]


def build_filter(machine: str, network: NetworkAccess, *, unix_sockets: bool = False, namespaces: bool = True) -> bytes:
    """The program for `machine`: an array of `struct sock_filter`. Raises `KeyError` for a machine without a table.

    Without `namespaces`, memory is not shared with processes outside either. A filter cannot see the path that a socket
    connects to, so `unix_sockets` opens all of them or none.
    """
    audit, numbers = _MACHINES[machine]
    program = _Program(numbers)
    program.load(_MACHINE)
    program.add(_EQUAL, audit, if_true=1)
    program.add(_RETURN, _KILL)
    program.load(_NUMBER)
    if machine == "x86_64":
        program.add(_AT_LEAST, _X32_BIT, if_false=1)
        program.add(_RETURN, _KILL)
    for name in _ALWAYS_REFUSED:
        program.refuse(name)
    program.refuse("clone3", _MISSING)  # its flags are out of reach in memory; libc falls back to clone
    program.refuse_bits("clone", _NEW_NAMESPACE)
    program.refuse_bits("unshare", _NEW_NAMESPACE | _NEW_TIME)
    program.refuse_values("ioctl", 1, (_TIOCSTI, _TIOCLINUX))
    program.refuse_others("prlimit64", 0, (0,))  # those of another process, as of this program under Landlock
    for name in () if namespaces else _SHARED_CALLS:
        program.refuse(name)
    _limit_network(program, network, unix_sockets=unix_sockets)
    program.add(_RETURN, _ALLOW)
    return bytes(program.code)


def _limit_network(program: _Program, network: NetworkAccess, *, unix_sockets: bool) -> None:
    if network is True:
        program.refuse_values("socket", 0, (_AF_VSOCK,) if unix_sockets else (_AF_VSOCK, _AF_UNIX))
    elif network == "loopback" or unix_sockets:
        inet = (_AF_INET, _AF_INET6) if network == "loopback" else ()
        program.refuse_others("socket", 0, (*inet, _AF_UNIX) if unix_sockets else inet)
    else:
        program.refuse("socket")
        for name in _NETWORK_CALLS:
            program.refuse(name)
        program.refuse_address("sendto")
    program.refuse_others("socketpair", 0, (_AF_UNIX,))
    if not unix_sockets:
        # A datagram socket may send to any path even when it is one of a pair, and sendmsg hides its address in memory.
        program.refuse_values("socketpair", 1, (_SOCK_DGRAM,), mask=_SOCK_TYPE_MASK)


class _Program:
    """Instructions in order; between two rules the accumulator holds the number of the system call."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self.code = bytearray()
        self._numbers = numbers

    def add(self, code: int, value: int, *, if_true: int = 0, if_false: int = 0) -> None:
        self.code += struct.pack("<HBBI", code, if_true, if_false, value)

    def load(self, offset: int) -> None:
        self.add(_LOAD, offset)

    def refuse(self, name: str, answer: int = _REFUSE) -> None:
        self.add(_EQUAL, self._numbers[name], if_false=1)
        self.add(_RETURN, answer)

    def refuse_bits(self, name: str, bits: int) -> None:
        """Refuse the call when its first argument has any of `bits`."""
        self._only_for(name, 4)
        self.load(_ARGUMENTS)
        self.add(_ANY_BIT, bits, if_false=1)
        self.add(_RETURN, _REFUSE)
        self.load(_NUMBER)

    def refuse_values(self, name: str, argument: int, values: tuple[int, ...], *, mask: int | None = None) -> None:
        """Refuse the call when the low 32 bits of an argument, under `mask`, are one of `values`."""
        self._only_for(name, 2 + 2 * len(values) + (mask is not None))
        self.load(_ARGUMENTS + 8 * argument)
        if mask is not None:
            self.add(_AND, mask)
        for value in values:
            self.add(_EQUAL, value, if_false=1)
            self.add(_RETURN, _REFUSE)
        self.load(_NUMBER)

    def refuse_others(self, name: str, argument: int, values: tuple[int, ...]) -> None:
        """Refuse the call unless the low 32 bits of an argument are one of `values`."""
        self._only_for(name, 3 + len(values))
        self.load(_ARGUMENTS + 8 * argument)
        for index, value in enumerate(values):
            self.add(_EQUAL, value, if_true=len(values) - index)
        self.add(_RETURN, _REFUSE)
        self.load(_NUMBER)

    def refuse_address(self, name: str) -> None:
        """Refuse the call when its fifth argument, a pointer to an address, is not null."""
        self._only_for(name, 6)
        self.load(_ARGUMENTS + 8 * 4)
        self.add(_EQUAL, 0, if_false=2)
        self.load(_ARGUMENTS + 8 * 4 + 4)
        self.add(_EQUAL, 0, if_true=1)
        self.add(_RETURN, _REFUSE)
        self.load(_NUMBER)

    def _only_for(self, name: str, length: int) -> None:
        self.add(_EQUAL, self._numbers[name], if_false=length)
