"""Whether hooks may be configured. Cheap, so that a session without hooks loads nothing of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from codex_py.config.load import LoadedConfig
from codex_py.config.project import MAX_PROJECT_FILE_BYTES, project_files, unsafe_file
from codex_py.text.files import FileRefused, read_trusted

HOOKS_FILE: Final = "hooks.json"


def may_have_hooks(loaded: LoadedConfig, *, home: Path, cwd: Path) -> bool:
    """Whether anything but a plugin may configure hooks; reads next to nothing."""
    if loaded.hooks or loaded.project_hooks or loaded.requirements.hooks:
        return True
    if os.path.lexists(home / HOOKS_FILE) or os.path.lexists(loaded.system / HOOKS_FILE):
        return True
    if project_files(cwd, loaded.project_root, home, HOOKS_FILE):
        return True
    # The configuration leaves out the files of a project that is not trusted as a whole.
    return loaded.trust == "unknown" and any(map(_names_hooks, project_files(cwd, loaded.project_root, home)))


def _names_hooks(path: Path) -> bool:
    if unsafe_file(path, path.parent.parent) is not None:
        return False
    try:
        head = read_trusted(path, MAX_PROJECT_FILE_BYTES)
    except FileRefused:
        return False
    return head is not None and b"hooks" in head.raw
