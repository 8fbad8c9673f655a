"""The system call filter, run through a small interpreter of its own instruction set."""

from __future__ import annotations

import errno
import json
import struct
from pathlib import Path

import pytest

from codex_py.protocol.policy import NetworkAccess
from codex_py.sandbox.seccomp import build_filter, call_number, is_supported

ALLOW = 0x7FFF0000
KILL = 0x80000000
EPERM = 0x00050000 | errno.EPERM
ENOSYS = 0x00050000 | errno.ENOSYS

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MACHINES = tuple(AUDIT)
# What the kernel's own headers say of every system call: name, number on x86_64, number on aarch64; null where there
# is none. As `cc -E -dM` prints <asm/unistd_64.h> and <asm-generic/unistd.h> of Linux 6.1, and what came since.
TABLE: dict[str, list[int | None]] = json.loads((Path(__file__).parent / "system_calls.json").read_text())
# Name: number on x86_64, number on aarch64.
CALLS = {
    "read": (0, 63),
    "ioctl": (16, 29),
    "socket": (41, 198),
    "connect": (42, 203),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "sendmsg": (46, 211),
    "bind": (49, 200),
    "listen": (50, 201),
    "getsockname": (51, 204),
    "socketpair": (53, 199),
    "getsockopt": (55, 209),
    "clone": (56, 220),
    "execve": (59, 221),
    "ptrace": (101, 117),
    "mount": (165, 40),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "accept4": (288, 242),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "clone3": (435, 435),
    "pidfd_getfd": (438, 438),
}

REFUSED = frozenset(
    "ptrace process_vm_readv process_vm_writev io_uring_setup io_uring_enter io_uring_register pidfd_getfd mount "
    "umount2 pivot_root open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr "
    "open_by_handle_at setns bpf perf_event_open userfaultfd keyctl add_key request_key".split()
)
NETWORK_OFF = frozenset(("socket", "connect", "accept", "accept4", "bind", "listen"))


def _verdict(machine: str, network: NetworkAccess, call: str | int, *arguments: int, audit: int | None = None) -> int:
    return _run(build_filter(machine, network), _call(machine, call, *arguments, audit=audit))


def _call(machine: str, call: str | int, *arguments: int, audit: int | None = None) -> bytes:
    number = call if isinstance(call, int) else CALLS[call][MACHINES.index(machine)]
    words = [*arguments, *[0] * (6 - len(arguments))]
    return struct.pack("<iIQ6Q", number, AUDIT[machine] if audit is None else audit, 0, *words)


def _run(program: bytes, seen: bytes) -> int:
    code = list(struct.iter_unpack("<HBBI", program))
    accumulator = at = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", seen, value)
        elif operation == 0x54:
            accumulator &= value
        elif operation == 0x06:
            return value
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[operation]
            at += if_true if holds else if_false


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("network", [False, "loopback", True])
def test_ordinary_work_is_allowed_whatever_the_network(machine: str, network: NetworkAccess) -> None:
    for call in ("read", "execve", "recvfrom", "sendmsg", "getsockname", "getsockopt"):
        assert _verdict(machine, network, call) == ALLOW, call
    assert _verdict(machine, network, "clone", 0x003D0F00) == ALLOW  # a thread
    assert _verdict(machine, network, "clone", 0x11) == ALLOW  # fork
    assert _verdict(machine, network, "unshare", 0x400) == ALLOW  # own file table
    assert _verdict(machine, network, "ioctl", 0, 0x5401) == ALLOW
    assert _verdict(machine, network, "socketpair", 1, 1 | 0o2000000) == ALLOW
    assert _verdict(machine, network, "sendto", 3, 0x1000, 1) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("network", [False, "loopback", True])
def test_reaching_out_of_the_sandbox_is_refused_whatever_the_network(machine: str, network: NetworkAccess) -> None:
    for call in ("ptrace", "process_vm_readv", "io_uring_setup", "pidfd_getfd", "mount", "keyctl", "setns", "bpf"):
        assert _verdict(machine, network, call) == EPERM, call
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert _verdict(machine, network, "clone", flag | 0x11) == EPERM, hex(flag)
        assert _verdict(machine, network, "unshare", flag) == EPERM, hex(flag)
    assert _verdict(machine, network, "unshare", 0x80) == EPERM
    assert _verdict(machine, network, "clone3") == ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_characters_cannot_be_pushed_into_a_terminal(machine: str) -> None:
    for request in (0x5412, 0x541C, 0xFFFFFFFF_00005412, 0x1_0000541C):
        assert _verdict(machine, False, "ioctl", 0, request) == EPERM, hex(request)


@pytest.mark.parametrize("machine", MACHINES)
def test_with_the_network_off_no_socket_is_made_and_none_is_addressed(machine: str) -> None:
    for family in (1, 2, 10, 16, 17, 40):
        assert _verdict(machine, False, "socket", family, 1) == EPERM, family
    for call in ("connect", "bind", "listen", "accept4"):
        assert _verdict(machine, False, call) == EPERM, call
    assert _verdict(machine, False, "sendto", 3, 0x1000, 1, 0, 0x7FFF_0000_0000) == EPERM
    assert _verdict(machine, False, "sendto", 3, 0x1000, 1, 0, 0x0000_1000) == EPERM
    assert _verdict(machine, False, "socketpair", 2, 1) == EPERM
    assert _verdict(machine, False, "socketpair", 1, 2) == EPERM  # a datagram pair can address any path
    assert _verdict(machine, False, "socketpair", 1, 2 | 0o2000000) == EPERM
    assert _verdict(machine, False, "socketpair", 1, 5) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_loopback_means_internet_sockets_and_no_others(machine: str) -> None:
    verdicts = {family: _verdict(machine, "loopback", "socket", family, 1) for family in (1, 2, 10, 16, 17, 40)}
    assert verdicts == {1: EPERM, 2: ALLOW, 10: ALLOW, 16: EPERM, 17: EPERM, 40: EPERM}
    for call in ("connect", "bind", "listen", "accept4"):
        assert _verdict(machine, "loopback", call) == ALLOW, call
    assert _verdict(machine, "loopback", "sendto", 3, 0x1000, 1, 0, 0x1000) == ALLOW
    assert _verdict(machine, "loopback", "socketpair", 1, 2) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_with_the_network_on_unix_sockets_and_the_machine_under_us_are_out_of_reach(machine: str) -> None:
    verdicts = {family: _verdict(machine, True, "socket", family, 1) for family in (1, 2, 10, 40)}
    assert verdicts == {1: EPERM, 2: ALLOW, 10: ALLOW, 40: EPERM}
    assert _verdict(machine, True, "socketpair", 1, 2) == EPERM
    assert _verdict(machine, True, "socketpair", 1, 1) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_allowed_unix_sockets_open_no_others(machine: str) -> None:
    def verdicts(network: NetworkAccess) -> dict[int, int]:
        program = build_filter(machine, network, unix_sockets=True)
        return {family: _run(program, _call(machine, "socket", family, 1)) for family in (1, 2, 10, 16, 40)}

    assert verdicts(False) == {1: ALLOW, 2: EPERM, 10: EPERM, 16: EPERM, 40: EPERM}
    assert verdicts("loopback") == {1: ALLOW, 2: ALLOW, 10: ALLOW, 16: EPERM, 40: EPERM}
    assert verdicts(True) == {1: ALLOW, 2: ALLOW, 10: ALLOW, 16: ALLOW, 40: EPERM}


@pytest.mark.parametrize("machine", MACHINES)
def test_limits_of_other_processes_and_memory_shared_with_them_are_out_of_reach(machine: str) -> None:
    numbers = {name: number for name, both in TABLE.items() if (number := both[MACHINES.index(machine)]) is not None}
    assert [_verdict(machine, False, numbers["prlimit64"], pid) for pid in (0, 1, 4711)] == [ALLOW, EPERM, EPERM]
    shared = build_filter(machine, False, namespaces=False)
    for name in ("shmget", "shmat", "semget", "msgget"):
        call = _call(machine, numbers[name])
        assert (_run(shared, call), _run(build_filter(machine, False), call)) == (EPERM, ALLOW), name


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("network", [False, "loopback", True])
def test_of_all_system_calls_just_these_are_refused(machine: str, network: NetworkAccess) -> None:
    """Without arguments, so those that only some arguments make dangerous are not among them."""
    expected = {*REFUSED, *(NETWORK_OFF if network is False else ())}
    expected.add("socketpair")  # of the family 0
    if network == "loopback":
        expected.add("socket")
    found: dict[str, int] = {}
    for name, numbers in TABLE.items():
        number = numbers[MACHINES.index(machine)]
        if number is not None and (verdict := _verdict(machine, network, number)) != ALLOW:
            found[name] = verdict
    assert found == {name: EPERM for name in expected} | {"clone3": ENOSYS}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_those_of_the_kernel_s_headers(machine: str) -> None:
    for name in (*REFUSED, *NETWORK_OFF, "socketpair", "sendto", "ioctl", "clone", "clone3", "unshare"):
        assert call_number(machine, name) == TABLE[name][MACHINES.index(machine)], name
    assert {name: TABLE[name] for name in CALLS} == {name: list(numbers) for name, numbers in CALLS.items()}


def test_another_calling_convention_is_fatal() -> None:
    assert _verdict("x86_64", False, "read", audit=0x40000003) == KILL  # 32-bit
    assert _verdict("x86_64", False, 0x40000000 | 41) == KILL  # x32
    assert _verdict("aarch64", False, "read", audit=0x40000028) == KILL


def test_machines_without_a_table_are_known_as_such() -> None:
    assert [is_supported(machine) for machine in ("x86_64", "aarch64", "riscv64", "")] == [True, True, False, False]
