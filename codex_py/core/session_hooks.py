"""The hooks of a session or an agent: those of the configuration, and from their first use those of skills."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codex_py.core.ports import HookRunner, HookSession, NoHooks
from codex_py.protocol.status import ListedHook
from codex_py.skills.model import Skill, SkillCatalog


class HookAccess:
    """Gives access to the `runner` of a session's hooks. `load` makes one when a skill brings the first hooks.

    The agents of a session have its hooks too; `parent` is that of the session that started the agent.
    """

    def __init__(self, runner: HookRunner, load: Callable[[], HookRunner], parent: HookAccess | None = None) -> None:
        self._runner = runner
        self._load = load
        self._parent = parent
        self._session: HookSession | None = None
        self._turn_id = ""

    @property
    def runner(self) -> HookRunner:
        """The hooks, which do nothing where there are none."""
        if isinstance(self._runner, NoHooks) and self._parent and not isinstance(self._parent.runner, NoHooks):
            return self._loaded()
        return self._runner

    def attach(self, session: HookSession) -> None:
        """Let hooks reach the session. Called once, before anything else."""
        self._session = session
        self._runner.attach(session)

    def begin_turn(self, turn_id: str) -> None:
        """Another turn begins: hooks of skills used in the one before are not run any more."""
        self._turn_id = turn_id
        self.runner.begin_turn(turn_id)

    def use_skill(self, skill: Skill) -> Sequence[str]:
        """Run the hooks of a skill for the rest of the turn; the events of those that the user trusts."""
        return self._loaded().use_skill(skill) if skill.options.hooks else ()

    def listed(self, catalog: SkillCatalog) -> tuple[ListedHook, ...]:
        """All hooks there are, those of skills last."""
        skills = [skill for skill in catalog.enabled() if skill.options.hooks]
        return (self._loaded() if skills else self.runner).listed(skills)

    def for_agent(self, thread_id: str, *, role: str, name: str) -> HookAccess:
        """The hooks of the session of an agent that this session starts."""

        def load() -> HookRunner:
            return self._loaded().for_agent(thread_id, role=role, name=name)

        return HookAccess(self.runner.for_agent(thread_id, role=role, name=name), load, self)

    def _loaded(self) -> HookRunner:
        if isinstance(self._runner, NoHooks):
            self._runner = self._load()
            if self._session is not None:
                self._runner.attach(self._session)
                self._runner.begin_turn(self._turn_id)
        return self._runner
