"""The skills manager: search, switch on and off, open in the editor, insert."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from prompt_toolkit.application import get_app

from codex_py.config.load import ConfigRequest
from codex_py.core.skill_admin import switch_skills
from codex_py.core.skill_sources import skill_rules
from codex_py.errors import UserError
from codex_py.skills.model import Skill
from codex_py.skills.rules import SkillSwitch
from codex_py.ui.repl.panels.forms import FormAsker, ListForm, Option, Sheet, TextLine
from codex_py.ui.repl.panels.picker import PickerAction, PickerPanel
from codex_py.ui.repl.panels.skill_list import SkillFile, SkillsOverview, inspect_skills, skill_listing


class SkillsContext(NamedTuple):
    """What the manager works on. `window` is that of the model, in tokens; `clock` gives seconds since the epoch.

    `edit` opens a file in the user's editor and waits for its end; `changed` gets the rules in force after a skill
    was switched or edited.
    """

    request: ConfigRequest
    window: int | None
    clock: Callable[[], float]
    edit: Callable[[Path], Awaitable[None]]
    changed: Callable[[tuple[SkillSwitch, ...]], None]

    async def see(self) -> SkillsOverview:
        """Read everything again."""
        return await asyncio.to_thread(inspect_skills, self.request, window=self.window)

    async def see_change(self) -> SkillsOverview:
        """The same, after something was changed."""
        overview = await self.see()
        self.changed(skill_rules(overview.admin.loaded.config))
        return overview

    def listing(self, overview: SkillsOverview) -> ListForm[SkillFile]:
        return skill_listing(overview, user_home=self.request.env.get("HOME", ""), now=self.clock())


async def manage_skills(asker: FormAsker, context: SkillsContext) -> Skill | None:
    """Let the user manage the skills; gives back the one to insert into the message."""
    overview = await context.see()
    if asker.show is None:
        return await _manage_in_lines(asker, context, overview)
    panel = SkillsPanel(context, overview)
    while True:
        chosen = await asker.show(panel)
        if chosen is None or not panel.opens:
            return None if chosen is None else chosen.skill
        await context.edit(chosen.path)
        panel = panel.again(await context.see_change())


class SkillsPanel(PickerPanel[SkillFile]):
    """The list. Enter settles it with the skill to insert, Ctrl-O with the file to open (`opens` is true then)."""

    def __init__(self, context: SkillsContext, overview: SkillsOverview) -> None:
        self._context = context
        self._overview = overview
        self._switching: asyncio.Task[None] | None = None
        self.opens = False
        actions = [
            PickerAction("tab", self._verb, self._switch),
            PickerAction(" ", lambda: "", self._switch, only_unsearched=True),
            PickerAction("c-o", lambda: "open in the editor", self._open),
        ]
        super().__init__(context.listing(overview), actions=actions)

    def again(self, overview: SkillsOverview) -> SkillsPanel:
        """A new panel with the same search and position."""
        panel = SkillsPanel(self._context, overview)
        panel.resume(self)
        return panel

    def _verb(self) -> str:
        skill = self.selected.value.skill if self.selected else None
        return "on/off" if skill is None else "switch off" if self._is_on(skill) else "switch on"

    def _is_on(self, skill: Skill) -> bool:
        return self._overview.admin.catalog.is_enabled(skill)

    def _open(self) -> None:
        if self.selected is not None:
            self.opens = True
            self.settle(self.selected.value)

    def _switch(self) -> None:
        if self.selected is None:
            return
        skill = self.selected.value.skill
        if skill is None:
            self.notify("it is not loaded: mend it first, Ctrl-O opens it")
        elif self._switching is None or self._switching.done():
            self._switching = get_app().create_background_task(self._switch_now(skill))

    async def _switch_now(self, skill: Skill) -> None:
        notice = await asyncio.to_thread(switch_skill, self._overview, skill, enabled=not self._is_on(skill))
        self._overview = await self._context.see_change()
        self.show(self._context.listing(self._overview), notice=notice)
        get_app().invalidate()


def switch_skill(overview: SkillsOverview, skill: Skill, *, enabled: bool) -> str:
    """Switch one skill in the user's `config.toml`; what happened, for the user."""
    # Its name would mean the others too.
    by_path = sum(other.name == skill.name for other in overview.admin.catalog.skills) > 1
    try:
        file = switch_skills(overview.admin, [skill], enabled=enabled, by_path=by_path)
    except UserError as error:
        return f"{error}" + (f"; {error.hint}" if error.hint else "")
    return f"{skill.name} is {'on' if enabled else 'off'} from the next turn on (written to {file})"


_Verb: TypeAlias = Literal["insert", "switch", "open", "back"]
_VERBS: Final[tuple[Option[_Verb], ...]] = (
    Option("i", "insert it into the message", "insert"),
    Option("s", "switch it on or off", "switch"),
    Option("o", "open it in the editor", "open"),
    Option("b", "back", "back"),
)


async def _manage_in_lines(asker: FormAsker, context: SkillsContext, overview: SkillsOverview) -> Skill | None:
    while (file := await asker.pick(_unblocked(context.listing(overview)))) is not None:
        skill = file.skill
        sheet = Sheet(
            title=skill.name if skill else str(file.path),
            subject=(TextLine(skill.description),) if skill else (),
            options=_VERBS if skill else _VERBS[2:],
            refusal=_VERBS[-1].value,
            escape="back",
        )
        match await asker.choose(sheet):
            case "insert":
                return skill
            case "switch" if skill is not None:
                enabled = not overview.admin.catalog.is_enabled(skill)
                notice = await asyncio.to_thread(partial(switch_skill, overview, skill, enabled=enabled))
                await asker.read(notice, ())
            case "open":
                await context.edit(file.path)
            case _:
                continue
        overview = await context.see_change()
    return None


def _unblocked(listing: ListForm[SkillFile]) -> ListForm[SkillFile]:
    """Here an entry is chosen first and what is done with it afterwards."""
    return listing._replace(entries=tuple(entry._replace(blocked="") for entry in listing.entries))
