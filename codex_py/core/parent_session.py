"""What a subagent's session shares with the session that started it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from codex_py.protocol.questions import Question
from codex_py.protocol.value import Value

if TYPE_CHECKING:
    from codex_py.context.initial import ContextSnapshot
    from codex_py.core.secrets import SecretStore
    from codex_py.model.prompt import ParentTurn
    from codex_py.protocol.items import ResponseItem


class ParentSession(Value):
    """Secrets and the way to ask the user are shared; the model connection and the MCP servers are the parent's.

    `parent` returns the turn of the parent that gave the subagent its task. `history` is what the subagent knows of the
    conversation, and `snapshot` the context the parent was sent; both are for a subagent that begins as a fork.
    """

    secret_store: SecretStore
    ask: Callable[[Question], Awaitable[str | None]]
    parent: Callable[[], ParentTurn]
    history: tuple[ResponseItem, ...] = ()
    snapshot: ContextSnapshot | None = None
