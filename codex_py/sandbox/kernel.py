"""The system calls a sandbox is made of, through ctypes. Each raises `OSError` naming what was being done.

Imported by the stage that starts a command, and by nothing else: ctypes takes its time.
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Final

# struct mount_attr's flags.
READ_ONLY: Final = 0x1
NO_SUID: Final = 0x2
NO_DEVICES: Final = 0x4

# Numbers from 424 on are the same on every machine.
_OPEN_TREE, _MOVE_MOUNT, _CLOSE_RANGE, _MOUNT_SETATTR = 428, 429, 436, 442
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446

_AT_FDCWD: Final = -100
_AT_SYMLINK_NOFOLLOW: Final = 0x100
_AT_EMPTY_PATH: Final = 0x1000
_AT_RECURSIVE: Final = 0x8000
_OPEN_TREE_CLONE: Final = 1
_MOVE_MOUNT_F_EMPTY_PATH: Final = 0x4

_NEW_MOUNTS, _NEW_IPC, _NEW_USER, _NEW_PIDS, _NEW_NETWORK = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 1 << 14, 1 << 18

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 1, 22, 24, 38, 47
_PR_SET_DUMPABLE: Final = 4
_PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
_SECCOMP_MODE_FILTER: Final = 2
_CAPABILITY_VERSION_3: Final = 0x20080522
_LAST_CAPABILITY: Final = 63
_FILTER_ENTRY_BYTES: Final = 8

_AF_INET, _SOCK_DGRAM, _SOCK_CLOEXEC = 2, 2, 0o2000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1

_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]


class _FilterProgram(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("entries", ctypes.c_void_p)]


class _InterfaceRequest(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 16), ("flags", ctypes.c_short), ("padding", ctypes.c_char * 22)]


class _RulesetAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("handled_files", "handled_network", "scoped")]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


def unshare(*, network: bool) -> None:
    """New namespaces of every kind that matters; the network's too when `network`."""
    flags = _NEW_USER | _NEW_MOUNTS | _NEW_PIDS | _NEW_IPC | (_NEW_NETWORK if network else 0)
    _checked(_LIBC.unshare(ctypes.c_int(flags)), "namespaces")


def map_identity(uid: int, gid: int) -> None:
    """Keep the user's own ids inside a new user namespace, and nobody else's."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def die_with_parent(parent: int | None) -> None:
    """SIGKILL when the parent ends; at once when it is not `parent` any more."""
    _control(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def keep_mounts_private() -> None:
    """No mount made from now on is seen outside, nor one made outside in here."""
    _checked(_LIBC.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None), "mounts")


def clone_mount(path: str) -> int:
    """A detached copy of what is at `path` with everything mounted below; a link is copied as a link."""
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_SYMLINK_NOFOLLOW | _AT_RECURSIVE
    return _system_call(_OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags, about=path)


def attach_mount(fd: int, path: str) -> None:
    """Put a detached mount over `path`, over the link itself when it is one."""
    _system_call(_MOVE_MOUNT, fd, b"", _AT_FDCWD, os.fsencode(path), _MOVE_MOUNT_F_EMPTY_PATH, about=path)


def set_attributes(path: str, attributes: int, *, recursive: bool = True) -> None:
    """Restrict the mount at `path`, and all below it when `recursive`."""
    _set_attributes(_AT_FDCWD, os.fsencode(path), _AT_RECURSIVE if recursive else 0, attributes)


def set_attributes_of(fd: int, attributes: int) -> None:
    """Restrict a detached mount and all below it."""
    _set_attributes(fd, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, attributes)


def mount_new(filesystem: str, path: str, options: str) -> None:
    """Mount a new file system without devices, set-user-id programs and (devices aside) executables."""
    flags = _MS_NOSUID | _MS_NOEXEC | (0 if filesystem == "devpts" else _MS_NODEV)
    result = _LIBC.mount(
        filesystem.encode(), os.fsencode(path), filesystem.encode(), ctypes.c_ulong(flags), options.encode()
    )
    _checked(result, path)


def raise_loopback() -> None:
    """Bring the loopback interface of a new network namespace up."""
    fd = _checked(_LIBC.socket(_AF_INET, _SOCK_DGRAM | _SOCK_CLOEXEC, 0), "loopback")
    request = _InterfaceRequest(name=b"lo")
    try:
        _checked(_LIBC.ioctl(fd, ctypes.c_ulong(_SIOCGIFFLAGS), ctypes.byref(request)), "loopback")
        request.flags |= _IFF_UP
        _checked(_LIBC.ioctl(fd, ctypes.c_ulong(_SIOCSIFFLAGS), ctypes.byref(request)), "loopback")
    finally:
        os.close(fd)


def drop_capabilities() -> None:
    """Give up every capability, and the ways to get one back."""
    _control(_PR_SET_NO_NEW_PRIVS, 1)
    for number in range(_LAST_CAPABILITY + 1):
        # Refused where the user has none to give up, and beyond the last one this kernel knows.
        _LIBC.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(number), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    _control(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _checked(_LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capabilities")


def apply_filter(program: bytes) -> None:
    """Put this process and all it starts under a system call filter; new privileges must be given up already."""
    entries = ctypes.create_string_buffer(program, len(program))
    attached = _FilterProgram(len(program) // _FILTER_ENTRY_BYTES, ctypes.addressof(entries))
    _control(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(attached))


def shut_memory() -> None:
    """Keep other processes of the same user out of this one's memory."""
    _control(_PR_SET_DUMPABLE, 0)


def close_from(first: int) -> None:
    """Close every descriptor from `first` on."""
    _system_call(_CLOSE_RANGE, first, 0x7FFFFFFF, 0, about="descriptors")


def landlock_version() -> int:
    """The version of Landlock in this kernel; 0 without it."""
    try:
        return _system_call(_LANDLOCK_CREATE, None, 0, 1, about="Landlock")
    except OSError:
        return 0


def create_ruleset(files: int, scoped: int) -> int:
    """A Landlock ruleset that refuses the `files` rights wherever no rule grants them."""
    attributes = _RulesetAttributes(files, 0, scoped)
    size = ctypes.sizeof(attributes) if scoped else 8
    return _system_call(_LANDLOCK_CREATE, ctypes.byref(attributes), size, 0, about="Landlock")


def grant(ruleset: int, path: str, rights: int) -> None:
    """Grant rights on `path` and below; `FileNotFoundError` when it is not there."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathRule(rights, fd)
        _system_call(_LANDLOCK_ADD, ruleset, 1, ctypes.byref(rule), 0, about=path)
    finally:
        os.close(fd)


def enforce_ruleset(ruleset: int) -> None:
    """Put this process and all it starts under a ruleset."""
    _system_call(_LANDLOCK_RESTRICT, ruleset, 0, about="Landlock")


def _set_attributes(fd: int, path: bytes, flags: int, attributes: int) -> None:
    attributes_struct = _MountAttributes(attributes, 0, 0, 0)
    about = os.fsdecode(path) or "mount"
    _system_call(
        _MOUNT_SETATTR, fd, path, flags, ctypes.byref(attributes_struct), ctypes.sizeof(attributes_struct), about=about
    )


def _control(option: int, *arguments: int) -> None:
    words = [ctypes.c_ulong(argument) for argument in (*arguments, 0, 0, 0, 0)[:4]]
    _checked(_LIBC.prctl(option, *words), "prctl")


def _system_call(number: int, *arguments: object, about: str) -> int:
    words = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    return _checked(_LIBC.syscall(ctypes.c_long(number), *words), about)


def _checked(result: int, about: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), about)
    return result
