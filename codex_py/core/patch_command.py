"""A patch that a person applies by hand: the tool's own work, without a session and its policy."""

from __future__ import annotations

from pathlib import Path

from codex_py.tools.patching import patch_files


def apply_patch_by_hand(raw: bytes, cwd: Path) -> str:
    """Apply a patch to the files below `cwd`, whole or not at all; the summary. Raises `ToolError` otherwise."""
    return patch_files(raw, cwd)
