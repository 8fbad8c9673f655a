"""Running the hooks of a moment, side by side, and what they say together."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from codex_py.errors import CodexError
from codex_py.hooks.answer import HookAnswer, HookVerdict, closed, combined, read_answer
from codex_py.hooks.command import Ran, Start, run_to_end
from codex_py.hooks.schema import MOMENTS, Hook
from codex_py.paths import make_private_dir
from codex_py.programs import ProgramFinder
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.policy import MAX_STARTS
from codex_py.protocol.value import Value

_MAX_AT_ONCE: Final = 16
_PLACEHOLDER: Final = re.compile(r"\$\{(\w+)\}")


# Puts the start of a project's hook into the sandbox of the session; raises `CodexError` where that cannot be.
Confine: TypeAlias = Callable[[Start], Start]


class HookExecution(Value):
    """Where hooks run: the directory, the project it belongs to, the variables they get, and what holds a project's.

    `programs` finds what may run outside the sandbox, and `may_write` says which real paths commands may write.
    """

    cwd: Path
    project: Path
    env: Mapping[str, str]
    confine: Confine
    may_write: Callable[[Path], bool]
    programs: ProgramFinder


class Due(NamedTuple):
    """A hook that is to run, and the fields its input has beside those that all have."""

    hook: Hook
    fields: Mapping[str, Any]


class Tried(NamedTuple):
    """One hook's run in full; `payload` is what it read on stdin."""

    hook: Hook
    payload: bytes
    ran: Ran
    answer: HookAnswer


class HookTrust(Protocol):
    """What the user has agreed to of a project's hooks, looked up at each start of one."""

    def refusal(self, hook: Hook, cwd: Path) -> str | None:
        """Why a hook must not run in a directory now, None when it may."""
        ...

    def outside(self, hook: Hook, start: Start, project: Path, may_write: Callable[[Path], bool]) -> Start | None:
        """The start of a hook that the user lets run outside the sandbox, with its scripts as they were agreed to.

        None when this one does not. `may_write` says whether commands may write a path. Raises `CodexError`.
        """
        ...


class HookEngine:
    """`trust` is asked about a project's hook each time."""

    def __init__(self, hooks: Sequence[Hook], trust: HookTrust) -> None:
        self._by_event: dict[str, list[Hook]] = {}
        self.use(hooks, trust)

    def use(self, hooks: Sequence[Hook], trust: HookTrust) -> None:
        """Run these from now on, in place of those before."""
        self._trust = trust
        self._by_event.clear()
        for hook in hooks:
            self._by_event.setdefault(hook.event, []).append(hook)

    def has(self, *events: str) -> bool:
        """Whether any hook is configured for one of these moments."""
        return any(event in self._by_event for event in events)

    def hooks_of(self, event: str) -> Sequence[Hook]:
        """Its hooks in the order they are configured."""
        return self._by_event.get(event, ())

    def hooks_for(self, event: str, subject: str) -> list[Hook]:
        """Those of its hooks whose matcher is for this subject; all of them at a moment that has none."""
        by_subject = bool(MOMENTS[event].subject)
        return [hook for hook in self.hooks_of(event) if not by_subject or hook.matcher.fits(subject)]

    def refusal(self, hook: Hook, cwd: Path) -> str | None:
        """Why a hook must not run in a directory now, None when it may."""
        return self._trust.refusal(hook, cwd) if hook.origin.layer == "project" else None

    async def run(self, due: Sequence[Due], shared: Mapping[str, Any], execution: HookExecution) -> HookVerdict:
        """Run hooks side by side, the same command with the same input once; what they say together.

        Never raises for what a hook does.
        """
        tried = await self.try_all(due, shared, execution)
        return combined([(attempt.hook, attempt.answer) for attempt in tried])

    async def try_all(self, due: Sequence[Due], shared: Mapping[str, Any], execution: HookExecution) -> list[Tried]:
        """The same, with how each of them ended."""
        once: dict[tuple[object, ...], tuple[Hook, bytes]] = {}
        for hook, fields in due:
            payload = encode_json({**shared, "hook_event_name": hook.event, **fields})
            # The same words in two plugins mean two programs.
            plugin = hook.origin.root if hook.origin.layer == "plugin" else None
            once.setdefault((hook.command, plugin, payload), (hook, payload))
        limit = asyncio.Semaphore(_MAX_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._try(hook, payload, execution, limit)) for hook, payload in once.values()]
        return [task.result() for task in tasks]

    async def _try(self, hook: Hook, payload: bytes, execution: HookExecution, limit: asyncio.Semaphore) -> Tried:
        ran = Ran(None)
        try:
            async with limit:
                ran = await self._ran(hook, payload, execution)
            answer = read_answer(hook.event, ran)
        except Exception as error:
            # Whatever a hook brings about, the turn goes on without its answer.
            answer = HookAnswer(warning=f"could not be run: {type(error).__name__}")
        return Tried(hook, payload, ran, closed(hook.event, ran, answer) if hook.fail_closed else answer)

    async def _ran(self, hook: Hook, payload: bytes, execution: HookExecution) -> Ran:
        if hook.origin.data is not None:
            with suppress(OSError):
                make_private_dir(hook.origin.data)
        own = build_hook_env(hook, execution)
        env = {**execution.env, **own}
        start = Start(_argv(hook, execution, own), execution.cwd, env)
        if hook.origin.layer != "project":
            if hook.origin.layer == "plugin":
                refusal = await asyncio.to_thread(self._trust.refusal, hook, execution.cwd)
                if refusal is not None:
                    return Ran(None, trouble=refusal)
            return await run_to_end(_outside(start, execution), payload, seconds=hook.timeout)
        ran = Ran(None)
        for _ in range(MAX_STARTS):
            try:
                confined = await asyncio.to_thread(self._confined, hook, start, execution)
            except CodexError as error:
                return Ran(None, trouble=str(error))
            ran = await run_to_end(confined, payload, seconds=hook.timeout)
            if not ran.never_began:
                break
        return ran

    def _confined(self, hook: Hook, start: Start, execution: HookExecution) -> Start:
        """The start of a project's hook as the user has agreed to it. Raises `CodexError`."""
        outside = self._trust.outside(hook, start, execution.project, execution.may_write)
        if outside is not None:
            return _outside(outside, execution)
        confined = execution.confine(start)
        # Last of all: what is compared here is what is started next.
        refusal = self._trust.refusal(hook, execution.cwd)
        if refusal is not None:
            confined.release()
            confined.cleanup()
            raise CodexError(refusal)
        return confined


def build_hook_env(hook: Hook, execution: HookExecution) -> dict[str, str]:
    """What a hook's command has beside the variables of all commands, under the names that other tools give them."""
    project = str(execution.project)
    env = {"CLAUDE_PROJECT_DIR": project, "CODEX_PROJECT_DIR": project, "CODEX_HOOK_EVENT": hook.event}
    if hook.origin.layer == "plugin" and hook.origin.root is not None:
        root = str(hook.origin.root)
        env |= {"CLAUDE_PLUGIN_ROOT": root, "CODEX_PLUGIN_ROOT": root, "PLUGIN_ROOT": root}
        # A plugin is compared with what was installed: nothing is written into it by the way.
        env["PYTHONDONTWRITEBYTECODE"] = "1"
    if hook.origin.data is not None:
        env |= {"CLAUDE_PLUGIN_DATA": str(hook.origin.data), "PLUGIN_DATA": str(hook.origin.data)}
    return env


def _outside(start: Start, execution: HookExecution) -> Start:
    """The start of a hook that no sandbox holds: it finds no program that commands may write."""
    return start._replace(env={**start.env, "PATH": execution.programs.trusted_path()})


def _argv(hook: Hook, execution: HookExecution, own: Mapping[str, str]) -> tuple[str, ...]:
    if not isinstance(hook.command, str):
        # No shell puts the variables in.
        return tuple(_PLACEHOLDER.sub(lambda found: own.get(found[1], found[0]), word) for word in hook.command)
    # Many are written for bash and do not say so.
    shell = execution.programs.find("bash") or "/bin/sh"
    return (shell, "-c", hook.command)
