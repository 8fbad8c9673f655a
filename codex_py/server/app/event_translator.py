"""Translates the events of one thread's session into the protocol's notifications."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from codex_py.protocol import events
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.usage import TokenUsage
from codex_py.server.app import items
from codex_py.server.app.inputs import PendingMessages
from codex_py.server.app.items import Item, turn_error, turn_payload
from codex_py.server.app.open_items import OpenItems

_STEPS: Final = {"in_progress": "inProgress"}
_STREAMED: Final = ("message", "reasoning")


class EventTranslator:
    """A listener of one thread's session. `settings_payload` makes the settings object sent to the client.

    `turn_id` is the id of the running turn, or of the last one. `pending` is input on its way to the session, which
    becomes an item when a turn takes it.

    Notifications can be held back until `release`, so that the answer to a request is sent before the notifications
    that the request causes.
    """

    def __init__(
        self,
        thread_id: str,
        notify: Callable[[str, dict[str, Any]], None],
        settings_payload: Callable[[], dict[str, Any]],
    ) -> None:
        self._thread_id = thread_id
        self._send = notify
        self._settings_payload = settings_payload
        self._held_back: list[tuple[str, dict[str, Any]]] | None = None
        self._items = OpenItems(self._notify_item, lambda: self.turn_id)
        self.turn_id = ""
        self._is_running = False
        self._began = 0.0
        self._count = 1
        self._last_message: Item | None = None
        # The deltas of the message or reasoning that is being streamed.
        self._coming: list[str] = []
        self._comes_again = False
        self._phase: str | None = None
        self._diff: list[str] = []
        self.pending: Final = PendingMessages()
        self._waits: dict[str, str] = {}
        self.status: dict[str, Any] = {"type": "idle"}
        self.first_prompt = ""

    def hold_back(self) -> None:
        """Send nothing for now."""
        if self._held_back is None:
            self._held_back = []

    def release(self) -> None:
        """Send what was held back, and go on."""
        held_back, self._held_back = self._held_back or [], None
        for method, params in held_back:
            self._send(method, params)

    @contextmanager
    def holding_back(self) -> Generator[None]:
        """Hold back the notifications that a request causes; send them at once when it fails."""
        self.hold_back()
        try:
            yield
        except BaseException:
            self.release()
            raise

    def close(self) -> None:
        """End every open item: the thread is closed and sends no more notifications."""
        self._items.close()

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.TurnStarted(turn_id, messages):
                self._begin_turn(turn_id, messages)
            case events.TurnCompleted():
                self._end_turn("completed")
            case events.TurnInterrupted():
                self._end_turn("interrupted")
            case events.TurnFailed(_, message):
                self._end_turn("failed", turn_error(message))
            case events.Steered(_, messages, new_turn):
                if not new_turn:
                    self._take_up(self.pending.take(list(messages)))
            case events.ItemRecorded(item):
                if item.type == "message":
                    phase = item.decode().get("phase")
                    self._phase = phase if phase in ("commentary", "final_answer") else None
            case events.TextDelta(text):
                self._add_text(text)
            case events.MessageDone(text):
                self._end_text(text)
            case events.ReasoningDelta(text):
                self._add_thought(text)
            case events.ReasoningDone(text):
                self._settle_stream("reasoning")
                self._items.end("reasoning", items.reasoning(self._new_id(), text))
                self._count += 1
            case _:
                self._translate_call(event)

    def wait_for(self, question_id: str, flag: str) -> None:
        """Note that the turn waits for an answer of the client; `flag` is the protocol's name for that kind of wait."""
        self._waits[question_id] = flag
        self._set_active()

    def wait_no_longer(self, question_id: str) -> None:
        if self._waits.pop(question_id, None) is None or self.status["type"] != "active":
            return
        if self._is_running or self._waits:
            self._set_active()
        else:
            # An agent has asked; it may run while no turn does.
            self._set_status({"type": "idle"})

    def begin_item(self, item: Item, *, of_agent: bool = False) -> None:
        """Show the client an item before it is asked about it.

        The item of an agent's question is ended with `end_item`, because no events are sent about an agent's work.
        """
        self._items.begin_pending(str(item["id"]), item, keep=of_agent)

    def end_item(self, item_id: str, status: str) -> None:
        """End the item that an agent's question was about."""
        if opened := self._items.get(item_id):
            self._items.end(item_id, {**opened, "status": status})

    def _translate_call(self, event: events.Event) -> None:
        match event:
            case events.CommandStarted(call_id, command, cwd, by_user):
                self._items.begin(call_id, items.command_started(call_id, command, cwd, by_user=by_user))
            case events.CommandOutput(call_id, text):
                self._notify_command("item/commandExecution/outputDelta", call_id, delta=text)
            case events.CommandInput(call_id, _, text):
                where = "item/commandExecution/terminalInteraction"
                self._notify_command(where, call_id, processId=call_id, stdin=text)
            case events.CommandFinished(call_id, status="in_progress"):
                pass
            case events.CommandFinished(call_id):
                self._items.end(call_id, items.command_finished(call_id, event))
            case events.PatchStarted(call_id, changes):
                self._items.begin(call_id, items.file_change(call_id, changes, "inProgress"))
            case events.PatchFinished(call_id, changes, ok):
                self._items.end(call_id, items.file_change(call_id, changes, "completed" if ok else "failed"))
                if ok:
                    self._notify_diff(changes)
            case events.PatchRejected(call_id):
                if opened := self._items.get(call_id):
                    self._items.end(call_id, {**opened, "status": "declined"})
            case events.McpCallStarted(call_id, server, tool, arguments):
                self._items.begin(call_id, items.mcp_call_started(call_id, server, tool, arguments))
            case events.McpCallProgress(call_id, done, total, message):
                share = f"{done:g}" if total is None else f"{done:g}/{total:g}"
                self._notify_turn("item/mcpToolCall/progress", itemId=call_id, message=message or share)
            case events.McpCallFinished(call_id):
                self._items.end(call_id, items.mcp_call_finished(call_id, event))
            case events.AgentCallStarted(call_id):
                self._items.begin(call_id, items.agent_call(call_id, self._thread_id, event))
            case events.AgentCallFinished(call_id):
                self._items.end(call_id, items.agent_call(call_id, self._thread_id, event))
            case events.WebSearched(search_id):
                self._items.end(search_id or uuid7(), items.web_search(search_id or uuid7(), event))
            case _:
                self._translate_other(event)

    def _translate_other(self, event: events.Event) -> None:
        match event:
            case events.Warned(message):
                self._notify("warning", threadId=self._thread_id, message=message)
            case events.SettingsChanged():
                settings = self._settings_payload()
                self._notify("thread/settings/updated", threadId=self._thread_id, threadSettings=settings)
            case events.UsageReported(last, total, window):
                usage = {"total": _counts(total), "last": _counts(last), "modelContextWindow": window}
                self._notify_turn("thread/tokenUsage/updated", tokenUsage=usage)
            case events.Retrying(message):
                self._comes_again = True
                self._notify_turn("error", error=turn_error(message), willRetry=True)
            case events.PlanUpdated(steps, explanation):
                plan = [{"step": step.text, "status": _STEPS.get(step.status, step.status)} for step in steps]
                self._notify_turn("turn/plan/updated", explanation=explanation or None, plan=plan)
            case events.PlanProposed(_, text):
                item_id = f"plan_{uuid7()}"
                self._items.end(item_id, items.plan(item_id, text))
            case events.CompactionStarted():
                self._settle_stream()
                self._items.begin("compaction", items.compaction(self._new_id()))
            case events.ContextCompacted():
                self._items.end("compaction", items.compaction(self._new_id()))
                self._count += 1
            case _:
                pass

    def _begin_turn(self, turn_id: str, messages: Sequence[str]) -> None:
        self.turn_id, self._is_running, self._began = turn_id, True, time.time()
        self._last_message, self._phase, self._comes_again = None, None, False
        self._count = 1
        self._diff.clear()
        self._set_active()
        turn = turn_payload(turn_id, began=self._began)
        self._notify("turn/started", threadId=self._thread_id, turn=turn)
        for content in self.pending.take_all(list(messages)):
            self.first_prompt = self.first_prompt or ("\n".join(messages) if content else "")
            self._take_up(content)

    def _end_turn(self, status: str, error: dict[str, Any] | None = None) -> None:
        self._is_running = False
        self._items.end_turn(self._unfinished)
        self._set_status({"type": "systemError" if error else "idle"})
        if error is not None:
            self._notify_turn("error", error=error, willRetry=False)
        summary = None if self._last_message is None else [self._last_message]
        turn = turn_payload(self.turn_id, status, items=summary, error=error, began=self._began, ended=time.time())
        self._notify("turn/completed", threadId=self._thread_id, turn=turn)

    def _unfinished(self, item: Item) -> Item | None:
        """An item as it ends when its turn ends before it; None for an item without a failed state."""
        match item["type"]:
            case "agentMessage":
                return {**item, "text": "".join(self._coming)}
            case "reasoning":
                return items.reasoning(item["id"], "".join(self._coming))
            case _:
                return {**item, "status": "failed"} if "status" in item else None

    def _take_up(self, content: Sequence[Item]) -> None:
        """Show the client that a turn has taken its message."""
        if content:
            self._settle_stream()
            self._items.end("said", items.user_message(self._new_id(), content))
            self._count += 1

    def _settle_stream(self, key: str = "") -> None:
        """After a retry, continue the streamed item if the same kind of item is streamed again, else end it as it is.

        `key` is the kind of item that is streamed now. A different item would otherwise get the same number.
        """
        if not self._comes_again:
            return
        self._comes_again = False
        for stream_key in _STREAMED:
            if stream_key != key and (left := self._items.get(stream_key)):
                self._items.end(stream_key, self._unfinished(left) or left)
                self._count += 1
        self._coming.clear()

    def _add_text(self, text: str) -> None:
        self._settle_stream("message")
        if not self._items.get("message"):
            self._items.begin("message", items.agent_message(self._new_id(), ""))
            self._coming.clear()
        self._coming.append(text)
        self._notify_turn("item/agentMessage/delta", itemId=self._new_id(), delta=text)

    def _end_text(self, text: str) -> None:
        self._settle_stream("message")
        self._last_message = self._items.end("message", items.agent_message(self._new_id(), text, self._phase))
        self._count += 1

    def _add_thought(self, text: str) -> None:
        self._settle_stream("reasoning")
        item_id = self._new_id()
        if not self._items.get("reasoning"):
            self._items.begin("reasoning", items.reasoning(item_id, ""))
            self._notify_turn("item/reasoning/summaryPartAdded", itemId=item_id, summaryIndex=0)
            self._coming.clear()
        self._coming.append(text)
        self._notify_turn("item/reasoning/summaryTextDelta", itemId=item_id, delta=text, summaryIndex=0)

    def _new_id(self) -> str:
        """The id of the next item, or the one being streamed, for items without the id of a call."""
        return items.numbered(self.turn_id, self._count)

    def _notify_diff(self, changes: Sequence[events.FileChange]) -> None:
        self._diff += [change.diff for change in changes]
        self._notify_turn("turn/diff/updated", diff="".join(self._diff))

    def _notify_item(self, method: str, turn_id: str, item: Item, stamps: dict[str, Any]) -> None:
        self._notify(method, threadId=self._thread_id, turnId=turn_id, item=item, **stamps)

    def _notify_command(self, method: str, call_id: str, **params: Any) -> None:
        turn_id = self._items.turn_of(call_id)
        self._notify(method, threadId=self._thread_id, turnId=turn_id, itemId=call_id, **params)

    def _set_active(self) -> None:
        self._set_status({"type": "active", "activeFlags": sorted(set(self._waits.values()))})

    def _set_status(self, status: dict[str, Any]) -> None:
        if status != self.status:
            self.status = status
            self._notify("thread/status/changed", threadId=self._thread_id, status=status)

    def _notify_turn(self, method: str, **params: Any) -> None:
        self._notify(method, threadId=self._thread_id, turnId=self.turn_id, **params)

    def _notify(self, method: str, **params: Any) -> None:
        if self._held_back is not None:
            self._held_back.append((method, params))
        else:
            self._send(method, params)


def _counts(usage: TokenUsage) -> dict[str, int]:
    return {
        "totalTokens": usage.total_tokens,
        "inputTokens": usage.input_tokens,
        "cachedInputTokens": usage.cached_input_tokens,
        "cacheWriteInputTokens": usage.cache_write_input_tokens,
        "outputTokens": usage.output_tokens,
        "reasoningOutputTokens": usage.reasoning_output_tokens,
    }
