"""The skills a message names, put before the model, and the variables they lack, asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codex_py.core.compaction import Compaction
from codex_py.core.history import History
from codex_py.core.listeners import Listeners
from codex_py.core.mcp_slot import McpSlot
from codex_py.core.questions import Questions
from codex_py.core.secrets import Secrets
from codex_py.core.session_skills import AskedFor, MissingVariable, SessionSkills
from codex_py.protocol.ids import uuid7
from codex_py.protocol.input import UserInput
from codex_py.protocol.questions import SecretQuestion
from codex_py.protocol.value import Value


class SkillDesk(Value):
    """What is needed to serve the skills a user names. `can_ask` says that the front end answers questions."""

    skills: SessionSkills
    history: History
    compaction: Compaction
    secrets: Secrets
    questions: Questions
    listeners: Listeners
    can_ask: bool
    mcp: McpSlot
    join: Callable[[], None]

    def inject(self, inputs: Sequence[UserInput]) -> AskedFor:
        """Put the skills the user named before the model; gives back what they lack with the rest."""
        asked = self.skills.asked_for(inputs)
        for notice in asked.notices:
            self.listeners.warn(notice)
        for skill in asked.skills:
            for use in self.skills.note_use(skill, "explicit"):
                self.listeners.emit(use)
        self.secrets.give(asked.granted)
        self.history.append(*asked.items)
        self.compaction.note_skills(asked.items)
        return asked

    async def provide(self, asked: Sequence[AskedFor]) -> None:
        """Have what skills lack, as far as the user wants it: variables, then servers."""
        for one in asked:
            for variable in one.missing:
                await self._ask_for(variable)
        if needs := [need for one in asked for need in one.servers]:
            from codex_py.core.skill_servers import SkillServers  # the seam: few skills lack a server

            servers = SkillServers(
                self.mcp,
                ask=self.questions.ask if self.can_ask else None,
                warn=self.listeners.warn_once,
                join=self.join,
            )
            await servers.provide(needs)

    async def _ask_for(self, missing: MissingVariable) -> None:
        """Ask for a variable, once a session; where nobody can be asked, say so and go on."""
        if self.secrets.was_asked_for(missing.name):
            return
        if self.can_ask:
            question = SecretQuestion(uuid7(), missing.name, missing.skill, missing.why)
            self.secrets.give({missing.name: await self.questions.ask(question)}, typed=True)
        if not self.secrets.has(missing.name):
            self.listeners.warn_once(missing.warning)
        elif not self.secrets.is_hidden(missing.name):
            self.listeners.warn_once(f"`{missing.name}` is too short to be hidden in what commands and the model say")
