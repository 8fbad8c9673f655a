"""The parts that a session is built from."""

from __future__ import annotations

from collections.abc import Callable

from codex_py.context.initial import ContextSnapshot
from codex_py.core.context_tracker import KnownContext
from codex_py.core.model_pool import ModelPool
from codex_py.core.secrets import SecretStore
from codex_py.core.session_features import SessionMcp
from codex_py.core.session_skills import SessionSkills
from codex_py.core.tool_runs import ToolServices
from codex_py.core.turn_context import ModelSettings, TurnSettings
from codex_py.model.client import ParentTurn
from codex_py.protocol.events import SessionStarted
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.protocol.questions import AskUser
from codex_py.protocol.value import Value
from codex_py.rollout.format import StoredSession
from codex_py.rollout.recorder import Recorder
from codex_py.text.redact import Redactor
from codex_py.tools.registry import ToolRegistry


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


class OtherModels(Value):
    """`fallbacks` are the providers and models that go on with a turn whose own one fails.

    `compaction` writes the summaries, `agents` does the work of agents that are given no model.
    """

    fallbacks: tuple[tuple[str, str], ...] = ()
    compaction: str | None = None
    agents: str | None = None


class SessionServices(Value):
    """Everything a session is built from.

    `snapshot` is asked at the start of each turn, with the list of skills and the turn's settings. `override` gives the
    settings that an op asks for, and other tools where they need them. `previous` is the model an earlier run ended
    with, when it is another one that can still be asked. `compact_prompt` is the user's own request for a summary.
    `models` are the other models that it asks.
    `parent_session` is set in the session of a subagent: what it shares with the session that started it. With
    `reports_interrupts` the model is sent a note about a turn that was stopped.
    """

    thread_id: str
    provider_name: str
    settings: TurnSettings
    model: ModelPool
    tools: ToolServices
    open_recorder: Callable[[Callable[[str], None]], Recorder]
    redactor: Redactor
    snapshot: Callable[[str, TurnSettings], KnownContext]
    override: Callable[[OverrideTurnContext, TurnSettings], tuple[TurnSettings, ToolRegistry | None]]
    skills: SessionSkills
    report_crash: Callable[[BaseException], str]
    mcp: SessionMcp
    stored: StoredSession | None = None
    warnings: tuple[str, ...] = ()
    notice: str | None = None
    previous: ModelSettings | None = None
    compact_prompt: str | None = None
    models: OtherModels = OtherModels()
    parent_session: ParentSession | None = None
    reports_interrupts: bool = True


def started_event(services: SessionServices, settings: TurnSettings, resumed: int) -> SessionStarted:
    """The event a session begins with; `resumed` counts the items it goes on from."""
    return SessionStarted(
        services.thread_id,
        model=settings.model.model,
        provider=services.provider_name,
        cwd=settings.cwd,
        approval=settings.approval,
        sandbox=settings.sandbox_policy,
        effort=settings.model.effort,
        summary=settings.model.summary,
        resumed=resumed,
        notice=services.notice,
    )
