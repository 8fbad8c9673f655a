"""What the menu offers besides files: skills after a `$`, commands and skills after a `/` at the start."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from codex_py.skills.model import Skill, SkillCatalog
from codex_py.ui.repl.chips import PickedSkill
from codex_py.ui.repl.fuzzy import best
from codex_py.ui.repl.menu import MOST_OFFERS, Offer, Word
from codex_py.ui.repl.slash import Command

_SKILL: Final = re.compile(r"(?:^|(?<=[\s(\[\"'`]))\$([\w.:-]*)$")
_COMMAND: Final = re.compile(r"/([\w.:-]*)$")


class SkillSource:
    """Offers the skills that can be used; the one picked goes to the session as itself, not as a word."""

    title = "skills"

    def __init__(self, catalog: Callable[[], SkillCatalog]) -> None:
        self._catalog = catalog

    def word_at(self, before: str) -> Word | None:
        found = _SKILL.search(before)
        return Word(found.start(), found[1]) if found else None

    def offers(self, query: str) -> Sequence[Offer]:
        return [_skill_offer(skill) for skill in _fitting(self._catalog(), query)]


class CommandSource:
    """Offers commands, and skills by the same sign."""

    title = "commands"

    def __init__(self, commands: Callable[[], Sequence[Command]], catalog: Callable[[], SkillCatalog]) -> None:
        self._commands = commands
        self._catalog = catalog

    def word_at(self, before: str) -> Word | None:
        found = _COMMAND.fullmatch(before)
        return Word(0, found[1]) if found else None

    def offers(self, query: str) -> Sequence[Offer]:
        commands = best(query, self._commands(), key=lambda one: (one.name,), limit=MOST_OFFERS)
        skills = _fitting(self._catalog(), query) if query or not commands else []
        return [*map(_command_offer, commands), *(_skill_offer(skill, sign="/") for skill in skills)]


def invocable(catalog: SkillCatalog) -> list[Skill]:
    """The skills a person may pick."""
    return [skill for skill in catalog.enabled() if skill.user_invocable]


def _fitting(catalog: SkillCatalog, query: str) -> list[Skill]:
    return best(query, invocable(catalog), key=_texts_of, limit=MOST_OFFERS)


def _texts_of(skill: Skill) -> tuple[str, ...]:
    shown = skill.interface.display_name if skill.interface else None
    return (skill.name, shown) if shown else (skill.name,)


def _skill_offer(skill: Skill, *, sign: str = "$") -> Offer:
    shown = skill.interface.display_name if skill.interface else None
    short = (skill.interface.short_description if skill.interface else None) or skill.short_description
    about = short or skill.description
    title = f"{shown} · {about}" if shown and shown != skill.name else about
    chip = PickedSkill(skill.name, skill.path)
    return Offer(f"{sign}{skill.name}", f"{skill.scope}  {title}", skill.description, f"${skill.name} ", chip)


def _command_offer(command: Command) -> Offer:
    hint = f" {command.hint}" if command.hint else ""
    preview = f"/{command.name}{hint}: {command.purpose}"
    insert = f"/{command.name} " if command.hint else f"/{command.name}"
    return Offer(f"/{command.name}", command.purpose, preview, insert, runs=not command.needs_words)
