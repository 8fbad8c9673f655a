"""What the session of an agent has from the session that started it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from codex_py.protocol.questions import Question
from codex_py.protocol.value import Value

if TYPE_CHECKING:
    from codex_py.context.initial import ContextSnapshot
    from codex_py.core.secrets import Vault
    from codex_py.model.prompt import ParentTurn
    from codex_py.protocol.items import ResponseItem


class Kin(Value):
    """The secrets both keep, and the way to the user. The model's connection and the MCP servers are the other's.

    `parent` gives the turn of that session which tells the agent what to do. `history` is what the agent knows of the
    conversation, and `told` what that session had been told of its place; both are for one that begins as a fork.
    """

    vault: Vault
    ask: Callable[[Question], Awaitable[str | None]]
    parent: Callable[[], ParentTurn]
    history: tuple[ResponseItem, ...] = ()
    told: ContextSnapshot | None = None
