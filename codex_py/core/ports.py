"""The protocols by which the core knows the feature packages. Their own methods do nothing: for a session without one.

The core imports no feature package: it calls these protocols. To add a feature: declare here what the core needs of it,
with bodies that do nothing; implement the protocol in a package of its own, which may import the core; import that
package in `core/build.py` and nowhere else, inside a function when few sessions need it; test it through a session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from codex_py.core.listeners import Listeners
from codex_py.core.secrets import Secrets
from codex_py.core.transcript import Transcript
from codex_py.core.turn_context import CurrentSettings, PendingInput, PendingMessage, TurnContext, TurnSettings
from codex_py.errors import CodexError, UserError
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.questions import AskUser
from codex_py.protocol.status import FilesChanged, ListedHook, LiveProcess, PromptCommand
from codex_py.protocol.value import Value
from codex_py.skills.model import McpNeed, Skill, SkillCatalog
from codex_py.tools.registry import ForeignTools
from codex_py.tools.spec import AgentControl, AroundCall


class AgentSpawner(AgentControl, Protocol):
    """The agents of one session: what the model's tools call, and what the session and the user need besides."""

    def items_of(self, agent_id: str) -> tuple[ResponseItem, ...]:
        """The items in the history of an agent; empty for an unknown one."""
        return ()

    async def stop(self, agent_id: str) -> bool:
        """Stop the work of an agent, for the user; False when it was not at work."""
        return False

    def processes(self) -> tuple[LiveProcess, ...]:
        """The commands of agents that still run, each with its agent."""
        return ()

    async def stop_process(self, process_id: int) -> bool:
        """Kill a command of an agent; False when none with this id runs."""
        return False

    def interrupt(self) -> None:
        """Stop the work of all agents, and their commands; returns at once."""

    async def shut_down(self) -> None:
        """Stop all agents and close their sessions."""


class NoAgents(AgentSpawner):
    """There are no agents, and none can be started."""


class PromptRefused(CodexError):
    """A hook does not let the user's message reach the model."""


class HookSession(Value):
    """The part of a session that hooks see. Context they add to a running turn goes into `pending`."""

    settings: CurrentSettings
    pending: PendingInput
    listeners: Listeners
    secrets: Secrets
    transcript: Transcript


class HookRunner(Protocol):
    """Runs the user's hooks at the points of a session. `around_call` runs a tool call the way hooks want it.

    `warnings` are about how hooks are configured. With `answers_questions` there are hooks that may give permission in
    the user's place. `end_reason` is why the session will end; a front end may set a better one.
    """

    warnings: tuple[str, ...] = ()
    answers_questions: bool = False
    end_reason: str = ""
    around_call: AroundCall | None = None

    @property
    def halted(self) -> str | None:
        """Why a hook has ended all work of the running turn; None when none has."""
        return None

    def listed(self, skills: Sequence[Skill] = ()) -> tuple[ListedHook, ...]:
        """All hooks there are, in the order they count, then those of `skills`; in both, what is not run comes last."""
        return ()

    def set_trust(self, *, agrees: bool, skill: Skill | None = None) -> None:
        """Let the hooks of the project, or of a skill, run from now on as they are now, or no longer.

        Raises `UserError`.
        """

    def use_skill(self, skill: Skill) -> Sequence[str]:
        """Run the hooks of a skill for the rest of the turn; the events of those that the user trusts."""
        return ()

    def for_agent(self, thread_id: str, *, role: str, name: str) -> HookRunner:
        """The hooks of the session of an agent that this session starts."""
        return self

    def attach(self, session: HookSession) -> None:
        """Let hooks reach the session. Called once, before anything else."""

    def begin_turn(self, turn_id: str) -> None:
        """Another turn begins."""

    async def open_session(self) -> Sequence[ResponseItem]:
        """The items that hooks add to the context of a new session, in its first turn. Raises `PromptRefused`."""
        return ()

    async def admit(self, messages: Sequence[PendingMessage]) -> Sequence[PendingMessage]:
        """The messages that may reach the model, with what hooks add. Raises `PromptRefused` when none may."""
        return messages

    async def admit_pending(
        self, waiting: Sequence[PendingMessage | ResponseItem]
    ) -> Sequence[PendingMessage | ResponseItem]:
        """The same for input that arrives during a turn, which goes on even when none may.

        When the turn is interrupted meanwhile, all of it is pending again.
        """
        return waiting

    async def stop(self, last_message: str | None) -> Sequence[ResponseItem]:
        """The model has nothing left to do: what sends it back to work, or nothing when the turn may end."""
        return ()

    async def before_compaction(self, trigger: str, focus: str) -> str | None:
        """Why the history must not be compacted, None when it may."""
        return None

    async def after_compaction(self, trigger: str, summary: str) -> Sequence[ResponseItem]:
        """The history was replaced: what hooks add to the new one."""
        return ()

    def stop_waiting(self, *, kills: bool = False) -> None:
        """Stop the hooks that a closing session waits for; does nothing when it is not closing.

        With `kills`, for a process that ends now, what any hook has started is killed, and any thread may ask for it.
        """

    async def close(self) -> None:
        """Run the hooks for the end of the session and wait for all that still run, for a limited time."""


class NoHooks(HookRunner):
    """The session has no hooks."""


class Checkpointer(Protocol):
    """Puts the files of the workspace on record around each turn of a session."""

    def begin(self, turn: TurnContext) -> object:
        """Start to put their state at the beginning of a turn on record. A failure costs a warning, not the turn."""

    async def note_writes(self, paths: Sequence[Path]) -> None:
        """Something is about to be written; `paths` are put on record whatever git ignores.

        Returns when their state is on record, or after a bounded time.
        """

    def begin_writes(self) -> bool:
        """Hooks of a turn are about to write; whether `end_writes` is due after that, since no command runs."""
        return False

    def end_writes(self) -> None:
        """No call of the turn writes any more, and no command of it runs."""

    async def end(self) -> FilesChanged | None:
        """Put the state at the end of the turn on record; what the turn has changed, None for nothing."""
        return None


class NoCheckpoints(Checkpointer):
    """Nothing is put on record, and nothing can be undone."""


class SessionAccess(Value):
    """The part of a session that a feature may use. `warn` shows each line once; `settings` are those in force now."""

    ask: AskUser
    warn: Callable[[str], None]
    add_secrets: Callable[[Iterable[str]], None]
    settings: Callable[[], TurnSettings]


class NamedConnectors(Value):
    """The names that mean connectors and therefore no skill, and lines for the user about unclear mentions."""

    slugs: frozenset[str] = frozenset()
    notices: tuple[str, ...] = ()


class McpClients(Protocol):
    """The connections to the MCP servers of a session and its agents."""

    @property
    def tools(self) -> ForeignTools | None:
        """The tools of the servers; None where no server can have any."""
        return None

    def join_tools(self) -> Sequence[str]:
        """Show the tools that servers have added since, from the next request on; lines for the user about them."""
        return ()

    def name_connectors(
        self, texts: Sequence[str], earlier: Iterable[ResponseItem], skills: SkillCatalog
    ) -> NamedConnectors:
        """Show the tools of the connectors that the user's `texts` name; `earlier` is the history before them."""
        return NamedConnectors()

    def connector_slugs(self) -> frozenset[str]:
        """The names behind a `$` that mean connectors."""
        return frozenset()

    async def require(self) -> None:
        """Wait for the servers a session does not begin without. Raises `UserError` for one that does not start."""

    async def meet(self) -> bool:
        """Before the first request: wait, for a limited time, for servers never used before. Whether there were any."""
        return False

    def begin(self) -> None:
        """The first request is about to go out: start the servers in a moment."""

    async def ask_about_project(self, ask: AskUser, warn: Callable[[str], None]) -> bool:
        """Ask, once a session, about the project's servers the user has not decided on; whether any were started."""
        return False

    async def provide(self, needs: Sequence[McpNeed], *, ask: AskUser | None, warn: Callable[[str], None]) -> None:
        """Add the servers that skills need, if the user agrees. `ask` is None where nobody answers."""

    def prompts(self) -> Sequence[PromptCommand]:
        """The prompts the servers offer now, sorted by name."""
        return ()

    async def fill_prompt(self, command: PromptCommand, typed: str) -> str:
        """The message to send for a prompt and the words typed after its name. Raises `UserError`."""
        raise UserError("there are no MCP servers")

    def describe(self) -> Mapping[str, str]:
        """How each server is doing, in a few words, by its name."""
        return {}

    async def close(self) -> None:
        """End every server."""


class NoMcp(McpClients):
    """There are no MCP servers."""
