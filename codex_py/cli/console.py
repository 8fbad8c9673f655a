"""What the managing commands share: tables, JSON, notes, yes-or-no questions, and the settings of this directory.

Tables and notes quote names and texts of others, so they pass the sanitizer; JSON is plain ASCII.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from codex_py.config.load import ConfigRequest, LoadedConfig, load_config
from codex_py.errors import UsageError
from codex_py.paths import codex_home
from codex_py.rollout.archive import delete_expired
from codex_py.text.display import counted
from codex_py.text.sanitize import sanitize_line


class LocalConfig(NamedTuple):
    """The configuration in force in a directory; `home` is CODEX_HOME."""

    home: Path
    cwd: Path
    loaded: LoadedConfig


def load_local_config(
    overrides: Sequence[str] | None = None, profile: str | None = None, *, cwd: Path | None = None, quiet: bool = False
) -> LocalConfig:
    """Load the configuration of a directory, the current one if none is named; print its warnings unless `quiet`."""
    request = local_request(overrides, profile, cwd=cwd)
    loaded = load_config(request)
    if not quiet:
        print_warnings(*loaded.warnings)
    return LocalConfig(request.home, request.cwd, loaded)


def local_request(
    overrides: Sequence[str] | None = None, profile: str | None = None, *, cwd: Path | None = None
) -> ConfigRequest:
    """What to load for a directory, the current one if none is named."""
    return ConfigRequest(
        home=codex_home(os.environ),
        cwd=cwd or Path.cwd(),
        env=os.environ,
        overrides=tuple(overrides or ()),
        profile=profile,
    )


def print_note(*lines: str) -> None:
    """Print lines on stderr."""
    for line in lines:
        print(sanitize_line(line), file=sys.stderr, flush=True)


def note_expired_sessions(home: Path, keep_days: int | None) -> None:
    """Remove the sessions that `[sessions] keep_days` lets expire, and say how many."""
    if keep_days and (count := delete_expired(home, time.time() - keep_days * 86400)):
        print_note(f"removed {counted(count, 'session')} not written for {keep_days} days (`[sessions] keep_days`)")


def print_warnings(*messages: str) -> None:
    """Print warnings on stderr, a line each."""
    print_note(*(f"warning: {message}" for message in messages))


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    print(json.dumps(value, indent=2))


def print_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows below their titles; nothing if there are no rows."""
    if rows:
        print("\n".join(aligned([head, *rows])))


def print_rows(
    head: tuple[str, ...], rows: Iterable[tuple[str, ...]], records: Iterable[object], *, as_json: bool
) -> None:
    """Print a table, or with `as_json` the records that its rows are made of."""
    if as_json:
        print_json(list(records))
    else:
        print_table(head, list(rows))


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The rows with columns of one width each, the last one as it is."""
    # Of most rows all is plain text, and one look at the whole row tells.
    clean = [
        row if (text := "".join(row)).isascii() and text.isprintable() else tuple(map(sanitize_line, row))
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*clean, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in clean]


def can_ask() -> bool:
    """Whether somebody sits at a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def is_agreed(question: str, *, yes: bool, needs: str = "", otherwise: str = "nothing was changed") -> bool:
    """Ask a yes-or-no question on the terminal; any answer except yes counts as no, and `otherwise` is printed.

    `yes` is the answer of `--yes`. `needs` names what needs approval, for the `UsageError` when nobody can be asked;
    without it the command itself is answer enough there.
    """
    if yes:
        return True
    if not can_ask():
        if not needs:
            return True
        raise UsageError(f"{needs} needs approval, and nobody can be asked", hint="pass --yes")
    sys.stderr.write(sanitize_line(f"{question} [y/N] "))
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    print_note(otherwise)
    return False
