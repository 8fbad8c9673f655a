"""The macOS sandbox: a Seatbelt profile and the command line of `sandbox-exec`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from codex_py.paths import real_path
from codex_py.protocol.policy import NetworkAccess
from codex_py.sandbox.policy import PROTECTED_NAMES, WritableRoot

SANDBOX_EXEC: Final = "/usr/bin/sandbox-exec"

_READABLE_SYSCTLS: Final = (
    "hw.activecpu",
    "hw.busfrequency_compat",
    "hw.byteorder",
    "hw.cacheconfig",
    "hw.cachelinesize_compat",
    "hw.cpufamily",
    "hw.cpufrequency_compat",
    "hw.cputype",
    "hw.l1dcachesize_compat",
    "hw.l1icachesize_compat",
    "hw.l2cachesize_compat",
    "hw.l3cachesize_compat",
    "hw.logicalcpu_max",
    "hw.machine",
    "hw.memsize",
    "hw.model",
    "hw.ncpu",
    "hw.nperflevels",
    "hw.packages",
    "hw.pagesize_compat",
    "hw.pagesize",
    "hw.physicalcpu_max",
    "hw.tbfrequency_compat",
    "hw.vectorunit",
    "kern.argmax",
    "kern.boottime",
    "kern.hostname",
    "kern.maxfilesperproc",
    "kern.maxproc",
    "kern.osproductversion",
    "kern.osrelease",
    "kern.ostype",
    "kern.osvariant_status",
    "kern.osversion",
    "kern.secure_kernel",
    "kern.usrstack64",
    "kern.version",
    "sysctl.proc_cputype",
    "vm.loadavg",
)
_READABLE_SYSCTL_PREFIXES: Final = (
    "hw.optional.arm.",
    "hw.optional.armv8_",
    "hw.perflevel",
    "kern.proc.pgrp.",
    "kern.proc.pid.",
)

_BASE: Final = """\
(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow file-read*)
(allow file-write-data (require-all (path "/dev/null") (vnode-type CHARACTER-DEVICE)))
(allow file-read* file-write* (literal "/dev/ptmx"))
(allow file-read* file-write* (require-all (regex #"^/dev/ttys[0-9]+") (extension "com.apple.sandbox.pty")))
(allow file-ioctl (regex #"^/dev/ttys[0-9]+"))
(allow pseudo-tty)
(allow ipc-posix-sem)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow iokit-open (iokit-registry-entry-class "RootDomainUserClient"))
"""

_NETWORK: Final = """\
(allow network-outbound)
(allow network-inbound)
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.SecurityServer")
  (global-name "com.apple.networkd")
  (global-name "com.apple.ocspd")
  (global-name "com.apple.trustd.agent")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.SystemConfiguration.configd"))
"""

# Names are looked up through this one.
_NAME_SERVICE: Final = "/private/var/run/mDNSResponder"

_LOOPBACK: Final = """\
(allow system-socket (socket-domain AF_INET) (socket-domain AF_INET6))
(allow network-bind (local ip "localhost:*"))
(allow network-inbound (local ip "localhost:*"))
(allow network-outbound (remote ip "localhost:*"))
"""


def seatbelt_argv(
    roots: Sequence[WritableRoot],
    network: NetworkAccess,
    unreadable: Sequence[Path] = (),
    sockets: Literal[True] | Sequence[Path] = (),
) -> list[str]:
    """The options of one sandboxed command, up to and including `--`."""
    argv = [SANDBOX_EXEC, "-p", seatbelt_profile(roots, network, unreadable, sockets)]
    if sockets is not True:
        argv += (f"-DUNIX_SOCKET_{index}={real_path(path)}" for index, path in enumerate(sockets))
    for index, root in enumerate(roots):
        argv.append(f"-DWRITABLE_ROOT_{index}={root.path}")
        argv += (f"-DWRITABLE_ROOT_{index}_RO_{at}={path}" for at, path in enumerate(_reserved(root, roots)))
        argv += (f"-DWRITABLE_ROOT_{index}_WAY_{at}={path}" for at, path in enumerate(_ways(root, roots)))
    argv += (f"-DUNREADABLE_{index}={path}" for index, path in enumerate(unreadable))
    return [*argv, "--"]


def seatbelt_profile(
    roots: Sequence[WritableRoot],
    network: NetworkAccess,
    unreadable: Sequence[Path] = (),
    sockets: Literal[True] | Sequence[Path] = (),
) -> str:
    """The profile text. Paths are parameters of it, so that no directory's name can change its meaning."""
    sections = [_BASE, _sysctl_rule()]
    for index, root in enumerate(roots):
        exceptions = "".join(
            f'\n    (require-not (subpath (param "WRITABLE_ROOT_{index}_RO_{at}")))'
            for at, _ in enumerate(_reserved(root, roots))
        )
        exceptions += "".join(
            f'\n    (require-not (literal (param "WRITABLE_ROOT_{index}_WAY_{at}")))'
            for at, _ in enumerate(_ways(root, roots))
        )
        sections.append(
            f'(allow file-write*\n  (require-all\n    (subpath (param "WRITABLE_ROOT_{index}")){exceptions}))\n'
        )
    if roots:
        sections.append(_other_case_rule())
    if network is True:
        sections.append(_NETWORK)
    elif network == "loopback":
        sections.append(_LOOPBACK)
    sections.append(_socket_rules(network, sockets))
    # Last, because the last rule that matches wins.
    sections += (_denial(index, path, roots) for index, path in enumerate(unreadable))
    return "".join(sections)


def _socket_rules(network: NetworkAccess, sockets: Literal[True] | Sequence[Path]) -> str:
    """Which Unix sockets can be connected to; whether others can be made is a matter of what may be written."""
    if sockets is True:
        return "(allow system-socket (socket-domain AF_UNIX))\n(allow network-outbound (remote unix-socket))\n"
    parameters = [f'(param "UNIX_SOCKET_{index}")' for index, _ in enumerate(sockets)]
    rules = ["(allow system-socket (socket-domain AF_UNIX))\n"] if sockets else []
    if network is True:
        rules.append("(deny network-outbound (remote unix-socket))\n")
        parameters.append(f'"{_NAME_SERVICE}"')
    rules += (f"(allow network-outbound (literal {parameter}))\n" for parameter in parameters)
    return "".join(rules)


def _other_case_rule() -> str:
    """Nothing is made that most disks there take for a protected name that is missing: `.Git`, `.CODEX`."""
    words = [name.removeprefix(".") for name in PROTECTED_NAMES]
    others = [
        _any_case(word[:index]) + word[index].upper() + _any_case(word[index + 1 :])
        for word in words
        for index in range(len(word))
    ]
    return f'(deny file-write* (regex #"/\\.({"|".join(others)})(/|$)"))\n'


def _any_case(letters: str) -> str:
    return "".join(f"[{letter}{letter.upper()}]" for letter in letters)


def _denial(index: int, path: Path, roots: Sequence[WritableRoot]) -> str:
    """The rule for one path that must not be read; directories inside it that may be worked in stay as they are."""
    subpath = f'(subpath (param "UNREADABLE_{index}"))'
    inside = [at for at, root in enumerate(roots) if root.path.is_relative_to(path)]
    if not inside:
        return f"(deny file-read* file-write* {subpath})\n"
    exceptions = "".join(f'\n    (require-not (subpath (param "WRITABLE_ROOT_{at}")))' for at in inside)
    return f"(deny file-read* file-write*\n  (require-all\n    {subpath}{exceptions}))\n"


def _reserved(root: WritableRoot, roots: Sequence[WritableRoot]) -> list[Path]:
    """What stays read-only below `root`: its own, and that of the roots inside it, since any rule that allows wins."""
    inside = [other for other in roots if other.path.is_relative_to(root.path)]
    return list(dict.fromkeys(path for other in (root, *inside) for path in (*other.protected, *other.unmade)))


def _ways(root: WritableRoot, roots: Sequence[WritableRoot]) -> list[Path]:
    """The directories that can be worked in and not moved: also those that lead to a path that must not be made, and a
    root itself in another one, as a git directory is."""
    leading = (parent for path in root.unmade for parent in path.parents if root.path in parent.parents)
    is_inside = any(other.path in root.path.parents for other in roots)
    return list(dict.fromkeys([*root.ways, *leading, *([root.path] if is_inside else [])]))


def _sysctl_rule() -> str:
    names = [f'  (sysctl-name "{name}")' for name in _READABLE_SYSCTLS]
    prefixes = [f'  (sysctl-name-prefix "{name}")' for name in _READABLE_SYSCTL_PREFIXES]
    return "(allow sysctl-read\n" + "\n".join([*names, *prefixes]) + ")\n"
