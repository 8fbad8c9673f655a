"""Where the commands run: the fields of `<environment_context>` and its text."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from codex_py.context.markup import escape, value
from codex_py.protocol.policy import DangerFullAccess, ReadOnly, SandboxPolicy, WorkspaceWrite, extra_roots
from codex_py.protocol.value import Value
from codex_py.text.sanitize import sanitize_line

_MAX_ROOTS: Final = 32
_PROTECTED: Final = (".git", ".agents", ".codex")
_ZONE_NAME: Final = r"(?=.{1,64}$)[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,3}"


class Environment(Value):
    """The content of `<environment_context>`. `filesystem` is that element, rendered."""

    cwd: str
    shell: str
    current_date: str
    timezone: str
    filesystem: str


def current_environment(cwd: Path, policy: SandboxPolicy, *, shell: str, env: Mapping[str, str]) -> Environment:
    """The environment of a turn that starts now; `shell` is a path or a name, `env` is the user's environment."""
    return Environment(
        cwd=sanitize_line(str(cwd)),
        shell=sanitize_line(Path(shell).name),
        current_date=time.strftime("%Y-%m-%d"),
        timezone=local_timezone(env),
        filesystem=render_filesystem(cwd, policy),
    )


def render_environment(now: Environment, last_sent: Environment | None = None) -> str:
    """The whole block, or only what changed since `last_sent`; "" when nothing did.

    A change always comes with the date, the time zone and the filesystem, which say what they say as of now.
    """
    if now == last_sent:
        return ""
    lines = ["<environment_context>"]
    if last_sent is None or now.cwd != last_sent.cwd:
        lines.append(f"  <cwd>{escape(now.cwd)}</cwd>")
    if last_sent is None or now.shell != last_sent.shell:
        lines.append(f"  <shell>{escape(now.shell)}</shell>")
    lines += [
        f"  <current_date>{now.current_date}</current_date>",
        f"  <timezone>{escape(now.timezone)}</timezone>",
        f"  {now.filesystem}",
        "</environment_context>",
    ]
    return "\n".join(lines)


def render_filesystem(cwd: Path, policy: SandboxPolicy) -> str:
    """The `<filesystem>` element: the workspace roots and what commands may do where. At most 32 roots are named."""
    extra = extra_roots(policy)
    roots = [str(root) for root in dict.fromkeys([cwd, *extra])][:_MAX_ROOTS]
    shown = "".join(f"<root>{value(root)}</root>" for root in roots)
    return f"<filesystem><workspace_roots>{shown}</workspace_roots>{_permission_profile(policy, roots)}</filesystem>"


def _permission_profile(policy: SandboxPolicy, roots: list[str]) -> str:
    match policy:
        case DangerFullAccess():
            return '<permission_profile type="disabled"><file_system type="unrestricted" /></permission_profile>'
        case ReadOnly():
            entries = [_special("read", "root")]
        case WorkspaceWrite():
            entries = [_special("read", "root"), *(_path("write", root) for root in roots)]
            if not policy.exclude_slash_tmp:
                entries.append(_special("write", "slash_tmp"))
            if not policy.exclude_tmpdir_env_var:
                entries.append(_special("write", "tmpdir"))
            names = _PROTECTED[1:] if policy.git else _PROTECTED
            entries += [_path("read", f"{root.rstrip('/')}/{name}") for name in names for root in roots]
    return (
        '<permission_profile type="managed"><file_system type="restricted">'
        f"{''.join(entries)}</file_system></permission_profile>"
    )


def _special(access: str, name: str) -> str:
    return f'<entry access="{access}"><special>:{name}</special></entry>'


def _path(access: str, path: str) -> str:
    return f'<entry access="{access}"><path>{value(path)}</path></entry>'


def local_timezone(
    env: Mapping[str, str], *, etc: Path = Path("/etc"), zones: Path = Path("/usr/share/zoneinfo")
) -> str:
    """The IANA name of the local zone: from `TZ`, else from `localtime` and `timezone` in `etc`.

    Without one that is known in `zones`, a name for the offset that the clock has now.
    """
    chosen = env.get("TZ")
    if chosen is None:
        candidates = (_zone_of_link(etc / "localtime"), _first_line(etc / "timezone"))
    else:
        chosen = chosen.removeprefix(":")
        candidates = (_zone_of_path(chosen) if chosen.startswith("/") else chosen,)
    # The regex first: a name goes into a path below `zones`.
    known = (name for name in candidates if re.fullmatch(_ZONE_NAME, name) and _is_zone(name, zones))
    return next(known, None) or _zone_of_offset(time.localtime().tm_gmtoff)


def _is_zone(name: str, zones: Path) -> bool:
    return (zones / name).is_file() or not zones.is_dir()


def _zone_of_link(link: Path) -> str:
    try:
        return _zone_of_path(str(link.readlink()))
    except OSError:
        return ""


def _zone_of_path(path: str) -> str:
    return path.partition("/zoneinfo/")[2]


def _first_line(path: Path) -> str:
    try:
        with path.open("rb") as lines:
            return lines.readline(80).decode("ascii", "replace").strip()
    except OSError:
        return ""


def _zone_of_offset(seconds: int) -> str:
    if seconds == 0:
        return "Etc/UTC"
    sign = "+" if seconds > 0 else "-"
    hours, rest = divmod(abs(seconds), 3600)
    # The sign of the `Etc` zones counts towards Greenwich.
    return f"UTC{sign}{hours:02}:{rest // 60:02}" if rest else f"Etc/GMT{'-' if seconds > 0 else '+'}{hours}"
