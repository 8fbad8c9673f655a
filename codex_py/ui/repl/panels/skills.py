"""The skills manager: search, switch on and off, open in the editor, insert."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from prompt_toolkit.application import get_app

from codex_py.config.load import ConfigRequest
from codex_py.core.skill_shelf import switch_skills
from codex_py.core.skill_sources import skill_rules
from codex_py.errors import UserError
from codex_py.skills.model import Skill
from codex_py.skills.rules import SkillRule
from codex_py.ui.repl.panels.forms import Asker, Line, Listing, Option, Sheet
from codex_py.ui.repl.panels.picker import Action, PickerPanel
from codex_py.ui.repl.panels.skill_list import SkillFile, SkillsSeen, see_skills, skill_listing


class SkillsPlace(NamedTuple):
    """What the manager works on. `window` is that of the model, in tokens; `clock` gives seconds since the epoch.

    `edit` opens a file in the user's editor and waits for its end; `changed` hears the rules that count after a skill
    was switched or edited.
    """

    request: ConfigRequest
    window: int | None
    clock: Callable[[], float]
    edit: Callable[[Path], Awaitable[None]]
    changed: Callable[[tuple[SkillRule, ...]], None]

    async def see(self) -> SkillsSeen:
        """Look at everything anew."""
        return await asyncio.to_thread(see_skills, self.request, window=self.window)

    async def see_change(self) -> SkillsSeen:
        """The same, after something was changed."""
        seen = await self.see()
        self.changed(skill_rules(seen.shelf.loaded.config))
        return seen

    def listing(self, seen: SkillsSeen) -> Listing[SkillFile]:
        return skill_listing(seen, user_home=self.request.env.get("HOME", ""), now=self.clock())


async def manage_skills(asker: Asker, place: SkillsPlace) -> Skill | None:
    """Let the user manage the skills; gives back the one to insert into the message."""
    seen = await place.see()
    if asker.show is None:
        return await _manage_in_lines(asker, place, seen)
    panel = SkillsPanel(place, seen)
    while True:
        chosen = await asker.show(panel)
        if chosen is None or not panel.opens:
            return None if chosen is None else chosen.skill
        await place.edit(chosen.path)
        panel = panel.again(await place.see_change())


class SkillsPanel(PickerPanel[SkillFile]):
    """The list. Enter settles it with the skill to insert, Ctrl-O with the file to open (`opens` is true then)."""

    def __init__(self, place: SkillsPlace, seen: SkillsSeen) -> None:
        self._place = place
        self._seen = seen
        self._switching: asyncio.Task[None] | None = None
        self.opens = False
        actions = [
            Action("tab", self._verb, self._switch),
            Action(" ", lambda: "", self._switch, only_unsearched=True),
            Action("c-o", lambda: "open in the editor", self._open),
        ]
        super().__init__(place.listing(seen), actions=actions)

    def again(self, seen: SkillsSeen) -> SkillsPanel:
        """A new panel with the same search, at the same place."""
        panel = SkillsPanel(self._place, seen)
        panel.resume(self)
        return panel

    def _verb(self) -> str:
        skill = self.selected.value.skill if self.selected else None
        return "on/off" if skill is None else "switch off" if self._is_on(skill) else "switch on"

    def _is_on(self, skill: Skill) -> bool:
        return self._seen.shelf.catalog.is_enabled(skill)

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
        notice = await asyncio.to_thread(switch_one, self._seen, skill, enabled=not self._is_on(skill))
        self._seen = await self._place.see_change()
        self.show(self._place.listing(self._seen), notice=notice)
        get_app().invalidate()


def switch_one(seen: SkillsSeen, skill: Skill, *, enabled: bool) -> str:
    """Switch one skill in the user's `config.toml`; what happened, for the user."""
    # Its name would mean the others too.
    by_path = sum(one.name == skill.name for one in seen.shelf.catalog.skills) > 1
    try:
        file = switch_skills(seen.shelf, [skill], enabled=enabled, by_path=by_path)
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


async def _manage_in_lines(asker: Asker, place: SkillsPlace, seen: SkillsSeen) -> Skill | None:
    while (file := await asker.pick(_unblocked(place.listing(seen)))) is not None:
        skill = file.skill
        sheet = Sheet(
            title=skill.name if skill else str(file.path),
            subject=(Line(skill.description),) if skill else (),
            options=_VERBS if skill else _VERBS[2:],
            refusal=_VERBS[-1].value,
            escape="back",
        )
        match await asker.choose(sheet):
            case "insert":
                return skill
            case "switch" if skill is not None:
                enabled = not seen.shelf.catalog.is_enabled(skill)
                notice = await asyncio.to_thread(partial(switch_one, seen, skill, enabled=enabled))
                await asker.read(notice, ())
            case "open":
                await place.edit(file.path)
            case _:
                continue
        seen = await place.see_change()
    return None


def _unblocked(listing: Listing[SkillFile]) -> Listing[SkillFile]:
    """Here an entry is chosen first and what is done with it afterwards."""
    return listing._replace(entries=tuple(one._replace(blocked="") for one in listing.entries))
