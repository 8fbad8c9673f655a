"""The last resort: Landlock, which grants rights by folder and cannot take one back below it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from codex_py.sandbox import kernel

MIN_VERSION: Final = 3  # the first that stops a file from being cut short

_WRITE_FILE, _READ_FILE, _TRUNCATE = 1 << 1, 1 << 2, 1 << 14
# Removing and making of every kind, and linking from one folder to another.
_CHANGE_DIRECTORY: Final = 0x3FF0
_WRITES: Final = _WRITE_FILE | _CHANGE_DIRECTORY | _TRUNCATE
_SCOPED_SINCE: Final = 6
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2
_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")


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
    for path in (*(f"/dev/{name}" for name in _DEVICES), *_own_terminals()):
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

    One in a writable folder counts only when there is something to hide already: what a command makes in the folders
    that lead to it, the command could not read.
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
    """Everything beside the hidden paths, and beside the folders that lead to them; in a screen only what it shows."""
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
