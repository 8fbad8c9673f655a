"""Questions a session puts to the user while a turn waits; a front end answers by the question's `id`."""

from __future__ import annotations

from typing import TypeAlias

from codex_py.protocol.value import Value


class SecretQuestion(Value):
    """The value of an environment variable, to be typed unseen and kept in memory for this session only.

    `skill` is the skill that needs the variable `name`; `why` is what that skill says about it, or empty.
    """

    id: str
    name: str
    skill: str
    why: str = ""


class McpInstallQuestion(Value):
    """Whether to add the MCP server `name`, which `skills` need and the configuration lacks.

    `transport` is `streamable_http`, where `target` is the URL, or `stdio`, where it is the command that would run.
    """

    id: str
    name: str
    transport: str
    target: str
    skills: tuple[str, ...]


Question: TypeAlias = SecretQuestion | McpInstallQuestion
