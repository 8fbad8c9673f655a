"""What a session is built from, and what it gives to the subagents it starts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from codex_py.context.initial import ContextSnapshot
from codex_py.core.context_tracker import ContextTracker, KnownContext
from codex_py.core.history import History
from codex_py.core.mcp_setup import LazyMcp
from codex_py.core.secrets import SecretStore
from codex_py.core.session_skills import SessionSkills
from codex_py.core.tool_runs import ToolServices
from codex_py.core.turn_context import ModelSettings, TurnSettings
from codex_py.model.client import ModelClient, ParentTurn
from codex_py.protocol import events
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.protocol.questions import AskUser
from codex_py.protocol.value import Value
from codex_py.rollout.recorder import Recorder
from codex_py.skills.model import Skill
from codex_py.text.redact import Redactor
from codex_py.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from codex_py.core.tool_runtime import ToolRuntime
    from codex_py.rollout.reader import StoredSession


class ParentSession(Value):
    """Secrets and the way to ask the user are shared; the model connection and the MCP servers are the parent's.

    `parent` returns the turn of the parent that gave the subagent its task. `history` is what the subagent knows of the
    conversation, and `snapshot` the context the parent was sent; both are for a subagent that begins as a fork.
    """

    secret_store: SecretStore
    ask: AskUser
    parent: Callable[[], ParentTurn]
    history: tuple[ResponseItem, ...] = ()
    snapshot: ContextSnapshot | None = None


class SessionServices(Value):
    """Everything a session is built from.

    `snapshot` is asked at the start of each turn, with the list of skills and the turn's settings. `override` gives the
    settings that an op asks for, and other tools where they need them. `previous` is the model an earlier run ended
    with, when it is another one that can still be asked. `compact_prompt` is the user's own request for a summary.
    `parent_session` is set in the session of a subagent: what it shares with the session that started it. With
    `reports_interrupts` the model is sent a note about a turn that was stopped.
    """

    thread_id: str
    provider_name: str
    settings: TurnSettings
    model: ModelClient
    tools: ToolServices
    open_recorder: Callable[[Callable[[str], None]], Recorder]
    redactor: Redactor
    snapshot: Callable[[str, TurnSettings], KnownContext]
    override: Callable[[OverrideTurnContext, TurnSettings], tuple[TurnSettings, ToolRegistry | None]]
    skills: SessionSkills
    report_crash: Callable[[BaseException], str]
    mcp: LazyMcp
    stored: StoredSession | None = None
    warnings: tuple[str, ...] = ()
    notice: str | None = None
    previous: ModelSettings | None = None
    compact_prompt: str | None = None
    parent_session: ParentSession | None = None
    reports_interrupts: bool = True


class SubagentContext(Value):
    """What subagents get from the session that starts them.

    `settings` are those in force, `registry` its own tools, `load_runtime` what runs commands, `turn` is under way.
    `note` puts an item before the model with the next request, which `withdraw` takes back as long as that has not
    come; `warn_for` tells the user something in the name of an agent; `skill` finds one by its name, or raises
    `ToolError`.
    """

    services: SessionServices
    secret_store: SecretStore
    history: History
    context_tracker: ContextTracker
    settings: Callable[[], TurnSettings]
    registry: Callable[[], ToolRegistry]
    load_runtime: Callable[[], Awaitable[ToolRuntime]]
    turn: Callable[[], ParentTurn]
    ask: AskUser
    emit: Callable[[events.Event], None]
    warn: Callable[[str], None]
    warn_for: Callable[[str, str], None]
    note: Callable[[ResponseItem], None]
    withdraw: Callable[[ResponseItem], None]
    skill: Callable[[str], Skill]
