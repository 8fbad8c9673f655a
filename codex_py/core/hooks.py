"""Whether a session has hooks, and where a turn runs them. Without hooks nothing of them is loaded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from codex_py.config.load import LoadedConfig
from codex_py.config.project import MAX_PROJECT_FILE_BYTES, project_files, unsafe_file
from codex_py.core.listeners import Listeners
from codex_py.core.secrets import Secrets
from codex_py.core.transcript import Transcript
from codex_py.core.turn_context import TurnSettings
from codex_py.core.user_input import PendingInput, PendingMessage, texts_of
from codex_py.errors import CodexError
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.value import Value
from codex_py.text.files import FileRefused, read_trusted

if TYPE_CHECKING:
    from codex_py.core.session_hooks import SessionHooks


_FILE: Final = "hooks.json"


class HookContext(Value):
    """Where the hooks of a session are looked for, and for which session they run.

    `source` says how the session began (`startup`, `resume`, `clear`, `fork`), `end` how it will end. An agent has the
    id of its session, its role and its name, and as `parent` the id of the session of the user's that it belongs to.
    With `trusts_all` a project's hooks run without a yes.
    """

    loaded: LoadedConfig
    home: Path
    cwd: Path
    env: Mapping[str, str]
    thread_id: str
    source: str = "startup"
    end: str = "other"
    agent_type: str | None = None
    agent_name: str = ""
    parent: str = ""
    trusts_all: bool = False

    @property
    def agent(self) -> dict[str, str]:
        """A subagent's session and role, as its hooks get them; empty for the user's own."""
        return {} if self.agent_type is None else {"agent_id": self.thread_id, "agent_type": self.agent_type}

    @property
    def teammate(self) -> dict[str, str]:
        """An agent and those it works with, in the words that other tools have for them; empty for the user's own."""
        return {"teammate_name": self.agent_name, "team_name": self.parent} if self.parent else {}


def session_hooks(context: HookContext) -> SessionHooks | None:
    """The hooks of a session; None where none are configured."""
    if not has_hooks(context.loaded, home=context.home, cwd=context.cwd):
        return None
    from codex_py.core.session_hooks import open_hooks  # the seam: only for who has hooks

    return open_hooks(context)


def has_hooks(loaded: LoadedConfig, *, home: Path, cwd: Path) -> bool:
    """Whether there is anything that may hold hooks; reads next to nothing."""
    if loaded.hooks or loaded.project_hooks or loaded.requirements.hooks:
        return True
    if os.path.lexists(home / _FILE) or os.path.lexists(loaded.system / _FILE):
        return True
    if project_files(cwd, loaded.project_root, home, _FILE):
        return True
    # The configuration leaves out the files of a project that is not trusted as a whole.
    if loaded.trust == "unknown" and any(map(_names_hooks, project_files(cwd, loaded.project_root, home))):
        return True
    if not loaded.config.plugins:
        return False
    from codex_py.plugins.manifests import enabled_plugins  # the seam: only for who has plugins

    plugins = enabled_plugins(home, loaded.config.plugins)
    return any("hooks" in plugin.manifest or os.path.lexists(plugin.root / "hooks" / _FILE) for plugin in plugins)


def _names_hooks(path: Path) -> bool:
    if unsafe_file(path, path.parent.parent) is not None:
        return False
    try:
        head = read_trusted(path, MAX_PROJECT_FILE_BYTES)
    except FileRefused:
        return False
    return head is not None and b"hooks" in head.raw


class PromptRefused(CodexError):
    """A hook does not let what the user said reach the model."""


class TurnHooks(Value):
    """What a turn asks of hooks."""

    hooks: SessionHooks | None
    listeners: Listeners
    transcript: Transcript

    def attach(
        self, secrets: Secrets, *, settings: Callable[[], TurnSettings], note: Callable[[ResponseItem], None]
    ) -> None:
        """Let hooks reach the session, before anything else; `note` puts an item into the model's next request."""
        if self.hooks is not None:
            self.hooks.attach(self.listeners, secrets, self.transcript, settings=settings, note=note)

    def begin_turn(self, turn_id: str) -> None:
        """Another turn begins."""
        if self.hooks is not None:
            self.hooks.begin_turn(turn_id)

    async def opening(self) -> Sequence[ResponseItem]:
        """What hooks add to the context of a new session, with its first turn. Raises `PromptRefused`."""
        if self.hooks is None:
            return ()
        items = await self.hooks.begin()
        if self.hooks.halted is not None:
            raise PromptRefused(f"a hook has ended the turn: {self.hooks.halted}")
        return items

    async def admit(self, waiting: Sequence[PendingMessage]) -> Sequence[PendingMessage]:
        """What the user said, with what hooks add to it. Raises `PromptRefused` when they let none of it through."""
        if self.hooks is None:
            return waiting
        refusals: list[str] = []
        admitted: list[PendingMessage] = []
        for message in waiting:
            refusal, context = await self.hooks.admit("\n".join(texts_of(message.input)))
            if refusal is None:
                admitted.append(message.replace(context=tuple(context)))
            else:
                refusals.append(f"the prompt was blocked by a UserPromptSubmit hook and is dropped: {refusal}")
        if refusals and not admitted:
            raise PromptRefused("; ".join(dict.fromkeys(refusals)))
        for refusal in refusals:
            self.listeners.warn(refusal)
        return admitted

    async def admit_pending(
        self, waiting: Sequence[PendingMessage | ResponseItem], pending: PendingInput
    ) -> Sequence[PendingMessage | ResponseItem]:
        """The same for input that arrives during a turn, which goes on whatever hooks say.

        When it is interrupted meanwhile, all of it waits again.
        """
        if self.hooks is None:
            return waiting
        admitted: list[PendingMessage | ResponseItem] = []
        try:
            for item in waiting:
                admitted += [item] if isinstance(item, ResponseItem) else await self._admit_message(item)
        except asyncio.CancelledError:
            for item in waiting:
                pending.add(item)
            raise
        return admitted

    async def _admit_message(self, message: PendingMessage) -> Sequence[PendingMessage]:
        try:
            return await self.admit([message])
        except PromptRefused as refusal:
            self.listeners.warn(str(refusal))
            return ()

    @property
    def has_halted(self) -> bool:
        """Whether a hook has ended all work of the turn."""
        return self.hooks is not None and self.hooks.halted is not None

    async def sent_back(self, last_message: str | None) -> Sequence[ResponseItem]:
        """The model has nothing left to do: what a hook sends it back to work with; nothing when the turn may end."""
        return () if self.hooks is None else await self.hooks.stop(last_message)
