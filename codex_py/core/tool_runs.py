"""The tool calls of a session: what a tool gets to know, and what is made ready before the first one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from codex_py.core.questions import Questions
from codex_py.core.secrets import Secrets
from codex_py.core.turn_context import TurnContext
from codex_py.process.manager import ProcessManager
from codex_py.protocol import events
from codex_py.protocol.items import ToolCall
from codex_py.protocol.policy import SandboxPolicy
from codex_py.protocol.value import Value
from codex_py.sandbox.command import Sandbox, SandboxUnavailable
from codex_py.tools.registry import ToolRegistry
from codex_py.tools.spec import ToolContext, ToolOutput

if TYPE_CHECKING:
    from codex_py.tools.grants import Approvals


class ToolParts(Value):
    """What tools work with. `can_ask` says that the front end answers questions."""

    registry: ToolRegistry
    sandbox: Sandbox
    processes: ProcessManager
    env: dict[str, str]
    load_approvals: Callable[[], Approvals]
    can_ask: bool = False


class ToolRuns:
    """Runs calls. `emit` hears the tools' events; `warn` hears what the user should know, once each."""

    def __init__(
        self,
        parts: ToolParts,
        secrets: Secrets,
        questions: Questions,
        *,
        emit: Callable[[events.Event], None],
        warn: Callable[[str], None],
    ) -> None:
        self._parts = parts
        self._secrets = secrets
        self._questions = questions
        self._emit = emit
        self._warn = warn
        self._ready: asyncio.Task[None] | None = None
        # What the user granted for the rest of the running turn, in place of the policy it began with.
        self._granted: SandboxPolicy | None = None
        # The user's rules about commands, read at the first call, and what they allowed since.
        self._approvals: Approvals | None = None

    @property
    def registry(self) -> ToolRegistry:
        return self._parts.registry

    def new_turn(self) -> None:
        """Forget what was granted for the turn before."""
        self._granted = None

    def warm_up(self, turn: TurnContext) -> asyncio.Task[None]:
        """Get ready for the first call of the session, once, beside whatever else is going on."""
        if self._ready is None:
            self._ready = asyncio.create_task(asyncio.to_thread(self._load, turn))
        return self._ready

    async def run(self, call: ToolCall, turn: TurnContext) -> ToolOutput:
        """Answer a call; the output holds no secret of the session."""
        # Shielded, because an interrupted call must not take this from the next one.
        await asyncio.shield(self.warm_up(turn))
        parts = self._parts
        shortfall = parts.sandbox.shortfall(turn.sandbox_policy, turn.cwd)
        if shortfall is not None:
            self._warn(shortfall)
        for warning in self._approvals.warnings if self._approvals else ():
            self._warn(warning)
        context = ToolContext(
            call_id=call.call_id,
            cwd=turn.cwd,
            sandbox_policy=self._granted or turn.sandbox_policy,
            approval=turn.approval,
            sandbox=parts.sandbox,
            processes=parts.processes,
            env=parts.env | self._secrets.env,
            output_tokens=turn.settings.output_tokens,
            emit=self._emit,
            ask=self._questions.ask if parts.can_ask else None,
            widen=self._widen,
            approvals=self._approvals,
        )
        return self._secrets.without(await parts.registry.run(call, context))

    async def close(self) -> None:
        """Stop every process the tools left behind."""
        if self._ready is not None:
            await self._ready
        await self._parts.processes.kill_all()

    def _widen(self, policy: SandboxPolicy) -> None:
        self._granted = policy

    def _load(self, turn: TurnContext) -> None:
        self._parts.registry.warm_up()
        self._approvals = self._parts.load_approvals()
        # A sandbox that does not work is told by the call that needs it.
        with contextlib.suppress(SandboxUnavailable):
            self._parts.sandbox.prepare(turn.sandbox_policy, turn.cwd)
