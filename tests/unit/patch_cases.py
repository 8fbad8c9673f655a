"""What the patch tests share: trees of files on disk, and patches written short."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from codex_py.patch.apply import apply_plan
from codex_py.patch.grammar import parse_patch
from codex_py.patch.plan import plan_patch, summarize


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def update(name: str, *lines: str) -> str:
    return patch(f"*** Update File: {name}", *lines)


def plant(root: Path, tree: Mapping[str, bytes | str]) -> Path:
    """Write a tree; names that end with a slash are empty directories."""
    for name, content in tree.items():
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def harvest(root: Path) -> dict[str, bytes]:
    """Every file below a directory, hidden ones included; a link as what it says, an empty directory as its name."""
    found: dict[str, bytes] = {}
    for directory, directories, files in os.walk(root):
        here = Path(directory)
        for name in [*files, *(one for one in directories if (here / one).is_symlink())]:
            path = here / name
            key = str(path.relative_to(root))
            found[key] = b"-> " + os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        if not directories and not files and here != root:
            found[f"{here.relative_to(root)}/"] = b""
    return found


def run(root: Path, text: str) -> str:
    """Apply a patch below a directory; give back the summary."""
    plan = plan_patch(parse_patch(text), root)
    apply_plan(plan)
    return summarize(plan)
