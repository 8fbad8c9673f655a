"""The hooks of one session, at each moment of its turns.

Imported when there are any.
"""

from __future__ import annotations

from codex_py.context.host_messages import hook_context
from codex_py.context.host_messages import hook_prompt
from codex_py.hooks.dispatcher import HookRunner
from codex_py.hooks.dispatcher import HookServices
from codex_py.hooks.signals import HookEnding
from codex_py.hooks.signals import HookSignals
from codex_py.hooks.sources import FoundHooks
from codex_py.hooks.sources import find_hooks
from codex_py.config.hook_files import HookContext
from codex_py.core.listeners import Listeners
from codex_py.core.secrets import Secrets
from codex_py.core.transcript import Transcript
from codex_py.core.turn_context import TurnSettings
from codex_py.hooks.engine import HookEngine
from codex_py.hooks.schema import Hook
from codex_py.paths import make_private_dir
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.items import ToolCall
from codex_py.protocol.value import Value
from codex_py.tools.spec import RunCall
from codex_py.tools.spec import ToolContext
from codex_py.tools.spec import ToolOutput
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from typing import TYPE_CHECKING
import contextlib
import hashlib

if TYPE_CHECKING:
    from codex_py.hooks.tool_calls import HookedCalls
    from codex_py.rollout.format import SubagentSource


class ListedHook(Value):
    """One hook: when it runs, what, and where that is written.

    `runs` says whether it does, `asks` that it needs the user's yes for that, and `changed` that they gave it when it,
    or a file it names, was another one. `outside` says that no sandbox holds it.
    """

    event: str
    matcher: str
    command: str
    source: str
    where: str
    seconds: float
    runs: bool
    asks: bool
    changed: bool = False
    fail_closed: bool = False
    outside: bool = False


def listed_hook(hook: Hook, *, runs: bool, changed: bool = False, outside: bool = False) -> ListedHook:
    """What there is to see of a hook."""
    return ListedHook(
        event=hook.event,
        matcher=hook.narrowed,
        command=hook.written,
        source=hook.origin.source,
        where=hook.origin.where,
        seconds=hook.timeout,
        runs=runs,
        asks=hook.origin.layer == "project",
        changed=changed,
        fail_closed=hook.fail_closed,
        outside=outside or hook.origin.layer != "project",
    )


def untold(notices: Sequence[str], home: Path) -> tuple[str, ...]:
    """Those that the user has not been told yet, who has been from now on."""
    new: list[str] = []
    for notice in notices:
        mark = home / "cache" / "told" / hashlib.sha256(notice.encode(errors="replace")).hexdigest()[:32]
        if mark.exists():
            continue
        new.append(notice)
        # Where nothing can be kept, it is told again.
        with contextlib.suppress(OSError):
            make_private_dir(mark.parent)
            mark.touch(mode=0o600)
    return tuple(new)


# So often in one turn hooks may send the model back to work.
_MAX_BLOCKS: Final = 8
# What other programs call the role of an agent that was given none.
_NO_ROLE: Final = "default"


def open_hooks(context: HookContext) -> SessionHooks:
    """Find and read the hooks of a session; nothing is run."""
    found = find_hooks(context.loaded, home=context.home, cwd=context.cwd, trusts_all=context.trusts_all)
    found = found.replace(warnings=(*found.warnings, *untold(found.notices, context.home)))
    return SessionHooks(found, HookEngine(found.hooks, found), context)


class SessionHooks:
    """One session's hooks; those of an agent's session are the same ones, told who it is."""

    def __init__(
        self,
        found: FoundHooks,
        engine: HookEngine,
        context: HookContext,
        *,
        above: Callable[[], Path | None] | None = None,
    ) -> None:
        """`above` gives the file of the user's session that an agent's belongs to."""
        self._above = above
        self._found = found
        self._engine = engine
        self._hook_context = context
        self._runner = HookRunner(found, engine, context)
        self._has_begun = False
        self._blocks = 0
        self._calls: HookedCalls | None = None
        self.signals: Final = HookSignals(self._runner)
        self.ending: Final = HookEnding(self._runner, context.end)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know about how hooks are configured."""
        return self._found.warnings

    @property
    def answer_questions(self) -> bool:
        """Whether there are any that may give permission in the user's place."""
        return self._engine.has("PermissionRequest")

    def listed(self) -> tuple[ListedHook, ...]:
        """All hooks there are, in the order they count; those that are not run come last."""
        found = self._found
        waiting = () if found.trusts_all else found.waiting
        cwd = self._hook_context.cwd
        run = [(hook, self._engine.refusal(hook, cwd) is None) for hook in found.hooks]
        return (
            *(
                listed_hook(hook, runs=runs, changed=not runs, outside=found.runs_outside(hook, cwd))
                for hook, runs in run
            ),
            *(listed_hook(hook, runs=False, changed=found.has_changed(hook)) for hook in waiting),
        )

    def set_trust(self, *, agrees: bool) -> None:
        """Let the project's hooks run from now on, as they are now, or no longer. Raises `UserError`."""
        found = find_hooks(self._hook_context.loaded, home=self._hook_context.home, cwd=self._hook_context.cwd)
        if agrees:
            found.trust(self._hook_context.cwd)
        else:
            found.distrust()
        self._found = find_hooks(self._hook_context.loaded, home=self._hook_context.home, cwd=self._hook_context.cwd)
        self._engine.use(self._found.hooks, self._found)

    @property
    def halted(self) -> str | None:
        """Why a hook has ended all work of the running turn."""
        return self._runner.halted

    def for_agent(self, thread_id: str, source: SubagentSource) -> SessionHooks:
        """The hooks of the session of an agent that this one starts."""
        context = self._hook_context.replace(
            thread_id=thread_id,
            agent_type=source.role or _NO_ROLE,
            agent_name=source.nickname,
            parent=self._hook_context.parent or self._hook_context.thread_id,
        )
        return SessionHooks(self._found, self._engine, context, above=self._above or self._runner.transcript)

    def attach(
        self,
        listeners: Listeners,
        secrets: Secrets,
        transcript: Transcript,
        *,
        settings: Callable[[], TurnSettings],
        note: Callable[[ResponseItem], None],
    ) -> None:
        """Let hooks reach the session, before anything else; `note` puts an item into the model's next request."""
        services = HookServices(
            settings=settings,
            transcript=lambda: transcript.path,
            warn=listeners.warn,
            warn_once=listeners.warn_once,
            note=note,
            redact=secrets.redact_bytes,
        )
        self._runner.attach(services)
        listeners.add(self.signals.note_event)

    def begin_turn(self, turn_id: str) -> None:
        """Another turn begins."""
        self._runner.begin_turn(turn_id)
        self._blocks = 0

    async def begin(self) -> Sequence[ResponseItem]:
        """The session is about to send its first request: what hooks add to the context, once."""
        if self._has_begun:
            return ()
        self._has_begun = True
        if self._hook_context.agent_type is not None:
            return await self._context("SubagentStart", self._hook_context.agent, turn=True)
        setup = await self._set_up()
        return (*setup, *await self._context("SessionStart", {"source": self._hook_context.source}))

    async def admit(self, prompt: str) -> tuple[str | None, Sequence[ResponseItem]]:
        """Whether what the user said, or the task of an agent, may reach the model.

        Why not, or None, and what hooks add to it.
        """
        if not self._engine.has("UserPromptSubmit"):
            return None, ()
        verdict = await self._runner.fire("UserPromptSubmit", {"prompt": prompt})
        if verdict.blocks:
            return verdict.reason, ()
        if verdict.stop is not None:
            self._runner.halted = None
            return verdict.stop, ()
        return None, tuple(map(hook_context, verdict.contexts))

    async def stop(self, last_message: str | None) -> Sequence[ResponseItem]:
        """The model has nothing left to do: what sends it back to work, or nothing when the turn may end."""
        fields = {"stop_hook_active": self._blocks > 0, "last_assistant_message": last_message}
        if self._hook_context.agent_type is None:
            return await self._sent_back("Stop", fields)
        above = self._above() if self._above else None
        files = {"transcript_path": _text(above), "agent_transcript_path": _text(self._runner.transcript())}
        back = await self._sent_back("SubagentStop", {**self._hook_context.agent, **fields, **files})
        return back or await self._sent_back("TeammateIdle", {**self._hook_context.teammate, **fields})

    async def run_call(self, call: ToolCall, context: ToolContext, run: RunCall) -> ToolOutput:
        """Run a tool call the way hooks want it; one that they refuse has an output that says why."""
        if self._calls is None:
            from codex_py.hooks.tool_calls import HookedCalls  # the seam: many a session calls no tool

            self._calls = HookedCalls(self._runner)
        return await self._calls.run(call, context, run)

    async def before_compaction(self, trigger: str, focus: str) -> str | None:
        """Why the history must not be compacted, None when it may."""
        verdict = await self._runner.fire("PreCompact", {"trigger": trigger, "custom_instructions": focus})
        return verdict.reason if verdict.blocks else verdict.stop

    async def after_compaction(self, trigger: str, summary: str) -> Sequence[ResponseItem]:
        """The history was replaced: what hooks add to the new one."""
        await self._runner.fire("PostCompact", {"trigger": trigger, "compact_summary": summary})
        if self._hook_context.agent_type is not None:
            return ()
        return await self._context("SessionStart", {"source": "compact"})

    async def close(self) -> None:
        """The session ends. Waits for its hooks, at most 10 seconds, and as long for those in the background."""
        self.signals.stop()
        run_hooks, self._has_begun = self._has_begun and self._hook_context.agent_type is None, False
        await self.ending.wait(run_hooks=run_hooks)

    async def _context(self, event: str, fields: Mapping[str, str], *, turn: bool = False) -> Sequence[ResponseItem]:
        verdict = await self._runner.fire(event, fields, turn=turn)
        return tuple(map(hook_context, verdict.contexts))

    async def _sent_back(self, event: str, fields: Mapping[str, object]) -> Sequence[ResponseItem]:
        verdict = await self._runner.fire(event, fields)
        context = tuple(map(hook_context, verdict.contexts))
        if not verdict.blocks or verdict.stop is not None:
            for item in context:
                self._runner.services.note(item)
            return ()
        if self._blocks == _MAX_BLOCKS:
            self._runner.services.warn(f"the turn ends: {event} hooks have sent the model back {_MAX_BLOCKS} times")
            return ()
        self._blocks += 1
        self._runner.services.warn(f"a {event} hook sends the model back to work: {verdict.reason}")
        return (*context, hook_prompt(verdict.reason))

    async def _set_up(self) -> Sequence[ResponseItem]:
        """Run the hooks for a new project where that has not been done yet."""
        hooks = self._engine.hooks_for("Setup", "init")
        if not hooks:
            return ()
        mark = self._hook_context.home / "cache" / "setup" / _digest(self._found.project, hooks)
        if mark.exists():
            return ()
        items = await self._context("Setup", {"trigger": "init"})
        with contextlib.suppress(OSError):
            make_private_dir(mark.parent)
            mark.touch(mode=0o600)
        return items


def _digest(project: Path, hooks: Sequence[Hook]) -> str:
    commands = [hook.command if isinstance(hook.command, str) else list(hook.command) for hook in hooks]
    return hashlib.sha256(encode_json([str(project), commands])).hexdigest()[:32]


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
