"""Plugins for tests: directories with a manifest, a skill, a server, a hook."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.support.home import Place
from tests.support.mcp_servers import odd_words


def make_plugin(directory: Path, name: str = "demo", *, manifest: str = ".codex-plugin", **more: Any) -> Path:
    """A plugin with one skill, `greet`; `more` goes into the manifest."""
    write(directory / manifest / "plugin.json", json.dumps({"name": name, "version": "1.2", **more}))
    write(directory / "skills/greet/SKILL.md", "---\nname: greet\ndescription: greet people\n---\nSay hi.\n")
    return directory


def add_server(directory: Path, name: str = "theirs", *, options: tuple[str, ...] = (), **more: Any) -> None:
    """Let a plugin bring our own server."""
    command, *arguments = odd_words("good", *options)
    entry = {"command": command, "args": arguments, **more}
    write(directory / ".mcp.json", json.dumps({"mcpServers": {name: entry}}))


def install(place: Place, directory: Path, plugin_id: str = "demo@local", version: str = "local") -> Path:
    """Lay a plugin where an installed one lies; gives that directory."""
    name, _, market = plugin_id.partition("@")
    target = place.codex_home / "plugins/cache" / market / name / version
    target.parent.mkdir(parents=True, exist_ok=True)
    directory.rename(target)
    return target


def enabled(plugin_id: str = "demo@local") -> str:
    """The table that switches a plugin on."""
    return f"\n[plugins.{json.dumps(plugin_id)}]\nenabled = true\n"


def commit(directory: Path, place: Place) -> str:
    """Make a repository of a directory; gives its address."""
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
        _git(directory, place, *arguments)
    return directory.as_uri()


def tag(directory: Path, place: Place, name: str) -> None:
    _git(directory, place, "add", "-A")
    _git(directory, place, "commit", "-q", "-m", name)
    _git(directory, place, "tag", name)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _git(directory: Path, place: Place, *arguments: str) -> None:
    who = ["-c", "user.name=Tester", "-c", "user.email=tester@example.invalid"]
    subprocess.run(["git", *who, *arguments], cwd=directory, env=place.env, check=True, capture_output=True)
