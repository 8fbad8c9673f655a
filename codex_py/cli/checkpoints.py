"""`codex-py checkpoints`: the store of the states of files that a rewind goes back to."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from codex_py.checkpoints.store import DIRECTORY, CheckpointStore, prune_stores, require_store
from codex_py.cli.console import print_json, print_table
from codex_py.cli.typer_command import run_commands

# , print_table
from codex_py.paths import codex_home, is_directory
from codex_py.rollout.files import thread_of
from codex_py.rollout.find import find_exactly
from codex_py.text.sanitize import sanitize_line

_ABOUT: Final = "Look after the states of files that a rewind goes back to."
_MIB: Final = 1 << 20


def list_checkpoints(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """List the sessions that have checkpoints, with how many and how large they are."""
    rows: list[dict[str, Any]] = []
    for store in _stores(codex_home(os.environ)):
        there = store.checkpoints()
        rows.append(
            {
                "session": store.directory.name,
                "checkpoints": sum(record.kind == "begin" for record in there),
                "bytes": store.size(),
                "updated": there[-1].time if there else None,
            }
        )
    if as_json:
        print_json(rows, sys.stdout)
        return 0
    cells = [(row["session"], str(row["checkpoints"]), f"{row['bytes'] / _MIB:.1f} MiB") for row in rows]
    print_table(("SESSION", "TURNS", "SIZE"), cells, sys.stdout)
    return 0


def prune(
    max_mib: Annotated[int, typer.Option("--max-mib", min=0, metavar="N", help="Leave at most so many MiB.")] = 0,
) -> int:
    """Remove the checkpoints of whole sessions, those used longest ago first; without --max-mib of all."""
    removed = prune_stores(codex_home(os.environ), max_mib * _MIB - (1 if max_mib == 0 else 0))
    _print_note(f"removed the checkpoints of {len(removed)} session{'' if len(removed) == 1 else 's'}")
    return 0


def verify(
    target: Annotated[str, typer.Argument(metavar="[SESSION]", help="A session's id; all when left out.")] = "",
) -> int:
    """Check that everything the checkpoints need is there and whole."""
    home = codex_home(os.environ)
    stores = [require_store(home, thread_of(find_exactly(home, target)))] if target else _stores(home)
    faults = [f"{store.directory.name}: {fault}" for store in stores for fault in store.verify()]
    for fault in faults:
        print(sanitize_line(fault))
    _print_note(f"{len(stores)} store{'' if len(stores) == 1 else 's'} checked, {len(faults)} faults")
    return 1 if faults else 0


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py checkpoints …`; give back the exit status."""
    return run_commands(
        {"list": list_checkpoints, "prune": prune, "verify": verify}, arguments, name="checkpoints", about=_ABOUT
    )


def _stores(home: Path) -> list[CheckpointStore]:
    top = home / DIRECTORY
    if not is_directory(top):
        return []
    return [CheckpointStore(path) for path in sorted(top.iterdir()) if is_directory(path)]


def _print_note(message: str) -> None:
    print(sanitize_line(message), file=sys.stderr)
