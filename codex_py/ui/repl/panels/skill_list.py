"""The skills of a directory as a list to manage: what each is, what it takes of the budget, when it was last used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.config.load import ConfigRequest
from codex_py.core.skill_admin import SkillAdmin, look_at_skills, window_for
from codex_py.core.skill_sources import skill_rules
from codex_py.paths import short_path
from codex_py.skills.doctor import Examination, examine
from codex_py.skills.model import Skill
from codex_py.skills.render import SkillShare
from codex_py.skills.usage import SkillUsage, read_usage
from codex_py.text.age import describe_age
from codex_py.ui.repl.panels.forms import ListEntry, ListForm, TextLine

_ON: Final = "[x]"
_OFF: Final = "[ ]"
_BROKEN: Final = " ! "


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
    examination = examine(
        admin.catalog,
        admin.sources,
        context_window=window or window_for(admin),
        max_tokens=config.skills.max_context_tokens,
        rules=skill_rules(config),
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
