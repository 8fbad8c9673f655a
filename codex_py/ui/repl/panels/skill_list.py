"""The skills of a place as a list to manage: what each is, what it takes of the budget, when it was last used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.config.load import ConfigRequest
from codex_py.core.skill_shelf import SkillShelf, look_at_skills, window_for
from codex_py.core.skill_sources import skill_rules
from codex_py.skills.doctor import Examination, examine
from codex_py.skills.model import Skill
from codex_py.skills.render import SkillShare
from codex_py.skills.usage import SkillUsage, read_usage
from codex_py.text.age import describe_age
from codex_py.ui.repl.panels.forms import Entry, Line, Listing
from codex_py.ui.repl.panels.wording import short_path

_ON: Final = "[x]"
_OFF: Final = "[ ]"
_BROKEN: Final = " ! "


class SkillFile(NamedTuple):
    """An entry of the list: a skill, or a file that could not be loaded as one."""

    path: Path
    skill: Skill | None = None


class SkillsSeen(NamedTuple):
    """All that is known of the skills of a place; `used` is by the path of the skill's real file."""

    shelf: SkillShelf
    examination: Examination
    used: Mapping[str, SkillUsage]


def see_skills(request: ConfigRequest, *, window: int | None = None) -> SkillsSeen:
    """Read everything anew; `window` is that of the model that is asked, in tokens."""
    shelf = look_at_skills(request)
    config = shelf.loaded.config
    examination = examine(
        shelf.catalog,
        shelf.sources,
        context_window=window or window_for(shelf),
        max_tokens=config.skills.max_context_tokens,
        rules=skill_rules(config),
    )
    return SkillsSeen(shelf, examination, {one.path: one for one in read_usage(request.home)})


def skill_listing(seen: SkillsSeen, *, user_home: str, now: float) -> Listing[SkillFile]:
    """Every skill in catalogue order, then the files that could not be loaded; `now` is in seconds."""
    shares = {share.skill.canonical_path: share for share in seen.examination.budget.shares}
    catalog = seen.shelf.catalog
    entries = [
        _skill_entry(skill, seen, shares.get(skill.canonical_path), user_home, now=now) for skill in catalog.skills
    ]
    known = {skill.path for skill in catalog.skills}
    broken = [one for one in seen.examination.verdicts if not one.loaded and one.path not in known]
    entries += [
        Entry(
            SkillFile(one.path),
            one.path.parent.name or str(one.path),
            "not loaded",
            (Line(one.reason, "warn"), Line(short_path(one.path, user_home), "menu.note")),
            mark=_BROKEN,
            words=one.reason,
            blocked="it is not loaded, so that it cannot be used; Ctrl-O opens it",
        )
        for one in broken
    ]
    return Listing(
        title="Skills",
        entries=tuple(entries),
        about=(Line(_summary(seen, len(broken)), "menu.note"),),
        empty="no skills here; put one into `.agents/skills` of this project or of your home",
        enter="insert",
    )


def _summary(seen: SkillsSeen, broken: int) -> str:
    use = seen.examination.budget
    catalog = seen.shelf.catalog
    parts = [f"{len(catalog.enabled())} of {len(catalog.skills)} on"]
    if use.limit:
        parts.append(f"the list takes {use.used:,} of {use.limit:,} {use.unit}")
    if left_out := sum(not share.listed for share in use.shares):
        parts.append(f"{left_out} left out")
    if broken:
        parts.append(f"{broken} not loaded")
    return " · ".join(parts)


def _skill_entry(
    skill: Skill, seen: SkillsSeen, share: SkillShare | None, user_home: str, *, now: float
) -> Entry[SkillFile]:
    is_on = seen.shelf.catalog.is_enabled(skill)
    use = seen.used.get(str(skill.canonical_path))
    unit = "tok" if seen.examination.budget.unit == "tokens" else "chars"
    notes = [
        f"{skill.scope:<6}",
        f"{'hidden' if not skill.allow_implicit else 'left out' if share and not share.listed else '':<8}",
        f"{f'{share.cost:,} {unit}' if share and share.listed else '–':>9}",
        f"used {describe_age(use.last_used, now=now)}" if use else "never used",
    ]
    return Entry(
        SkillFile(skill.path, skill),
        skill.name,
        "  ".join(notes),
        tuple(_about(skill, seen, share, use, user_home)),
        mark=_ON if is_on else _OFF,
        style="" if is_on else "menu.note",
        words=f"{skill.description} {skill.scope}",
        blocked="" if is_on else "it is switched off; Tab switches it on",
    )


def _about(
    skill: Skill, seen: SkillsSeen, share: SkillShare | None, use: SkillUsage | None, user_home: str
) -> Iterator[Line]:
    yield Line(" ".join(skill.description.split()))
    facts = [_standing(skill, seen, share)]
    if share is not None and share.listed and share.shown < share.length:
        facts.append(f"{share.shown} of {share.length} characters of its description fit")
    if use is not None:
        facts.append(f"mentioned {use.explicit}×, used by commands {use.implicit}×")
    if not skill.user_invocable:
        facts.append("not offered in menus")
    yield Line(" · ".join(facts), "menu.note")
    yield Line(short_path(skill.path, user_home), "menu.note")


def _standing(skill: Skill, seen: SkillsSeen, share: SkillShare | None) -> str:
    if not seen.shelf.catalog.is_enabled(skill):
        return "switched off"
    if not skill.allow_implicit:
        return "hidden from the model: it is used when you mention it"
    if share is not None and not share.listed:
        return "left out of the list: its budget is used up"
    if share is None or not seen.shelf.loaded.config.skills.include_instructions:
        return "not listed for the model"
    return f"listed, {100 * share.cost / max(1, seen.examination.budget.limit):.1f} % of the list's budget"
