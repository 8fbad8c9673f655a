"""The hooks of one session, at each point of its turns."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.context.host_messages import hook_context, hook_prompt
from codex_py.core.ports import HookSession, PromptRefused
from codex_py.core.turn_context import PendingMessage, texts_of
from codex_py.hooks.dispatcher import HookContext, HookDispatcher, HookSignals
from codex_py.hooks.engine import HookEngine
from codex_py.hooks.schema import Hook
from codex_py.hooks.skill_hooks import find_skill_hooks
from codex_py.hooks.sources import FoundHooks, find_hooks
from codex_py.hooks.tool_calls import HookedCalls
from codex_py.paths import make_private_dir
from codex_py.process.sweep import helper_prefix, kill_marked
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.status import ListedHook
from codex_py.skills.model import Skill
from codex_py.text.sanitize import sanitize_line
from codex_py.tools.spec import AroundCall

# So often in one turn hooks may send the model back to work.
_MAX_BLOCKS: Final = 8
# What other programs call the role of an agent that has none.
_NO_ROLE: Final = "default"


def open_hooks(context: HookContext) -> SessionHooks:
    """The hooks of a session; nothing is run."""
    request = context.request
    found = find_hooks(request.loaded, home=request.home, cwd=request.cwd, trusts_all=request.trusts_hooks)
    shown = request.home / "cache" / "told"
    new = tuple(notice for notice in found.notices if _is_new(shown, notice.encode()))
    return SessionHooks(HookEngine(found), context, warnings=(*found.warnings, *new))


class SessionHooks:
    """The `HookRunner` of one session. An agent's session has the same hooks; `top` are those of the user's session."""

    def __init__(
        self,
        engine: HookEngine,
        context: HookContext,
        *,
        warnings: tuple[str, ...] = (),
        top: SessionHooks | None = None,
    ) -> None:
        self.warnings = warnings
        self.answers_questions = engine.has("PermissionRequest")
        self.end_reason = "prompt_input_exit" if context.request.can_ask else "other"
        self._engine = engine
        self._context = context
        self._top = top
        self._dispatcher = HookDispatcher(engine, context)
        self._signals = HookSignals(self._dispatcher)
        self.around_call: AroundCall | None = HookedCalls(self._dispatcher).run
        self._has_begun = False
        self._blocks = 0

    @property
    def halted(self) -> str | None:
        return self._dispatcher.halted

    def listed(self, skills: Sequence[Skill] = ()) -> tuple[ListedHook, ...]:
        places = (self._engine.found, *map(self._hooks_of, skills))
        return tuple(hook for found in places for hook in _listed_of(found, self._context.request.cwd))

    def set_trust(self, *, agrees: bool, skill: Skill | None = None) -> None:
        request = self._context.request
        found = self._hooks_of(skill) if skill else find_hooks(request.loaded, home=request.home, cwd=request.cwd)
        if agrees:
            found.trust(request.cwd)
        else:
            found.distrust()
        if skill is None:
            self._engine.use(find_hooks(request.loaded, home=request.home, cwd=request.cwd))

    def use_skill(self, skill: Skill) -> Sequence[str]:
        found = self._hooks_of(skill)
        self._engine.use_skill(found)
        for warning in found.warnings:
            self._dispatcher.session.listeners.warn_once(f"the skill `{sanitize_line(skill.name)}`: {warning}")
        return list(dict.fromkeys(hook.event for hook in found.hooks))

    def _hooks_of(self, skill: Skill) -> FoundHooks:
        request = self._context.request
        return find_skill_hooks(
            skill, request.loaded, home=request.home, cwd=request.cwd, trusts_all=request.trusts_hooks
        )

    def for_agent(self, thread_id: str, *, role: str, name: str) -> SessionHooks:
        context = self._context.replace(
            thread_id=thread_id,
            agent_type=role or _NO_ROLE,
            agent_name=name,
            parent=self._context.parent or self._context.thread_id,
        )
        engine = HookEngine(self._engine.found, self._engine)
        return SessionHooks(engine, context, top=self._top or self)

    def attach(self, session: HookSession) -> None:
        self._dispatcher.session = session
        session.listeners.add(self._signals.note_event)

    def begin_turn(self, turn_id: str) -> None:
        self._dispatcher.begin_turn(turn_id)
        self._engine.end_turn()
        self._blocks = 0

    async def open_session(self) -> Sequence[ResponseItem]:
        if self._has_begun:
            return ()
        self._has_begun = True
        if self._context.agent_type is not None:
            items = await self._added("SubagentStart", self._context.agent)
        else:
            items = [*await self._set_up(), *await self._added("SessionStart", {"source": self._context.source})]
        if self.halted is not None:
            raise PromptRefused(f"a hook has ended the turn: {self.halted}")
        return items

    async def admit(self, messages: Sequence[PendingMessage]) -> Sequence[PendingMessage]:
        refusals: list[str] = []
        admitted: list[PendingMessage] = []
        for message in messages:
            verdict = await self._dispatcher.fire("UserPromptSubmit", {"prompt": "\n".join(texts_of(message.input))})
            refusal = verdict.reason if verdict.blocks else verdict.stop
            if refusal is None:
                admitted.append(message.replace(context=tuple(map(hook_context, verdict.contexts))))
                continue
            if not verdict.blocks:
                self._dispatcher.halted = None
            refusals.append(f"the prompt was blocked by a UserPromptSubmit hook and is dropped: {refusal}")
        if refusals and not admitted:
            raise PromptRefused("; ".join(dict.fromkeys(refusals)))
        for refusal in refusals:
            self._dispatcher.warn(refusal)
        return admitted

    async def admit_pending(
        self, waiting: Sequence[PendingMessage | ResponseItem]
    ) -> Sequence[PendingMessage | ResponseItem]:
        admitted: list[PendingMessage | ResponseItem] = []
        try:
            for item in waiting:
                admitted += [item] if isinstance(item, ResponseItem) else await self._admit_or_warn(item)
        except asyncio.CancelledError:
            for item in waiting:
                self._dispatcher.session.pending.add(item)
            raise
        return admitted

    async def stop(self, last_message: str | None) -> Sequence[ResponseItem]:
        fields = {"stop_hook_active": self._blocks > 0, "last_assistant_message": last_message}
        if self._top is None:
            return await self._sent_back("Stop", fields)
        files = {
            "transcript_path": self._top._dispatcher.transcript_path,
            "agent_transcript_path": self._dispatcher.transcript_path,
        }
        back = await self._sent_back("SubagentStop", {**self._context.agent, **fields, **files})
        return back or await self._sent_back("TeammateIdle", {**self._context.teammate, **fields})

    async def before_compaction(self, trigger: str, focus: str) -> str | None:
        verdict = await self._dispatcher.fire("PreCompact", {"trigger": trigger, "custom_instructions": focus})
        return verdict.reason if verdict.blocks else verdict.stop

    async def after_compaction(self, trigger: str, summary: str) -> Sequence[ResponseItem]:
        await self._dispatcher.fire("PostCompact", {"trigger": trigger, "compact_summary": summary})
        return () if self._top is not None else await self._added("SessionStart", {"source": "compact"})

    def stop_waiting(self, *, kills: bool = False) -> None:
        if kills:
            kill_marked(helper_prefix())
        else:
            self._dispatcher.stop_waiting()

    async def close(self) -> None:
        self._signals.stop()
        reason = self.end_reason if self._has_begun and self._top is None else None
        self._has_begun = False
        await self._dispatcher.close(reason)

    async def _added(self, event: str, fields: Mapping[str, str]) -> Sequence[ResponseItem]:
        """The items that the hooks of an event add to the context."""
        verdict = await self._dispatcher.fire(event, fields)
        return [hook_context(text) for text in verdict.contexts]

    async def _admit_or_warn(self, message: PendingMessage) -> Sequence[PendingMessage]:
        try:
            return await self.admit([message])
        except PromptRefused as refusal:
            self._dispatcher.warn(str(refusal))
            return ()

    async def _sent_back(self, event: str, fields: Mapping[str, object]) -> Sequence[ResponseItem]:
        verdict = await self._dispatcher.fire(event, fields)
        if not verdict.blocks or verdict.stop is not None:
            self._dispatcher.add_contexts(verdict)
            return ()
        if self._blocks == _MAX_BLOCKS:
            self._dispatcher.warn(f"the turn ends: {event} hooks have sent the model back {_MAX_BLOCKS} times")
            return ()
        self._blocks += 1
        self._dispatcher.warn(f"a {event} hook sends the model back to work: {verdict.reason}")
        return (*map(hook_context, verdict.contexts), hook_prompt(verdict.reason))

    async def _set_up(self) -> Sequence[ResponseItem]:
        """Run the hooks for a new project where that has not been done yet."""
        hooks = self._engine.hooks_for("Setup", "init")
        commands = [hook.command if isinstance(hook.command, str) else list(hook.command) for hook in hooks]
        marks = self._context.request.home / "cache" / "setup"
        subject = encode_json([str(self._engine.found.project), commands])
        if not hooks or _mark(marks, subject).exists():
            return ()
        items = await self._added("Setup", {"trigger": "init"})
        _is_new(marks, subject)
        return items


def _listed_of(found: FoundHooks, cwd: Path) -> Iterator[ListedHook]:
    for hook in found.hooks:
        runs = not hook.origin.needs_trust or found.refusal(hook, cwd) is None
        yield _listed(hook, runs=runs, changed=not runs, outside=found.runs_outside(hook, cwd))
    for hook in () if found.trusts_all else found.waiting:
        yield _listed(hook, runs=False, changed=found.has_changed(hook))


def _listed(hook: Hook, *, runs: bool, changed: bool, outside: bool = False) -> ListedHook:
    return ListedHook(
        event=hook.event,
        matcher=hook.filter_text,
        command=hook.command_line,
        source=hook.origin.source,
        where=hook.origin.where,
        seconds=hook.timeout,
        runs=runs,
        asks=hook.origin.needs_trust,
        changed=changed,
        fail_closed=hook.fail_closed,
        outside=outside or not hook.origin.needs_trust,
        skill=hook.origin.path if hook.origin.skill else None,
    )


def _mark(directory: Path, subject: bytes) -> Path:
    return directory / hashlib.sha256(subject).hexdigest()[:32]


def _is_new(directory: Path, subject: bytes) -> bool:
    """Whether something happens for the first time, which is remembered in a directory of CODEX_HOME."""
    mark = _mark(directory, subject)
    if mark.exists():
        return False
    # Where nothing can be written, it is new each time.
    with suppress(OSError):
        make_private_dir(mark.parent)
        mark.touch(mode=0o600)
    return True
