"""Whether a session may have hooks. Cheap, so that a session without hooks loads nothing of them."""

from __future__ import annotations

from codex_py.config.load import LoadedConfig
from codex_py.config.project import MAX_PROJECT_FILE_BYTES
from codex_py.config.project import project_files
from codex_py.config.project import unsafe_file
from codex_py.protocol.value import Value
from codex_py.text.files import FileRefused
from codex_py.text.files import read_trusted
from collections.abc import Mapping
from pathlib import Path
from typing import Final
import os


_FILE: Final = "hooks.json"


class HookContext(Value):
    """Where the hooks of a session are looked for, and for which session they run.

    `source` says how the session began (`startup`, `resume`, `clear`, `fork`), `end` how it will end. An agent has the
    id of its session, its role and its name, and as `parent` the id of the session of the user's that it belongs to.
    With `trusts_all` a project's hooks run without a yes.
    """

    loaded: LoadedConfig
    home: Path
    cwd: Path
    env: Mapping[str, str]
    thread_id: str
    source: str = "startup"
    end: str = "other"
    agent_type: str | None = None
    agent_name: str = ""
    parent: str = ""
    trusts_all: bool = False

    @property
    def agent(self) -> dict[str, str]:
        """A subagent's session and role, as its hooks get them; empty for the user's own."""
        return {} if self.agent_type is None else {"agent_id": self.thread_id, "agent_type": self.agent_type}

    @property
    def teammate(self) -> dict[str, str]:
        """An agent and those it works with, in the words that other tools have for them; empty for the user's own."""
        return {"teammate_name": self.agent_name, "team_name": self.parent} if self.parent else {}


def has_hooks(loaded: LoadedConfig, *, home: Path, cwd: Path) -> bool:
    """Whether there is anything that may hold hooks; reads next to nothing."""
    if loaded.hooks or loaded.project_hooks or loaded.requirements.hooks:
        return True
    if os.path.lexists(home / _FILE) or os.path.lexists(loaded.system / _FILE):
        return True
    if project_files(cwd, loaded.project_root, home, _FILE):
        return True
    # The configuration leaves out the files of a project that is not trusted as a whole.
    if loaded.trust == "unknown" and any(map(_names_hooks, project_files(cwd, loaded.project_root, home))):
        return True
    if not loaded.config.plugins:
        return False
    from codex_py.plugins.manifests import enabled_plugins  # the seam: only for who has plugins

    plugins = enabled_plugins(home, loaded.config.plugins)
    return any("hooks" in plugin.manifest or os.path.lexists(plugin.root / "hooks" / _FILE) for plugin in plugins)


def _names_hooks(path: Path) -> bool:
    if unsafe_file(path, path.parent.parent) is not None:
        return False
    try:
        head = read_trusted(path, MAX_PROJECT_FILE_BYTES)
    except FileRefused:
        return False
    return head is not None and b"hooks" in head.raw
