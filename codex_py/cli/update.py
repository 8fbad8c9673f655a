"""`codex-py update --check` and `--version --verbose`: which version this is, and whether there is a newer one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Annotated

import typer

from codex_py import __version__
from codex_py.cli.console import print_json
from codex_py.cli.typer_command import Json, run_command
from codex_py.errors import UsageError
from codex_py.paths import codex_home
from codex_py.services.installation import (
    describe_installation,
    find_index,
    find_installation,
    is_newer,
    newest_version,
)
from codex_py.text.address import shown_url
from codex_py.text.sanitize import sanitize_line


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py update` with these arguments; give back the exit status, 1 when there is a newer version."""
    return run_command(update, arguments, name="update")


def update(
    check: Annotated[bool, typer.Option("--check", help="Ask the package index for a newer version.")] = False,
    as_json: Json = False,
) -> int:
    """Ask the package index that codex-py was installed from whether there is a newer version.

    The exit status is 1 when there is one. codex-py does not replace itself: the answer names the command that does. No
    other command asks the index.
    """
    installation = find_installation()
    if not check:
        raise UsageError("codex-py does not replace itself", hint=f"use `--check`, or run `{installation.upgrade}`")
    index = find_index(os.environ)
    newest = asyncio.run(newest_version(index))
    behind = newest is not None and is_newer(newest, __version__)
    if as_json:
        rows = {"version": __version__, "newest": newest, "index": shown_url(index), "upgrade": installation.upgrade}
        print_json(rows)
    elif newest is None:
        print(f"`{sanitize_line(shown_url(index))}` does not have codex-py; this is {__version__}")
        if installation.source:
            print(f"it was installed from {sanitize_line(installation.source)}: `{installation.upgrade}`")
    elif behind:
        print(f"codex-py {newest} is available, this is {__version__}: `{installation.upgrade}`")
    else:
        print(f"codex-py {__version__} is the newest version")
    return 1 if behind else 0


def print_version() -> int:
    """Print versions and paths, for bug reports."""
    for label, text in describe_installation(os.environ, codex_home(os.environ)):
        print(f"{label:<15}{sanitize_line(text)}")
    return 0
