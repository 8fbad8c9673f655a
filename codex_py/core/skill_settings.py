"""What a session knows of its skills: where they are, and what a message asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from codex_py.protocol.items import ResponseItem
from codex_py.protocol.value import Value
from codex_py.shell.reader import CommandLineReader
from codex_py.skills.model import McpNeed, Skill
from codex_py.skills.roots import SkillRootsRequest
from codex_py.skills.service import SkillSwitch


class SkillSettings(Value):
    """Where the skills of a session are and how much of them the model is told.

    `roots` are those of the working directory at the start, `roots_for` tells those of another one.
    `env` is what commands run with; `withheld_env` is what the user's environment has and commands do not get.
    `configured_mcp` are the keys of the MCP servers there are. Files that `may_read` denies are not read for the model;
    `checks_plain` is false where it denies only files that are reached through links.
    """

    roots: SkillRootsRequest
    rules: tuple[SkillSwitch, ...]
    include_instructions: bool
    context_window: int | None
    max_tokens: int | None
    env: Mapping[str, str]
    withheld_env: Mapping[str, str]
    configured_mcp: frozenset[str]
    roots_for: Callable[[Path], SkillRootsRequest]
    command_lines: CommandLineReader
    keep_ledger: bool = True
    may_read: Callable[[Path], bool] = bool
    checks_plain: bool = True


class MissingVariable(Value):
    """An environment variable a named skill declares and nobody has set; `warning` is for when nobody can be asked."""

    name: str
    skill: str
    why: str
    warning: str


class SkillsToInject(Value):
    """The skills a message names: their items, in order, what they lack, and lines for the user.

    `granted` are variables of the user's environment that commands get from now on, because a skill of the user's own
    choice declares them. `servers` are MCP servers that are not configured.
    """

    items: tuple[ResponseItem, ...] = ()
    skills: tuple[Skill, ...] = ()
    missing: tuple[MissingVariable, ...] = ()
    servers: tuple[McpNeed, ...] = ()
    granted: Mapping[str, str] = MappingProxyType({})
    notices: tuple[str, ...] = ()
