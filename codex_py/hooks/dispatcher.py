"""Runs the hooks of a session: their input, the sandbox of a project's hooks, and their messages to the user."""

from __future__ import annotations

from codex_py.config.load import LoadedConfig
from codex_py.context.host_messages import hook_context
from codex_py.hooks.sources import FoundHooks
from codex_py.config.hook_files import HookContext
from codex_py.core.session_sandbox import ProgramSandbox
from codex_py.core.turn_context import TurnSettings
from codex_py.errors import CodexError
from codex_py.hooks.answer import HookVerdict
from codex_py.hooks.command import Start
from codex_py.hooks.engine import Confine
from codex_py.hooks.engine import Due
from codex_py.hooks.engine import HookEngine
from codex_py.hooks.engine import HookExecution
from codex_py.hooks.schema import Hook
from codex_py.hooks.schema import MOMENTS
from codex_py.programs import program_finder
from codex_py.protocol.encoding import decode_json
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.policy import DangerFullAccess
from codex_py.protocol.policy import SandboxPolicy
from codex_py.protocol.policy import extra_roots
from codex_py.protocol.value import Value
from collections.abc import Callable
from collections.abc import Coroutine
from collections.abc import Mapping
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from typing import Final
from typing import NamedTuple
from typing import TYPE_CHECKING
import asyncio

if TYPE_CHECKING:
    from codex_py.tools.hook_calls import HookToolCall


_OUTSIDE = "`codex-py hooks trust --outside` lets one run without a sandbox"


class HookSandbox(NamedTuple):
    """What holds a project's hooks, and which real paths the commands of the session may write."""

    confine: Confine
    may_write: Callable[[Path], bool]


def hook_sandbox(
    loaded: LoadedConfig, *, home: Path, env: Mapping[str, str]
) -> Callable[[SandboxPolicy, Path], HookSandbox]:
    """What gives the sandbox for a policy and a session's directory. Nothing is tried out before the first hook."""
    sandbox = ProgramSandbox(loaded, home=home, env=env)

    def confine(start: Start, policy: SandboxPolicy, cwd: Path) -> Start:
        try:
            wrapped = sandbox.wrap(start.argv, policy=policy, cwd=cwd, workdir=start.cwd)
        except CodexError as error:
            raise CodexError(f"is not run: {error}; {_OUTSIDE}") from error
        return Start(
            wrapped.argv,
            start.cwd,
            {**start.env, **wrapped.env},
            wrapped.fds,
            wrapped.release,
            wrapped.cleanup,
            wrapped.has_begun,
        )

    return lambda policy, cwd: HookSandbox(
        partial(confine, policy=policy, cwd=cwd), partial(sandbox.may_write, policy=policy, cwd=cwd)
    )


_BEFORE_A_TURN: Final = ("Setup", "SessionStart", "SubagentStart", "UserPromptSubmit")
# Whoever waits for hooks longer than that is told what for.
SLOW_SECONDS: Final = 10.0
_MAX_NAMED: Final = 3
# There is nothing left to end, and the wait for it has an end of its own.
_AFTER_ALL: Final = "SessionEnd"


class HookServices(Value):
    """What hooks have of their session: its settings in force, its file, the user, and the model's next request.

    `warn` tells every time, `warn_once` the same line once; `redact` takes the session's secrets out of encoded JSON.
    """

    settings: Callable[[], TurnSettings]
    transcript: Callable[[], Path | None]
    warn: Callable[[str], None]
    warn_once: Callable[[str], None]
    note: Callable[[ResponseItem], None]
    redact: Callable[[bytes], bytes]


class HookRunner:
    """Runs hooks for whoever knows the moment. `halted` is why a hook has ended all work of the running turn.

    The user is told, once, of hooks that are waited for longer than `slow_seconds`.
    """

    def __init__(
        self, found: FoundHooks, engine: HookEngine, context: HookContext, *, slow_seconds: float = SLOW_SECONDS
    ) -> None:
        self._slow_seconds = slow_seconds
        self.found = found
        self.engine = engine
        self.context = context
        self.halted: str | None = None
        self._turn_id = ""
        self._services: HookServices | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._sandbox = hook_sandbox(context.loaded, home=context.home, env=context.env)

    @property
    def services(self) -> HookServices:
        assert self._services is not None  # attached when the session is made
        return self._services

    def transcript(self) -> Path | None:
        """The session's file; None where none is written."""
        return self.services.transcript()

    def attach(self, services: HookServices) -> None:
        """Let hooks reach the session."""
        self._services = services

    def begin_turn(self, turn_id: str) -> None:
        """Another turn: what ended the one before is over."""
        self._turn_id = turn_id
        self.halted = None

    async def fire(self, event: str, fields: Mapping[str, Any], *, turn: bool = True) -> HookVerdict:
        """Run the hooks of a moment; `turn` says that it is one of a turn."""
        return await self._run(due_at(self.engine, event, fields), turn=turn)

    async def fire_about(
        self, event: str, hook_calls: Sequence[HookToolCall], fields: Mapping[str, Any]
    ) -> HookVerdict:
        """Run the hooks of a moment of a tool call, each for what it is meant for."""
        return await self._run(due_about(self.engine, event, hook_calls, fields), turn=True)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something go on beside the turn; `finish` waits for it."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def finish(self) -> None:
        """Wait for all that goes on beside the turn."""
        while self._background:
            await asyncio.wait(self._background)

    async def stop(self) -> bool:
        """Stop what goes on beside the turn, and say whether anything did."""
        going_on = tuple(self._background)
        for task in going_on:
            task.cancel()
        await self.finish()
        return bool(going_on)

    async def _run(self, due: Sequence[Due], *, turn: bool) -> HookVerdict:
        if not due:
            return HookVerdict()
        shared, execution = self._shared(turn=turn), self._execution()
        if background := [item for item in due if item.hook.background]:
            self.start(self._run_in_background(background, shared, execution))
        now = [item for item in due if not item.hook.background]
        slow = asyncio.get_running_loop().call_later(self._slow_seconds, self._warn_slow, [item.hook for item in now])
        try:
            verdict = self._without_secrets(await self.engine.run(now, shared, execution))
        finally:
            slow.cancel()
        self._report(due[0].hook.event, verdict)
        return verdict

    async def _run_in_background(self, due: Sequence[Due], shared: Mapping[str, Any], execution: HookExecution) -> None:
        """Run hooks nobody waits for; their verdict decides nothing."""
        verdict = self._without_secrets(await self.engine.run(due, shared, execution))
        self._report(due[0].hook.event, verdict.replace(stop=None))
        for text in verdict.contexts:
            self.services.note(hook_context(text))

    def _without_secrets(self, verdict: HookVerdict) -> HookVerdict:
        """What may go to the model: as in a tool's output, nothing in it is a secret of the session."""
        if not (verdict.reason or verdict.contexts or verdict.stop):
            return verdict
        texts = encode_json([verdict.reason, verdict.contexts, verdict.stop])
        reason, contexts, stop = decode_json(self.services.redact(texts))
        return verdict.replace(reason=reason, contexts=tuple(contexts), stop=stop)

    def _warn_slow(self, hooks: Sequence[Hook]) -> None:
        labels = list(dict.fromkeys(f"`{hook.label}`" for hook in hooks if hook.event != _AFTER_ALL))
        if labels:
            shown = ", ".join([*labels[:_MAX_NAMED], *(["…"] if len(labels) > _MAX_NAMED else [])])
            limit = max(hook.timeout for hook in hooks)
            self.services.warn_once(f"still waiting for {hooks[0].event} hooks, for {limit:g} s at most: {shown}")

    def _report(self, event: str, verdict: HookVerdict) -> None:
        for message in verdict.messages:
            self.services.warn(message)
        for warning in verdict.warnings:
            self.services.warn_once(warning)
        if verdict.stop is not None and self.halted is None and event != _AFTER_ALL:
            self.halted = verdict.stop
            # Of the others the turn itself tells, which has not begun.
            if event not in _BEFORE_A_TURN:
                self.services.warn(f"a {event} hook ends the turn: {verdict.stop}")

    def _execution(self) -> HookExecution:
        settings = self.services.settings().in_force()
        policy, cwd, project = settings.sandbox_policy, settings.cwd, self.found.project
        sandbox = self._sandbox(policy, cwd)
        return HookExecution(
            cwd=cwd,
            project=project,
            env=self.context.env,
            confine=sandbox.confine,
            may_write=sandbox.may_write,
            programs=program_finder(self.context.env, cwd, (project, *extra_roots(policy))),
        )

    def _shared(self, *, turn: bool) -> dict[str, Any]:
        """The fields every hook gets."""
        context, settings, transcript = self.context, self.services.settings(), self.services.transcript()
        shared: dict[str, Any] = {
            "session_id": context.parent or context.thread_id,
            "transcript_path": None if transcript is None else str(transcript),
            "cwd": str(settings.cwd),
            "permission_mode": permission_mode(settings),
            "model": settings.model.model,
        }
        if turn and self._turn_id:
            shared["turn_id"] = self._turn_id
        return shared | context.agent


def due_at(engine: HookEngine, event: str, fields: Mapping[str, Any]) -> list[Due]:
    """The hooks of a moment, by the subject that its fields have."""
    subject = str(fields.get(MOMENTS[event].subject, ""))
    return [Due(hook, fields) for hook in engine.hooks_for(event, subject)]


def due_about(
    engine: HookEngine, event: str, hook_calls: Sequence[HookToolCall], fields: Mapping[str, Any]
) -> list[Due]:
    """The hooks of a moment of a tool call, each with the names and inputs it is meant for."""
    return [
        Due(hook, {"tool_name": name, "tool_input": tool_input, **fields})
        for hook in engine.hooks_of(event)
        for hook_call in hook_calls
        for name, tool_input in hook_call.inputs_for(hook.matcher.fits, prefer_alias=hook.origin.for_claude)
        if hook.condition.holds(hook_call.names, tool_input)
    ]


def permission_mode(settings: TurnSettings) -> str:
    """The policies of a turn in the words other tools have for them."""
    if settings.plan:
        return "plan"
    outside = isinstance(settings.sandbox_policy, DangerFullAccess)
    if settings.approval == "never":
        return "bypassPermissions" if outside else "dontAsk"
    return "default"
