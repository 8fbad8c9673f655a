"""The banner and the status line of a terminal session, and short forms of paths and commands. Drawn before rich is
loaded.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from codex_py.paths import short_path
from codex_py.protocol.policy import ApprovalPolicy, SandboxMode, SandboxPolicy, approval_name, describe_sandbox
from codex_py.protocol.value import Value
from codex_py.render.theme import Theme
from codex_py.text.display import cell_width, cut_to_cells, describe_seconds
from codex_py.text.sanitize import sanitize_line

DIRECTORY_SHOWN: Final = 32


def relative_path(path: Path, cwd: Path | None) -> str:
    """A path relative to `cwd` if it is below it, else the whole path; not sanitized."""
    return str(path.relative_to(cwd)) if cwd is not None and path.is_relative_to(cwd) else str(path)


def short_directory(cwd: Path, home: Path | None, *, max_width: int = DIRECTORY_SHOWN) -> str:
    """A sanitized directory with `~` for the home; a long one is cut at its beginning."""
    path = sanitize_line(short_path(cwd, str(home or "")))
    if cell_width(path) <= max_width:
        return path
    end = path[-(max_width - 1) :]
    while cell_width(end) > max_width - 1:
        end = end[1:]
    return f"…{end}"


_WRAPPED: Final = re.compile(r"\S*?(?:bash|zsh|sh|dash) -l?c ")
# Longer commands are not checked for a wrapping shell.
_MAX_WRAPPED_LENGTH: Final = 16 * 1024


def command_title(command: str) -> str:
    """A command without the shell that runs it, and without leading blank lines."""
    text = command.strip()
    if len(text) > _MAX_WRAPPED_LENGTH or not (wrapped := _WRAPPED.match(text)):
        return text
    try:
        inner = shlex.split(text[wrapped.end() :])
    except ValueError:
        return text
    return inner[0].strip() or text if len(inner) == 1 else text


Part: TypeAlias = tuple[str, str]
"""A text that is safe to draw, and the name of its style."""

_BETWEEN: Final = " · "
_LOW: Final = 0.15
_BRANCH_SHOWN: Final = 24
_FIELD: Final = re.compile(r"\{([\w-]+)\}")


class Status(Value):
    """The content of the status line; what is None or empty is left out.

    `running` counts the commands in the background, `cost` is that of the session. `home` is the directory that is
    written `~`.
    """

    model: str
    cwd: Path
    sandbox: SandboxMode
    effort: str | None = None
    context_left: float | None = None
    branch: str = ""
    plan: bool = False
    home: Path | None = None
    running: int = 0
    cost: str = ""


def status_segments(status: Status, width: int) -> list[Part]:
    """The status line in at most `width` cells: first words are shortened, then the least important fields left out."""
    fields = _fields(status)
    if _width(fields) > width:
        fields |= _shortened(status, fields)
    if _width(fields) > width and "context" in fields:
        text, style = fields["context"]
        fields["context"] = (text.replace(" context", ""), style)
    if _width(fields) > width >= _width(without_effort := fields | {"model": _model(status.model)}):
        fields = without_effort
    # From the least important on; the mode and the model are the last to go.
    for name in ("branch", "directory", "sandbox", "cost", "context"):
        if _width(fields) <= width:
            break
        fields.pop(name, None)
    if _width(fields) > width:
        name = "plan" if "plan" in fields else "model"
        fields = {name: fields[name]}
    return _cut([part for number, field in enumerate(fields.values()) for part in _separated(field, number)], width)


def fill_status(template: str, status: Status, tokens: int) -> str:
    """A status line of the user's own; a part between two ` · ` whose fields are all empty is left out."""
    fields = {name: text for name, (text, _) in _fields(status).items()} | {
        "model": sanitize_line(status.model),
        "effort": sanitize_line(status.effort or ""),
        "running": f"{status.running} running" if status.running else "",
        "tokens": f"{describe_tokens(tokens)} tokens" if tokens else "",
    }

    def filled(part: str) -> str:
        names = _FIELD.findall(part)
        if names and not any(fields.get(name) for name in names):
            return ""
        return _FIELD.sub(lambda found: fields.get(found[1], ""), part)

    parts = [filled(part) for part in sanitize_line(template).split(_BETWEEN)]
    return _BETWEEN.join(" ".join(part.split()) for part in parts if part.strip())


def format_running_time(seconds: float) -> str:
    """The time that something has been running: `7s`, `3m 05s`."""
    return f"{int(seconds)}s" if seconds < 60 else describe_seconds(int(seconds))


def describe_tokens(count: int) -> str:
    """A number of tokens in short: `950`, `12.3k`, `1.2M`."""
    if count < 1000:
        return str(count)
    if count < 999_950:
        return f"{count / 1000:.1f}k".replace(".0k", "k")
    return f"{count / 1_000_000:.1f}M".replace(".0M", "M")


def _fields(status: Status) -> dict[str, Part]:
    """The fields to show, in order."""
    fields: dict[str, Part] = {}
    if status.plan:
        fields["plan"] = ("plan mode", "status.mode")
    fields["model"] = _model(status.model, status.effort)
    if status.running:
        fields["running"] = (f"{status.running} running · /ps", "status.mode")
    if (left := status.context_left) is not None:
        fields["context"] = (f"{max(0.0, left):.0%} context left", "status.low" if left <= _LOW else "status")
    if status.cost:
        fields["cost"] = (status.cost, "status")
    fields["directory"] = (short_directory(status.cwd, status.home), "status")
    if status.branch:
        fields["branch"] = (cut_to_cells(sanitize_line(status.branch), _BRANCH_SHOWN), "status")
    unsafe = status.sandbox == "danger-full-access"
    fields["sandbox"] = ("no sandbox" if unsafe else status.sandbox, "status.low" if unsafe else "status")
    return fields


def _model(*words: str | None) -> Part:
    return sanitize_line(" ".join(filter(None, words))), "status"


def _shortened(status: Status, fields: Mapping[str, Part]) -> dict[str, Part]:
    """The fields that have a shorter form."""
    short = {"directory": short_directory(Path(status.cwd.name or "/"), None, max_width=_BRANCH_SHOWN // 2)}
    if "branch" in fields:
        short["branch"] = cut_to_cells(fields["branch"][0], _BRANCH_SHOWN // 2)
    return {name: (text, fields[name][1]) for name, text in short.items()}


def _separated(part: Part, number: int) -> list[Part]:
    return [*([(_BETWEEN, "status")] if number else []), part]


def _width(fields: Mapping[str, Part]) -> int:
    return sum(cell_width(text) for text, _ in fields.values()) + len(_BETWEEN) * (len(fields) - 1)


def _cut(segments: Sequence[Part], width: int) -> list[Part]:
    fitting: list[Part] = []
    for text, style in segments:
        shown = cut_to_cells(text, width)
        if shown:
            fitting.append((shown, style))
        if shown != text:
            break
        width -= cell_width(text)
    return fitting


class Banner(Value):
    """The content of the banner. `skills` is how many were found, None if unknown; `resumed` says what was resumed."""

    version: str
    model: str
    provider: str
    cwd: Path
    sandbox: SandboxPolicy
    approval: ApprovalPolicy
    effort: str | None = None
    skills: int | None = None
    resumed: str = ""
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
        ("directory", short_directory(banner.cwd, banner.home, max_width=max(8, width - 10))),
        ("sandbox", describe_sandbox(banner.sandbox)),
        ("approval", approval_name(banner.approval)),
    ]
    if banner.skills is not None:
        rows.append(("skills", f"{banner.skills} found" if banner.skills else "none found"))
    if banner.resumed:
        rows.append(("resumed", banner.resumed))
    return rows
