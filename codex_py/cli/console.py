"""What the managing commands share: tables, JSON, notes, yes-or-no questions, and the settings of this directory.

Tables and notes quote names and texts of others, so they pass the sanitizer; JSON is plain ASCII.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from codex_py.config.load import ConfigRequest, LoadedConfig, load_config
from codex_py.errors import UsageError
from codex_py.paths import codex_home
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
    home, cwd = codex_home(os.environ), cwd or Path.cwd()
    loaded = load_config(
        ConfigRequest(home=home, cwd=cwd, env=os.environ, overrides=tuple(overrides or ()), profile=profile)
    )
    if not quiet:
        print_warnings(loaded.warnings)
    return LocalConfig(home, cwd, loaded)


def print_note(message: str) -> None:
    """Print a line on stderr."""
    print(sanitize_line(message), file=sys.stderr, flush=True)


def print_warnings(messages: Iterable[str]) -> None:
    """Print warnings on stderr, a line each."""
    for message in messages:
        print_note(f"warning: {message}")


def print_json(value: Any, out: TextIO) -> None:
    """A value as indented JSON."""
    out.write(json.dumps(value, indent=2) + "\n")


def print_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], out: TextIO) -> None:
    """Print rows below their titles; nothing if there are no rows."""
    for line in aligned([head, *rows]) if rows else ():
        out.write(f"{line}\n")


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The rows with columns of one width each, the last one as it is."""
    # Of most rows all is plain text, and one look at the whole row tells.
    clean = [
        row if (text := "".join(row)).isascii() and text.isprintable() else tuple(map(sanitize_line, row))
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*clean, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in clean]


def is_agreed(question: str, *, needs: str = "") -> bool:
    """Ask a yes-or-no question on the terminal; any answer except yes counts as no.

    `needs` names what needs approval, for the `UsageError` when nobody can be asked; without it the command itself
    is answer enough there.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        if not needs:
            return True
        raise UsageError(f"{needs} needs approval, and nobody can be asked", hint="pass --yes")
    sys.stderr.write(sanitize_line(f"{question} [y/N] "))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
