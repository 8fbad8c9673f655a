"""Runs the hooks of an event side by side, each in the way it has to be held."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.core.session_sandbox import ProgramSandbox
from codex_py.errors import CodexError
from codex_py.hooks.answer import HookAnswer, fail_closed_answer, read_answer
from codex_py.hooks.command import HookResult, run_to_end
from codex_py.hooks.schema import HOOK_EVENTS, Hook
from codex_py.hooks.sources import FoundHooks
from codex_py.paths import make_private_dir
from codex_py.programs import ProgramFinder, program_finder
from codex_py.protocol.command import MAX_STARTS, PreparedCommand
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.policy import SandboxPolicy, extra_roots
from codex_py.protocol.value import Value
from codex_py.tools.hook_calls import HookToolCall

_MAX_PARALLEL: Final = 16
_PLACEHOLDER: Final = re.compile(r"\$\{(\w+)\}")
_OUTSIDE: Final = "; `codex-py hooks trust --outside` lets one run without a sandbox"


class HookExecution(Value):
    """What the hooks of an event share: `fields` of their input, where they run, and their variables.

    The hooks of a `project` are held by `sandbox` under `policy`.
    """

    fields: Mapping[str, Any]
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

    def unconfined(self, command: PreparedCommand) -> PreparedCommand:
        """A command that no sandbox holds. It finds no program that commands of the session may write."""
        return command.replace(env={**command.env, "PATH": self.programs().trusted_path()})

    def confined(self, command: PreparedCommand, hint: str) -> PreparedCommand:
        """A command in its sandbox. Raises `CodexError`, which ends with `hint`, where that cannot be."""
        try:
            return self.sandbox.wrap(command, policy=self.policy, cwd=self.cwd)
        except CodexError as error:
            raise CodexError(f"is not run: {error}{hint}") from error


class ScheduledHook(NamedTuple):
    """A hook that is to run, and the fields of its own input."""

    hook: Hook
    fields: Mapping[str, Any]


class HookRun(NamedTuple):
    """One hook's run; `payload` is what it read on stdin."""

    hook: Hook
    payload: bytes
    result: HookResult
    answer: HookAnswer


class HookEngine:
    """The hooks that were found, by their events. `above` is the engine of the session that has started an agent."""

    found: FoundHooks

    def __init__(self, found: FoundHooks, above: HookEngine | None = None) -> None:
        self._above = above
        self._by_event: dict[str, list[Hook]] = {}
        # Those of the skills used in this turn, by their directories.
        self._of_skills: dict[Path, FoundHooks] = {}
        self._done: set[Hook] = set()
        self.use(found)

    def use(self, found: FoundHooks) -> None:
        """Run these hooks from now on."""
        self.found = found
        self._by_event.clear()
        for hook in found.hooks if self._above is None else ():
            self._by_event.setdefault(hook.event, []).append(hook)

    def use_skill(self, found: FoundHooks) -> None:
        """Run the hooks of a skill too, until the turn ends."""
        self._of_skills[found.project] = found

    def end_turn(self) -> None:
        """Run no hooks of skills any more."""
        self._of_skills.clear()

    def has(self, event: str, names: Iterable[str] | None = None) -> bool:
        """Whether there are hooks for an event; with `names`, for one of these tools."""
        hooks = self._hooks(event)
        return bool(hooks) if names is None else any(hook.matcher.fits(name) for name in names for hook in hooks)

    def hooks_for(self, event: str, subject: str) -> list[Hook]:
        """The hooks of an event whose matcher fits this subject; all of them where the event has no subject."""
        by_subject = bool(HOOK_EVENTS[event].subject)
        return [hook for hook in self._hooks(event) if not by_subject or hook.matcher.fits(subject)]

    def schedule(self, event: str, fields: Mapping[str, Any]) -> list[ScheduledHook]:
        """The hooks that are to run at an event with these fields."""
        subject = str(fields.get(HOOK_EVENTS[event].subject, ""))
        return [ScheduledHook(hook, fields) for hook in self.hooks_for(event, subject)]

    def schedule_for_calls(
        self, event: str, hook_calls: Sequence[HookToolCall], fields: Mapping[str, Any]
    ) -> list[ScheduledHook]:
        """The hooks that are to run at an event of a tool call, each with the name and input it is written for."""
        return [
            ScheduledHook(hook, {"tool_name": name, "tool_input": tool_input, **fields})
            for hook in self._hooks(event)
            for hook_call in hook_calls
            for name, tool_input in hook_call.inputs_for(hook.matcher.fits, prefer_alias=hook.origin.for_claude)
            if hook.condition.holds(hook_call.names, tool_input)
        ]

    async def run(self, scheduled: Sequence[ScheduledHook], execution: HookExecution) -> list[HookRun]:
        """Run hooks side by side, the same command with the same input once. Never raises for what a hook does."""
        once: dict[tuple[object, ...], tuple[Hook, bytes]] = {}
        for hook, fields in scheduled:
            payload = encode_json({**execution.fields, "hook_event_name": hook.event, **fields})
            # The same words in two plugins mean two programs.
            plugin = hook.origin.root if hook.origin.layer == "plugin" else None
            once.setdefault((hook.command, plugin, payload), (hook, payload))
        self._done.update(hook for hook, _ in scheduled if hook.once)
        limit = asyncio.Semaphore(_MAX_PARALLEL)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._run(hook, payload, execution, limit)) for hook, payload in once.values()]
        return [task.result() for task in tasks]

    def _hooks(self, event: str) -> list[Hook]:
        inherited = self._above._hooks(event) if self._above else self._by_event.get(event, ())
        own = (hook for found in self._of_skills.values() for hook in found.hooks if hook.event == event)
        return [hook for hook in (*inherited, *own) if hook not in self._done]

    def _found_with(self, hook: Hook) -> FoundHooks:
        """Those that a hook was found with, which know whether the user trusts it."""
        if hook.origin.layer == "skill" and hook.origin.root in self._of_skills:
            return self._of_skills[hook.origin.root]
        return self._above._found_with(hook) if self._above else self.found

    async def _run(self, hook: Hook, payload: bytes, execution: HookExecution, limit: asyncio.Semaphore) -> HookRun:
        result = HookResult(None)
        try:
            async with limit:
                result = await self._result(hook, payload, execution)
            answer = read_answer(hook.event, result)
        except Exception as error:
            # Whatever a hook brings about, the turn goes on without its answer.
            answer = HookAnswer(warning=f"could not be run: {type(error).__name__}")
        if hook.fail_closed:
            answer = fail_closed_answer(hook.event, result, answer)
        return HookRun(hook, payload, result, answer)

    async def _result(self, hook: Hook, payload: bytes, execution: HookExecution) -> HookResult:
        if hook.origin.data is not None:
            with suppress(OSError):
                make_private_dir(hook.origin.data)
        own = _hook_env(hook, execution.project)
        command = PreparedCommand(_argv(hook, execution, own), execution.cwd, {**execution.env, **own})
        result = HookResult(None)
        # A sandbox that could not be set up, because the disk changed meanwhile, is set up again.
        for _ in range(MAX_STARTS):
            try:
                ready = await asyncio.to_thread(self._prepare, hook, command, execution)
            except CodexError as error:
                return HookResult(None, error=str(error))
            result = await run_to_end(ready, payload, seconds=hook.timeout)
            if not result.never_began:
                break
        return result

    def _prepare(self, hook: Hook, command: PreparedCommand, execution: HookExecution) -> PreparedCommand:
        """The command of a hook, ready to start. Raises `CodexError` for one that must not run now."""
        found = self._found_with(hook)
        if hook.origin.layer == "project":
            outside = found.outside(hook, command, execution.project, execution.may_write)
            ready = execution.confined(command, _OUTSIDE) if outside is None else execution.unconfined(outside)
            is_checked = outside is not None
        elif hook.origin.layer == "skill":
            ready, is_checked = execution.confined(command, ""), False
        else:
            ready = execution.unconfined(command)
            is_checked = hook.origin.layer != "plugin"
        # Last of all: what is compared here is what is started next.
        refusal = None if is_checked else found.refusal(hook, execution.cwd)
        if refusal is not None:
            ready.discard()
            raise CodexError(refusal)
        return ready


def _hook_env(hook: Hook, project: Path) -> dict[str, str]:
    """The variables of a hook's command beside those of all commands, under the names that other tools use."""
    env = {"CLAUDE_PROJECT_DIR": str(project), "CODEX_PROJECT_DIR": str(project), "CODEX_HOOK_EVENT": hook.event}
    if hook.origin.layer == "plugin" and hook.origin.root is not None:
        root = str(hook.origin.root)
        env |= {"CLAUDE_PLUGIN_ROOT": root, "CODEX_PLUGIN_ROOT": root, "PLUGIN_ROOT": root}
        # A plugin is compared with what was installed, so nothing must be written into it.
        env["PYTHONDONTWRITEBYTECODE"] = "1"
    if hook.origin.layer == "skill" and hook.origin.root is not None:
        env |= {"CLAUDE_SKILL_DIR": str(hook.origin.root), "CODEX_SKILL_DIR": str(hook.origin.root)}
    if hook.origin.data is not None:
        env |= {"CLAUDE_PLUGIN_DATA": str(hook.origin.data), "PLUGIN_DATA": str(hook.origin.data)}
    return env


def _argv(hook: Hook, execution: HookExecution, own: Mapping[str, str]) -> tuple[str, ...]:
    if not isinstance(hook.command, str):
        # There is no shell to expand the variables.
        return tuple(_PLACEHOLDER.sub(lambda found: own.get(found[1], found[0]), word) for word in hook.command)
    # Many need bash and do not say so.
    shell = execution.programs().find("bash") or "/bin/sh"
    return (shell, "-c", hook.command)
