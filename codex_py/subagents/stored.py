"""The agents of a session that are not open: those of its earlier runs, and those that were closed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from codex_py.core.ports import AgentSpawner
from codex_py.core.session import Session
from codex_py.errors import UserError
from codex_py.protocol.items import Message, ResponseItem, view_of
from codex_py.protocol.status import AgentState, AgentStatus
from codex_py.rollout.listing import SessionQuery, list_sessions
from codex_py.rollout.reader import StoredSession, load_session
from codex_py.rollout.records import MAX_LINE, open_stored, read_meta
from codex_py.rollout.summary import SessionSummary
from codex_py.rollout.transcript import TranscriptEntry, TranscriptFailure, TranscriptItem, read_transcript

_MAX_AGENTS: Final = 200


class StoredAgents:
    """With `look`, up to 200 agents of earlier runs are read when somebody first asks."""

    def __init__(self, home: Path, thread_id: str, *, look: bool) -> None:
        self._home: Final = home
        self._thread_id: Final = thread_id
        self._looks = look
        self._states: dict[str, AgentState] = {}
        self._paths: dict[str, Path] = {}
        self._items: dict[str, tuple[ResponseItem, ...]] = {}
        self._own: dict[str, AgentSpawner] = {}

    def states(self) -> Sequence[AgentState]:
        """The known states of the agents, in no particular order."""
        if self._looks:
            self._looks = False
            self._look()
        return [state for state in self._states.values() if state.parent == self._thread_id]

    def below(self, agent_id: str) -> Sequence[AgentState]:
        """Those that one of them has started, the oldest first, each followed by its own."""
        if (own := self._own.get(agent_id)) is not None and (states := own.states()):
            return states
        started = sorted(
            (child for child in self._states.values() if child.parent == agent_id), key=lambda child: child.id
        )
        return [state for child in started for state in (child, *self.below(child.id))]

    def keep(self, state: AgentState, session: Session) -> None:
        """Remember an agent that is closed, with its history where nothing was written."""
        path, items = session.rollout, session.history.items
        self._states[state.id] = state
        self._own[state.id] = session.agents
        if path is None:
            self._items[state.id] = tuple(items)
        else:
            self._paths[state.id] = path

    def load(self, agent_id: str) -> StoredSession | None:
        """The session of an agent as it was written; None when it was not. Raises `UserError`."""
        path = self._paths.get(agent_id)
        return None if path is None else load_session(path)

    def items_of(self, agent_id: str) -> tuple[ResponseItem, ...]:
        """The history of an agent; empty where nothing is known or the file cannot be read."""
        if items := next((found for own in self._own.values() if (found := own.items_of(agent_id))), ()):
            return items
        try:
            stored = self.load(agent_id)
        except UserError:
            return ()
        return self._items.get(agent_id, ()) if stored is None else stored.items

    def _look(self) -> None:
        """Read the files of earlier runs: those of its agents and of their agents."""
        every = [summary for summary in list_sessions(self._home, SessionQuery(agents=True)) if summary.parent]
        parents = {self._thread_id}
        missing: list[SessionSummary] = []
        while parents:
            started = [summary for summary in every if summary.parent in parents]
            missing += started
            # Each is looked for once, whatever a file says of its parent.
            every = [summary for summary in every if summary.parent not in parents]
            parents = {summary.id for summary in started}
        for found in missing[:_MAX_AGENTS]:
            if (state := _state_of(found)) is not None:
                self._states.setdefault(state.id, state)
                self._paths.setdefault(state.id, found.path)


def _state_of(found: SessionSummary) -> AgentState | None:
    try:
        with open_stored(found.path) as stream:
            source = read_meta(found.path, stream.readline(MAX_LINE)).subagent
        entries = read_transcript(found.path)
    except (UserError, OSError):
        return None
    if source is None:
        return None
    status, message = _end_of(entries)
    return AgentState(
        id=found.id,
        name=source.nickname or found.id,
        parent=source.parent_thread_id,
        depth=source.depth,
        task=found.first_prompt,
        status=status,
        role=source.role,
        model=found.model,
        message=message,
        tokens=found.tokens,
        cost=found.cost.in_words() if found.requests else "",
    )


def _end_of(entries: Sequence[TranscriptEntry]) -> tuple[AgentStatus, str | None]:
    """How a session ended: its last message, why it failed, or that it was stopped."""
    last = entries[-1] if entries else None
    if isinstance(last, TranscriptFailure):
        return "errored", last.message
    view = view_of(last.value) if isinstance(last, TranscriptItem) else None
    if isinstance(view, Message) and view.role == "assistant":
        return "completed", view.text
    return "interrupted", None
