"""Run a command as containers do that forbid user namespaces: `no_namespaces.py [--no-landlock] COMMAND...`.

The filter is that of Docker's default profile: `unshare` and `clone` refuse the flag, `clone3` does not exist. It needs
no root and applies to everything the command starts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from typing import Final

# Of each machine: its audit architecture, `clone`, `unshare`.
_MACHINES: Final = {"x86_64": (0xC000003E, 56, 272), "aarch64": (0xC00000B7, 220, 97)}
_CLONE3: Final = 435
_LANDLOCK: Final = 444
_NEW_USER: Final = 0x10000000
_LOAD, _JUMP_IF, _JUMP_IF_SET, _RETURN = 0x20, 0x15, 0x45, 0x06
_ALLOW: Final = 0x7FFF0000
_ERROR: Final = 0x00050000
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2


def build_filter(*, landlock: bool) -> bytes:
    """The program: number by number, with what each is answered."""
    audit, clone, unshare = _MACHINES[os.uname().machine]
    flagged = [(_LOAD, 0, 0, 16), (_JUMP_IF_SET, 0, 1, _NEW_USER), (_RETURN, 0, 0, _ERROR | errno.EPERM)]
    program = [(_LOAD, 0, 0, 4), (_JUMP_IF, 1, 0, audit), (_RETURN, 0, 0, _ALLOW), (_LOAD, 0, 0, 0)]
    for number in (clone, unshare):
        program += [(_JUMP_IF, 0, 4, number), *flagged, (_RETURN, 0, 0, _ALLOW)]
    for number in (_CLONE3, *([] if landlock else [_LANDLOCK])):
        program += [(_JUMP_IF, 0, 1, number), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    return b"".join(struct.pack("HBBI", *step) for step in (*program, (_RETURN, 0, 0, _ALLOW)))


def forbid(words: list[str]) -> list[str]:
    """Put the filter on this process, and give back the command; exits where the filter is refused."""
    landlock = words[0] != "--no-landlock"
    program = build_filter(landlock=landlock)
    steps = ctypes.create_string_buffer(program)
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(steps)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SECCOMP, _FILTER, header, 0, 0):
        sys.exit(f"the filter is refused: {os.strerror(ctypes.get_errno())}")
    return words if landlock else words[1:]


def main() -> None:
    command = forbid(sys.argv[1:])
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
