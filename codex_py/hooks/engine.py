"""Running the hooks of a moment, side by side, and what they say together."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.core.session_sandbox import ProgramSandbox
from codex_py.errors import CodexError
from codex_py.hooks.answer import HookAnswer, HookVerdict, combine_answers, fail_closed_answer, read_answer
from codex_py.hooks.command import HookCommand, HookResult, run_to_end
from codex_py.hooks.schema import HOOK_EVENTS, Hook
from codex_py.hooks.sources import FoundHooks
from codex_py.paths import make_private_dir
from codex_py.programs import ProgramFinder, program_finder
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.policy import MAX_STARTS, SandboxPolicy, extra_roots
from codex_py.protocol.value import Value
from codex_py.tools.hook_calls import HookToolCall

_MAX_PARALLEL: Final = 16
_PLACEHOLDER: Final = re.compile(r"\$\{(\w+)\}")
_OUTSIDE: Final = "`codex-py hooks trust --outside` lets one run without a sandbox"


class HookExecution(Value):
    """Where hooks run and with which variables. `policy` and `sandbox` hold the hooks of a `project`."""

    project: Path
    cwd: Path
    env: Mapping[str, str]
    policy: SandboxPolicy
    sandbox: ProgramSandbox

    def may_write(self, path: Path) -> bool:
        """Whether commands of the session may write a real path."""
        return self.sandbox.may_write(path, policy=self.policy, cwd=self.cwd)

    def programs(self) -> ProgramFinder:
        """Finds the programs that may run outside the sandbox."""
        return program_finder(self.env, self.cwd, (self.project, *extra_roots(self.policy)))

    def unconfined(self, start: HookCommand) -> HookCommand:
        """The start of a hook outside the sandbox. It finds no program that commands may write."""
        return start._replace(env={**start.env, "PATH": self.programs().trusted_path()})

    def confined(self, start: HookCommand) -> HookCommand:
        """The start of a hook inside the sandbox. Raises `CodexError` where that cannot be."""
        try:
            wrapped = self.sandbox.wrap(start.argv, policy=self.policy, cwd=self.cwd, workdir=start.cwd)
        except CodexError as error:
            raise CodexError(f"is not run: {error}; {_OUTSIDE}") from error
        return HookCommand(
            wrapped.argv,
            start.cwd,
            {**start.env, **wrapped.env},
            wrapped.fds,
            wrapped.release,
            wrapped.cleanup,
            wrapped.has_begun,
        )


class ScheduledHook(NamedTuple):
    """A hook that is to run, and the fields its input has beside those that all have."""

    hook: Hook
    fields: Mapping[str, Any]


class HookRun(NamedTuple):
    """One hook's run in full; `payload` is what it read on stdin."""

    hook: Hook
    payload: bytes
    result: HookResult
    answer: HookAnswer


class HookEngine:
    """The hooks of a place by their events, and running them."""

    found: FoundHooks

    def __init__(self, found: FoundHooks) -> None:
        self._by_event: dict[str, list[Hook]] = {}
        self.use(found)

    def use(self, found: FoundHooks) -> None:
        """Run these from now on, in place of those before."""
        self.found = found
        self._by_event.clear()
        for hook in found.hooks:
            self._by_event.setdefault(hook.event, []).append(hook)

    def has(self, event: str, names: Iterable[str] | None = None) -> bool:
        """Whether there are hooks for an event, with `names` for one of these tools."""
        hooks = self.hooks_of(event)
        return bool(hooks) if names is None else any(hook.matcher.fits(name) for name in names for hook in hooks)

    def hooks_of(self, event: str) -> Sequence[Hook]:
        """Its hooks in the order they are configured."""
        return self._by_event.get(event, ())

    def hooks_for(self, event: str, subject: str) -> list[Hook]:
        """Those of its hooks whose matcher is for this subject; all of them at a moment that has none."""
        by_subject = bool(HOOK_EVENTS[event].subject)
        return [hook for hook in self.hooks_of(event) if not by_subject or hook.matcher.fits(subject)]

    def schedule(self, event: str, fields: Mapping[str, Any]) -> list[ScheduledHook]:
        """The hooks that are to run at an event, by the subject that its fields name."""
        subject = str(fields.get(HOOK_EVENTS[event].subject, ""))
        return [ScheduledHook(hook, fields) for hook in self.hooks_for(event, subject)]

    def schedule_for_calls(
        self, event: str, hook_calls: Sequence[HookToolCall], fields: Mapping[str, Any]
    ) -> list[ScheduledHook]:
        """The hooks that are to run at an event of a tool call, each with the names and inputs it is written for."""
        return [
            ScheduledHook(hook, {"tool_name": name, "tool_input": tool_input, **fields})
            for hook in self.hooks_of(event)
            for hook_call in hook_calls
            for name, tool_input in hook_call.inputs_for(hook.matcher.fits, prefer_alias=hook.origin.for_claude)
            if hook.condition.holds(hook_call.names, tool_input)
        ]

    def refusal(self, hook: Hook, cwd: Path) -> str | None:
        """Why a hook must not run in a directory now, None when it may."""
        return self.found.refusal(hook, cwd) if hook.origin.layer == "project" else None

    async def run(
        self, due: Sequence[ScheduledHook], shared: Mapping[str, Any], execution: HookExecution
    ) -> HookVerdict:
        """Run hooks side by side, the same command with the same input once; what they say together.

        Never raises for what a hook does.
        """
        tried = await self.run_each(due, shared, execution)
        return combine_answers([(attempt.hook, attempt.answer) for attempt in tried])

    async def run_each(
        self, due: Sequence[ScheduledHook], shared: Mapping[str, Any], execution: HookExecution
    ) -> list[HookRun]:
        """The same, with how each of them ended."""
        once: dict[tuple[object, ...], tuple[Hook, bytes]] = {}
        for hook, fields in due:
            payload = encode_json({**shared, "hook_event_name": hook.event, **fields})
            # The same words in two plugins mean two programs.
            plugin = hook.origin.root if hook.origin.layer == "plugin" else None
            once.setdefault((hook.command, plugin, payload), (hook, payload))
        limit = asyncio.Semaphore(_MAX_PARALLEL)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._try(hook, payload, execution, limit)) for hook, payload in once.values()]
        return [task.result() for task in tasks]

    async def _try(self, hook: Hook, payload: bytes, execution: HookExecution, limit: asyncio.Semaphore) -> HookRun:
        ran = HookResult(None)
        try:
            async with limit:
                ran = await self._ran(hook, payload, execution)
            answer = read_answer(hook.event, ran)
        except Exception as error:
            # Whatever a hook brings about, the turn goes on without its answer.
            answer = HookAnswer(warning=f"could not be run: {type(error).__name__}")
        return HookRun(hook, payload, ran, fail_closed_answer(hook.event, ran, answer) if hook.fail_closed else answer)

    async def _ran(self, hook: Hook, payload: bytes, execution: HookExecution) -> HookResult:
        if hook.origin.data is not None:
            with suppress(OSError):
                make_private_dir(hook.origin.data)
        own = _hook_env(hook, execution.project)
        start = HookCommand(_argv(hook, execution, own), execution.cwd, {**execution.env, **own})
        if hook.origin.layer != "project":
            if hook.origin.layer == "plugin":
                refusal = await asyncio.to_thread(self.found.refusal, hook, execution.cwd)
                if refusal is not None:
                    return HookResult(None, error=refusal)
            return await run_to_end(execution.unconfined(start), payload, seconds=hook.timeout)
        ran = HookResult(None)
        for _ in range(MAX_STARTS):
            try:
                confined = await asyncio.to_thread(self._confined, hook, start, execution)
            except CodexError as error:
                return HookResult(None, error=str(error))
            ran = await run_to_end(confined, payload, seconds=hook.timeout)
            if not ran.never_began:
                break
        return ran

    def _confined(self, hook: Hook, start: HookCommand, execution: HookExecution) -> HookCommand:
        """The start of a project's hook as the user has agreed to it. Raises `CodexError`."""
        outside = self.found.outside(hook, start, execution.project, execution.may_write)
        if outside is not None:
            return execution.unconfined(outside)
        confined = execution.confined(start)
        # Last of all: what is compared here is what is started next.
        refusal = self.found.refusal(hook, execution.cwd)
        if refusal is not None:
            confined.release()
            confined.cleanup()
            raise CodexError(refusal)
        return confined


def _hook_env(hook: Hook, project: Path) -> dict[str, str]:
    """The variables of a hook's command beside those of all commands, under the names that other tools use."""
    env = {"CLAUDE_PROJECT_DIR": str(project), "CODEX_PROJECT_DIR": str(project), "CODEX_HOOK_EVENT": hook.event}
    if hook.origin.layer == "plugin" and hook.origin.root is not None:
        root = str(hook.origin.root)
        env |= {"CLAUDE_PLUGIN_ROOT": root, "CODEX_PLUGIN_ROOT": root, "PLUGIN_ROOT": root}
        # A plugin is compared with what was installed: nothing is written into it by the way.
        env["PYTHONDONTWRITEBYTECODE"] = "1"
    if hook.origin.data is not None:
        env |= {"CLAUDE_PLUGIN_DATA": str(hook.origin.data), "PLUGIN_DATA": str(hook.origin.data)}
    return env


def _argv(hook: Hook, execution: HookExecution, own: Mapping[str, str]) -> tuple[str, ...]:
    if not isinstance(hook.command, str):
        # No shell puts the variables in.
        return tuple(_PLACEHOLDER.sub(lambda found: own.get(found[1], found[0]), word) for word in hook.command)
    # Many are written for bash and do not say so.
    shell = execution.programs().find("bash") or "/bin/sh"
    return (shell, "-c", hook.command)
