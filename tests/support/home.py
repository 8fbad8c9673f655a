"""Places for a test to work in: a CODEX_HOME that points at the fake model, a git repository, a clean environment."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

BIN = Path(sys.executable).parent
MODEL = "gpt-5.1-codex"


# A picture of one pixel.
GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


@dataclass(frozen=True)
class Place:
    """A user's home, their CODEX_HOME, a repository to stand in, and the environment that says so."""

    home: Path
    codex_home: Path
    repo: Path
    env: dict[str, str] = field(repr=False)

    @property
    def system(self) -> Path:
        """Where the machine's own files would be, in place of `/etc/codex`."""
        return self.home.parent / "etc/codex"

    def configure(self, text: str) -> None:
        """Replace config.toml."""
        (self.codex_home / "config.toml").write_text(text)

    def use_model(self, base_url: str, top: str = "", /, **provider: Any) -> None:
        """Write a config.toml for the provider `fake`; `top` is TOML for the head of the file."""
        self.configure(fake_config(base_url, top, **provider))

    def with_env(self, **values: str) -> Place:
        return Place(self.home, self.codex_home, self.repo, {**self.env, **values})

    def write(self, name: str, content: str | bytes) -> Path:
        """Write a file in the repository."""
        path = self.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def rollouts(self) -> list[Path]:
        return sorted((self.codex_home / "sessions").rglob("rollout-*.jsonl"))


@dataclass(frozen=True)
class Tree:
    """A directory kept in memory, to be written again and again: a tenth of what `shutil.copytree` takes."""

    directories: tuple[str, ...]
    files: tuple[tuple[str, bytes, int], ...]

    @staticmethod
    def read(root: Path) -> Tree:
        paths = {str(path.relative_to(root)): path for path in sorted(root.rglob("*"))}
        return Tree(
            tuple(name for name, path in paths.items() if path.is_dir()),
            tuple((name, path.read_bytes(), path.stat().st_mode) for name, path in paths.items() if path.is_file()),
        )

    def write(self, root: Path) -> None:
        root.mkdir()
        for name in self.directories:
            Path(f"{root}/{name}").mkdir()
        for name, content, mode in self.files:
            with os.fdopen(os.open(f"{root}/{name}", os.O_WRONLY | os.O_CREAT, mode), "wb", buffering=0) as file:
                file.write(content)


def fake_config(base_url: str, top: str = "", /, **provider: Any) -> str:
    """The text of a config.toml: model and provider, quick to give up on a server that is not there."""
    keys: dict[str, Any] = {"name": "fake", "base_url": base_url, "wire_api": "responses", **provider}
    keys.setdefault("connect_retry_seconds", 0.5)
    lines = [f"{key} = {toml_value(value)}" for key, value in keys.items()]
    return f'model = "{MODEL}"\nmodel_provider = "fake"\n{top}\n[model_providers.fake]\n' + "\n".join(lines) + "\n"


def toml_value(value: Any) -> str:
    """A value as TOML; JSON's form is TOML's for strings, numbers, booleans and arrays of them."""
    if isinstance(value, Mapping):
        pairs = [f"{json.dumps(key)} = {toml_value(one)}" for key, one in cast("Mapping[str, Any]", value).items()]
        return "{ " + ", ".join(pairs) + " }"
    return json.dumps(value, ensure_ascii=False)


def clean_env(home: Path, codex_home: Path) -> dict[str, str]:
    """An environment with nothing of the developer's: no keys, no proxies, no git settings."""
    path = os.pathsep.join([str(BIN), "/usr/local/bin", "/usr/bin", "/bin"])
    return {
        "HOME": str(home),
        "CODEX_HOME": str(codex_home),
        "PATH": path,
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "TERM": "dumb",
        "TZ": "UTC",
        "USER": "tester",
        "GIT_CONFIG_NOSYSTEM": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def make_place(root: Path, files: Mapping[str, str] | None = None, *, like: Tree | None = None) -> Place:
    """Build everything below `root`; the repository holds the files, committed, or is a copy of one made before."""
    home, codex_home, repo = root / "home", root / "home" / ".codex", root / "repo"
    codex_home.mkdir(parents=True, mode=0o700)
    place = Place(home, codex_home, repo, clean_env(home, codex_home))
    if like is None:
        make_repo(repo, files or {"README.md": "# Demo\n\nA small demo.\n"}, place.env)
    else:
        like.write(repo)
    return place


def make_repo(repo: Path, files: Mapping[str, str], env: Mapping[str, str]) -> None:
    """A git repository with one commit of the files."""
    repo.mkdir(parents=True)
    for name, content in files.items():
        path = repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    _git(repo, env, "init", "-q", "-b", "main", "--template=")
    # Written by hand: `git config` is a process for every key, and places are made by the hundred.
    with (repo / ".git/config").open("a") as config:
        config.write("[user]\n\tname = Tester\n\temail = tester@example.invalid\n[gc]\n\tauto = 0\n")
    _git(repo, env, "add", "-A")
    _git(repo, env, "commit", "-q", "-m", "start")


def _git(repo: Path, env: Mapping[str, str], *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=repo, env=dict(env), check=True, capture_output=True)
