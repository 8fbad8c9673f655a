"""What a server asks of the program it runs in: settings for a directory, and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from codex_py.config.load import ConfigRequest, LoadedConfig
from codex_py.core.session import Session
from codex_py.core.session_request import ResumeTarget
from codex_py.protocol.value import Value


class Opening(Value):
    """A session that a client wants: where, under which settings, and what it goes on with.

    `cwd` is a real path. `settings` are values of configuration keys, dotted or nested, that count like flags of the
    command line. `originator` is what the client calls itself, `source` the kind of program that session lists show.
    `instructions` stand in the place of the built-in base instructions. `servers` are tables of MCP servers for this
    session alone.
    """

    cwd: Path
    settings: Mapping[str, Any] = MappingProxyType({})
    target: ResumeTarget | None = None
    ephemeral: bool = False
    originator: str = ""
    source: str = ""
    extra_roots: tuple[Path, ...] = ()
    instructions: str | None = None
    servers: Mapping[str, Mapping[str, Any]] = MappingProxyType({})


class ServerHostProtocol(Protocol):
    """Who starts a server: knows the command line."""

    @property
    def home(self) -> Path:
        """CODEX_HOME."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of this process."""
        ...

    def request(self, cwd: Path, settings: Mapping[str, Any]) -> ConfigRequest:
        """What decides the configuration of a directory, under these settings."""
        ...

    def load(self, cwd: Path, settings: Mapping[str, Any]) -> LoadedConfig:
        """The configuration in force for a directory, under these settings. Raise `UserError` for wrong ones."""
        ...

    def open(self, opening: Opening, loaded: LoadedConfig) -> AbstractAsyncContextManager[Session]:
        """A session whose questions are answered, closed at the end; raise `UserError` when there can be none."""
        ...
