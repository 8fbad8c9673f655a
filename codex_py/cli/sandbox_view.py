"""How `codex-py sandbox explain` prints: a table for each action for people, one JSON object for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, TextIO

from codex_py.cli.tables import aligned, print_json
from codex_py.core.sandbox_report import Action, Permission
from codex_py.paths import short_path
from codex_py.text.sanitize import sanitize_line

_TITLES: Final[dict[Action, str]] = {"read": "read", "write": "write", "network": "network", "sockets": "Unix sockets"}


class SandboxReport(NamedTuple):
    """`backend` is what holds the commands, None where nothing does; `shortfall` is what it cannot hold."""

    mode: str
    cwd: Path
    backend: str | None
    shortfall: str | None
    permissions: Sequence[Permission]


def print_report(report: SandboxReport, out: TextIO, home: Path, *, as_json: bool, everything: bool) -> None:
    """Print the report; paths that do not exist that are denied only as JSON or when `everything` is wanted."""
    if as_json:
        print_json(_as_object(report), out)
        return
    backend = report.backend or "nothing, so no command runs"
    out.write(f"{sanitize_line(f'{report.mode} in {short_path(report.cwd, str(home))}, held by {backend}')}\n")
    if report.shortfall:
        out.write(f"{sanitize_line(f'not held: {report.shortfall}')}\n")
    shown = [
        permission
        for permission in report.permissions
        if everything or permission.exists or permission.action != "read"
    ]
    for action, title in _TITLES.items():
        out.write(f"\n{title}\n")
        rows = [_row(permission, home) for permission in shown if permission.action == action]
        out.writelines(f"  {line}\n" for line in aligned(rows))
    left = len(report.permissions) - len(shown)
    if left:
        out.write(f"\n{left} more paths must not be read and do not exist here: --all shows them\n")


def _row(permission: Permission, home: Path) -> tuple[str, ...]:
    subject = permission.subject
    if subject.startswith("/"):
        subject = short_path(Path(subject), str(home))
    changed = f"({permission.setting})" if permission.setting else "(always)"
    return "yes" if permission.allowed else "no", subject, permission.reason, changed


def _as_object(report: SandboxReport) -> dict[str, object]:
    return {
        "mode": report.mode,
        "cwd": str(report.cwd),
        "backend": report.backend,
        "shortfall": report.shortfall,
        "permissions": [
            {
                "action": permission.action,
                "subject": permission.subject,
                "allowed": permission.allowed,
                "reason": permission.reason,
                "setting": permission.setting,
                "exists": permission.exists,
            }
            for permission in report.permissions
        ],
    }
