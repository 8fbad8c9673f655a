"""Commands of the user's, a project's, a plugin's or a skill's that run at certain points of a session."""

from __future__ import annotations

import os
from pathlib import Path

from codex_py.config.load import HOOKS_FILE, LoadedConfig
from codex_py.config.project import project_files


def may_have_hooks(loaded: LoadedConfig, *, home: Path, cwd: Path) -> bool:
    """Whether any place but a skill may have hooks; no file is read."""
    files = (loaded.system / HOOKS_FILE, home / HOOKS_FILE)
    names = (HOOKS_FILE, "config.toml")
    return bool(
        loaded.hooks
        or loaded.requirements.hooks
        or loaded.config.plugins
        or any(map(os.path.lexists, files))
        or any(project_files(cwd, loaded.project_root, home, name) for name in names)
    )
