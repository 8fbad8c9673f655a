"""What decides which layers are read, and what comes out of reading them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from codex_py.config.layers import Layer
from codex_py.config.record import ConfigRecord
from codex_py.config.requirements import Requirements
from codex_py.config.schema import Config
from codex_py.config.trust import Trust


class ConfigRequest(ConfigRecord):
    """What decides which layers there are.

    `overrides` are the texts of `-c` in their order; `flags` are the values of real flags by dotted key and beat
    them, `flag_texts` are the words of those that a message quotes, and `asked_by` says where the others stand.
    `system` is the folder of the machine's own files. `home` need not be there.
    """

    home: Path
    cwd: Path
    env: Mapping[str, str]
    overrides: tuple[str, ...] = ()
    flags: Mapping[str, Any] = MappingProxyType({})
    profile: str | None = None
    strict: bool = False
    ignore_user: bool = False
    system: Path = Path("/etc/codex")
    flags_from: str = "the command line"
    flag_texts: Mapping[str, str] = MappingProxyType({})


class LoadedConfig(ConfigRecord):
    """The effective configuration. `origins` names the layer of every key, the defaults included.

    `layers` are those that were read, highest first. `project_mcp_servers` and `project_hooks` are what a trusted
    project asks to run: nothing of it may start before the user has agreed to exactly that. `hooks` are those of every
    other layer, highest first: all of them count, not only the highest. `system` is the folder of the machine's own
    files.
    """

    config: Config
    origins: Mapping[str, Layer]
    layers: tuple[Layer, ...]
    warnings: tuple[str, ...]
    trust: Trust
    project_root: Path | None
    requirements: Requirements
    project_mcp_servers: Mapping[str, Any]
    project_hooks: Mapping[str, Any]
    hooks: tuple[tuple[Layer, Mapping[str, Any]], ...]
    system: Path
