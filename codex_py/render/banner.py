"""The first lines of a session: what it runs with. Drawn before rich is there."""

from __future__ import annotations

from pathlib import Path

from codex_py.protocol.policy import ApprovalPolicy, SandboxPolicy, approval_name, describe_sandbox
from codex_py.protocol.value import Value
from codex_py.render.path import short_directory
from codex_py.render.theme import Theme
from codex_py.text.cells import cell_width, cut_to_cells
from codex_py.text.sanitize import sanitize_line


class Banner(Value):
    """`skills` is how many were found, None while that is not known; `resumed` counts the items taken over."""

    version: str
    model: str
    provider: str
    cwd: Path
    sandbox: SandboxPolicy
    approval: ApprovalPolicy
    effort: str | None = None
    skills: int | None = None
    resumed: int = 0
    warnings: tuple[str, ...] = ()
    home: Path | None = None


def banner_lines(banner: Banner, *, width: int, theme: Theme) -> list[str]:
    """The banner, a blank line, and one line a warning; no line wider than `width` cells."""
    title = f"codex-py {banner.version}"
    lines = [theme.paint(cut_to_cells(title, width), "strong")]
    for label, value in _rows(banner, width):
        shown = cut_to_cells(f"{label:<10}", width)
        available = width - cell_width(shown)
        lines.append(theme.paint(shown, "dim") + cut_to_cells(sanitize_line(value), available))
    return [line.rstrip() for line in (*lines, *_warning_lines(banner.warnings, width=width, theme=theme))]


def _warning_lines(warnings: tuple[str, ...], *, width: int, theme: Theme) -> list[str]:
    """One line a warning, cut to the width."""
    return [
        theme.paint(cut_to_cells("! ", width), "warn")
        + cut_to_cells(sanitize_line(" ".join(warning.split())), max(0, width - 2))
        for warning in warnings
    ]


def _rows(banner: Banner, width: int) -> list[tuple[str, str]]:
    model = " · ".join(filter(None, (banner.model, banner.effort, banner.provider)))
    rows = [
        ("model", model),
        ("folder", short_directory(banner.cwd, banner.home, max_width=max(8, width - 10))),
        ("sandbox", describe_sandbox(banner.sandbox)),
        ("approval", approval_name(banner.approval)),
    ]
    if banner.skills is not None:
        rows.append(("skills", f"{banner.skills} found" if banner.skills else "none found"))
    if banner.resumed:
        rows.append(("resumed", f"{banner.resumed} item{'' if banner.resumed == 1 else 's'}"))
    return rows
