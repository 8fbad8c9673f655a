"""Tracks which context the model was sent about where it works, and which changes it has yet to be sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from codex_py.context.initial import ContextSnapshot, context_items
from codex_py.core.tool_runs import ToolRuns
from codex_py.core.transcript import Transcript
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.value import Value
from codex_py.rollout.format import world_state_payload
from codex_py.tools.registry import ToolRegistry


class KnownContext(Value):
    """The context that the model should have now, and warnings about it for the user."""

    snapshot: ContextSnapshot
    warnings: tuple[str, ...] = ()


# A command may write the file, and what is in it reads like the user's own words.
_NEW_INSTRUCTIONS: Final = "AGENTS.md has changed since the last turn, and the model follows it as it is now"


def _has_new_instructions(before: ContextSnapshot, now: ContextSnapshot) -> bool:
    """Whether other instructions are found in the same directory."""
    moved = before.environment and now.environment and before.environment.cwd != now.environment.cwd
    return bool(now.agents_md) and now.agents_md != before.agents_md and not moved


class ContextTracker:
    """Remembers what was sent last. `look` returns the current context; `warn` gets each line for the user once.

    The names of the tools that `runs` shows are stored with the context, in their order, so that a resume shows the
    same tools.
    """

    def __init__(
        self,
        look: Callable[[], KnownContext],
        transcript: Transcript,
        warn: Callable[[str], None],
        runs: ToolRuns,
    ) -> None:
        self._look = look
        self._runs = runs
        self._stored_tools: Sequence[str] = ()
        self._transcript = transcript
        self._warn = warn
        self._last_sent: ContextSnapshot | None = None

    @property
    def last_sent(self) -> ContextSnapshot | None:
        """The snapshot sent last; None if none was sent."""
        return self._last_sent

    def inherit(self, sent: ContextSnapshot) -> None:
        """Continue from what another session has sent; this one starts with its items."""
        self._last_sent = sent
        self._record(sent)

    def restore(self, world_state: object) -> None:
        """Continue from what an earlier run has sent."""
        self._stored_tools = as_list(as_object(world_state).get("tools"))
        self._last_sent = ContextSnapshot.from_record(world_state)

    def send_changes(self, append: Callable[[Sequence[ResponseItem]], None]) -> None:
        """Append what the model was not sent yet: everything at first, later only what changed."""
        now = self._now()
        append(context_items(self._last_sent, now))
        if self._last_sent is not None and _has_new_instructions(self._last_sent, now):
            self._warn(_NEW_INSTRUCTIONS)
        if now != self._last_sent:
            self._record(now)
        self._last_sent = now

    def tools_to_show(self) -> ToolRegistry:
        """The tools of the next request. Stores their order, if it is another one."""
        if self._runs.shown != self._stored_tools:
            self._stored_tools = self._runs.shown
            self._transcript.record("world_state", world_state_payload({"tools": self._stored_tools}, full=False))
        return self._runs.registry

    def pending_items(self) -> Sequence[ResponseItem]:
        """The items that `send_changes` would append now."""
        return context_items(self._last_sent, self._now())

    def send_all(self, begin: Callable[[Sequence[ResponseItem]], None]) -> None:
        """Send everything again, to a history that starts over."""
        now = self._now()
        begin(context_items(None, now))
        self._record(now)
        self._last_sent = now

    def _record(self, sent: ContextSnapshot) -> None:
        self._stored_tools = self._runs.shown
        state = {**sent.to_record(), "tools": self._stored_tools}
        self._transcript.record("world_state", world_state_payload(state, full=True))

    def _now(self) -> ContextSnapshot:
        known = self._look()
        for warning in known.warnings:
            self._warn(warning)
        return known.snapshot
