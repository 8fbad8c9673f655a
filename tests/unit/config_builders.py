"""A machine with a user's home, the machine's own directory and a project, as the configuration sees them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_py.config.load import ConfigRequest, LoadedConfig, load_config


@dataclass(frozen=True)
class Machine:
    root: Path

    @property
    def home(self) -> Path:
        return self.root / "user" / ".codex"

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    @property
    def system(self) -> Path:
        return self.root / "etc"

    @property
    def user_file(self) -> Path:
        return self.home / "config.toml"

    def user(self, text: str) -> Path:
        return write(self.user_file, text)

    def machine(self, name: str, text: str) -> Path:
        return write(self.system / name, text)

    def project(self, text: str, directory: str = ".") -> Path:
        return write(self.repo / directory / ".codex" / "config.toml", text)

    def trusted(self, text: str = "") -> None:
        """A user's file with `text` that trusts the repository."""
        self.user(f'{text}\n[projects."{self.repo}"]\ntrust_level = "trusted"\n')

    def load(self, *overrides: str, cwd: Path | None = None, **request: Any) -> LoadedConfig:
        return load_config(
            ConfigRequest(
                home=self.home,
                cwd=cwd or self.repo,
                env={"HOME": str(self.root / "user")},
                overrides=overrides,
                system=self.system,
                **request,
            )
        )


def make_machine(root: Path) -> Machine:
    """A home and a system directory that only the user can write, and a git repository."""
    machine = Machine(root.resolve())
    machine.home.mkdir(parents=True, mode=0o700)
    machine.system.mkdir(mode=0o755)
    write(machine.repo / ".git" / "HEAD", "ref: refs/heads/main\n")
    return machine


def write(path: Path, text: str) -> Path:
    """Write a file that only the user can write, and its directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path
