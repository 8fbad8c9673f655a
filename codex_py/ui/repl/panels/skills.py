"""The skills manager: list with budget and last use, search, switch on and off, open in the editor, insert."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from prompt_toolkit.application import get_app

from codex_py.config.load import ConfigRequest
from codex_py.core.session_skills import skill_rules
from codex_py.errors import UserError
from codex_py.paths import short_path
from codex_py.services.skill_admin import (
    SkillAdmin,
    list_tokens,
    look_at_skills,
    search_skills,
    switch_skills,
    window_for,
)
from codex_py.skills.doctor import Examination, examine
from codex_py.skills.model import Skill
from codex_py.skills.render import SkillShare
from codex_py.skills.rules import SkillSwitch
from codex_py.skills.usage import SkillUsage, read_usage
from codex_py.text.display import describe_age
from codex_py.ui.repl.panels.forms import FormAsker, ListEntry, ListForm, Option, Sheet, TextLine
from codex_py.ui.repl.panels.picker import PickerAction, PickerPanel

_ON: Final = "[x]"
_OFF: Final = "[ ]"
_BROKEN: Final = " ! "
_MAX_FOUND: Final = 30


class SkillFile(NamedTuple):
    """An entry of the list: a skill, or a file that could not be loaded as one."""

    path: Path
    skill: Skill | None = None


class SkillsOverview(NamedTuple):
    """All that is known of the skills of a directory; `usage` is by the path of the skill's real file."""

    admin: SkillAdmin
    examination: Examination
    usage: Mapping[str, SkillUsage]


def inspect_skills(request: ConfigRequest, *, window: int | None = None) -> SkillsOverview:
    """Read everything again; `window` is the model's context window in tokens."""
    admin = look_at_skills(request)
    config = admin.loaded.config
    window = window or window_for(admin)
    examination = examine(
        admin.catalog,
        admin.sources,
        context_window=window,
        max_tokens=list_tokens(admin, window),
        rules=skill_rules(admin.loaded),
        never_install=config.skills.never_install_mcp,
    )
    return SkillsOverview(admin, examination, {usage.path: usage for usage in read_usage(request.home)})


def skill_listing(overview: SkillsOverview, *, user_home: str, now: float) -> ListForm[SkillFile]:
    """Every skill in catalogue order, then the files that could not be loaded; `now` is in seconds."""
    shares = {share.skill.canonical_path: share for share in overview.examination.budget.shares}
    catalog = overview.admin.catalog
    entries = [
        _skill_entry(skill, overview, shares.get(skill.canonical_path), user_home, now=now) for skill in catalog.skills
    ]
    known = {skill.path for skill in catalog.skills}
    broken = [verdict for verdict in overview.examination.verdicts if not verdict.loaded and verdict.path not in known]
    entries += [
        ListEntry(
            SkillFile(verdict.path),
            verdict.path.parent.name or str(verdict.path),
            "not loaded",
            (TextLine(verdict.reason, "warn"), TextLine(short_path(verdict.path, user_home), "menu.note")),
            mark=_BROKEN,
            words=verdict.reason,
            blocked="it is not loaded, so that it cannot be used; Ctrl-O opens it",
        )
        for verdict in broken
    ]
    return ListForm(
        title="Skills",
        entries=tuple(entries),
        about=(TextLine(_summary(overview, len(broken)), "menu.note"),),
        empty="no skills here; put one into `.agents/skills` of this project or of your home",
        enter="insert",
    )


def _summary(overview: SkillsOverview, broken: int) -> str:
    use = overview.examination.budget
    catalog = overview.admin.catalog
    pieces = [f"{len(catalog.enabled())} of {len(catalog.skills)} on"]
    if use.limit:
        pieces.append(f"the list takes {use.used:,} of {use.limit:,} {use.unit}")
    if omitted := sum(not share.listed for share in use.shares):
        pieces.append(f"{omitted} left out")
    if broken:
        pieces.append(f"{broken} not loaded")
    return " · ".join(pieces)


def _skill_entry(
    skill: Skill, overview: SkillsOverview, share: SkillShare | None, user_home: str, *, now: float
) -> ListEntry[SkillFile]:
    is_on = overview.admin.catalog.is_enabled(skill)
    use = overview.usage.get(str(skill.canonical_path))
    unit = "tok" if overview.examination.budget.unit == "tokens" else "chars"
    notes = [
        f"{skill.scope:<6}",
        f"{'hidden' if not skill.allow_implicit else 'left out' if share and not share.listed else '':<8}",
        f"{f'{share.cost:,} {unit}' if share and share.listed else '–':>9}",
        f"used {describe_age(use.last_used, now=now)}" if use else "never used",
    ]
    return ListEntry(
        SkillFile(skill.path, skill),
        skill.name,
        "  ".join(notes),
        tuple(_about(skill, overview, share, use, user_home)),
        mark=_ON if is_on else _OFF,
        style="" if is_on else "menu.note",
        words=f"{skill.description} {skill.scope}",
        blocked="" if is_on else "it is switched off; Tab switches it on",
    )


def _about(
    skill: Skill, overview: SkillsOverview, share: SkillShare | None, use: SkillUsage | None, user_home: str
) -> Iterator[TextLine]:
    yield TextLine(" ".join(skill.description.split()))
    facts = [_standing(skill, overview, share)]
    if share is not None and share.listed and share.shown < share.length:
        facts.append(f"{share.shown} of {share.length} characters of its description fit")
    if use is not None:
        facts.append(f"mentioned {use.explicit}×, used by commands {use.implicit}×")
    if not skill.user_invocable:
        facts.append("not offered in menus")
    yield TextLine(" · ".join(facts), "menu.note")
    yield TextLine(short_path(skill.path, user_home), "menu.note")


def _standing(skill: Skill, overview: SkillsOverview, share: SkillShare | None) -> str:
    if not overview.admin.catalog.is_enabled(skill):
        return "switched off"
    if not skill.allow_implicit:
        return "hidden from the model: it is used when you mention it"
    if share is not None and not share.listed:
        return "left out of the list: its budget is used up"
    if share is None or not overview.admin.loaded.config.skills.include_instructions:
        return "not listed for the model"
    return f"listed, {100 * share.cost / max(1, overview.examination.budget.limit):.1f} % of the list's budget"


class SkillsContext(NamedTuple):
    """The inputs of the skill manager. `window` is that of the model, in tokens; `clock` gives seconds since the epoch.

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
        self.changed(skill_rules(overview.admin.loaded))
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

    async def find_more(self, text: str) -> None:
        """Search the texts of the skills as well."""
        admin = self._overview.admin
        # Without an index the names and descriptions are all that is searched.
        with suppress(UserError):
            found = await asyncio.to_thread(search_skills, admin, text, admin.catalog.skills)
            self.add_found(text, [SkillFile(entry.skill.path, entry.skill) for entry in found[:_MAX_FOUND]])
            get_app().invalidate()

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
            self.notify("it is not loaded: fix it first, Ctrl-O opens it")
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
