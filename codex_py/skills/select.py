"""Which skills a user's input asks for, and what to tell the user about the mentions that select none."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple
from unicodedata import combining, normalize

from codex_py.paths import real_path
from codex_py.protocol.ops import SkillInput
from codex_py.skills.mentions import LinkMention, find_mentions, is_mentionable, lengths_of, longest_known
from codex_py.skills.model import Skill, SkillCatalog, SkillProblem
from codex_py.skills.roots import LinkBase
from codex_py.text.sanitize import sanitize_line

_MAX_NOTICES: Final = 8
_MAX_CHOICES: Final = 4
# How alike a mention and a name are, by difflib's ratio, for the mention to be a mistake.
_NEAR: Final = 0.85
_MIN_NEAR: Final = 4
# One of three characters may differ where a character is a word.
_NEAR_SHORT: Final = 0.6
_MAX_QUOTED: Final = 40
# What stands before a name, at the start of a message or behind a verb, or behind it, for it to be meant as a skill's.
_BEFORE_SKILL: Final = (
    r"(?:^\s*|\b(?:use|using|run|with|via|apply|invoke|try|call|please)\s+(?:the\s+)?|(?:[用按]|一下)\s*)$"
)
_CALLED_SKILL: Final = r"\s*(?:skill\b|(?:这个)?技能)"
_AFTER_SKILL: Final = r"(?!->|\.\w|[\[({=\w])"
_MAX_COMPARED: Final = 20


class Selection(NamedTuple):
    """The skills to inject, in their order, and one line for the user for each mention that selects nothing."""

    skills: tuple[Skill, ...] = ()
    notices: tuple[str, ...] = ()
    not_loaded: tuple[SkillProblem, ...] = ()
    """The skills that are named and could not be loaded."""


class RefusedMention(NamedTuple):
    """A mention that selects no skill: as it is `written` behind the `$`, why, and the skills it could mean."""

    written: str
    reason: str
    choices: tuple[Skill, ...] = ()


def refused_mentions(
    catalog: SkillCatalog,
    text: str,
    *,
    user_home: Path,
    structured: Sequence[SkillInput] = (),
    connector_slugs: Collection[str] = (),
    base: LinkBase | None = None,
) -> tuple[RefusedMention, ...]:
    """The mentions of one text that select nothing, so that a front end can ask before it sends the text."""
    if "$" not in text:
        return ()
    chosen = _Chosen(catalog, user_home, base)
    return chosen.read([text], structured, connector_slugs).refused()


def select_skills(
    catalog: SkillCatalog,
    texts: Sequence[str],
    *,
    user_home: Path,
    structured: Sequence[SkillInput] = (),
    connector_slugs: Collection[str] = (),
    base: LinkBase | None = None,
) -> Selection:
    """Decide what the mentions of one user input select; each skill comes once.

    Structured inputs are first, in their order, and take their name away from the plain mentions. Then follow, text by
    text, the linked skills and those named plainly, both in catalogue order. A plain name must be that of exactly one
    enabled skill and of no connector (slugs are lower case). A `~` in a link stands for `user_home`, and a
    relative one starts from `base`.
    """
    if not structured and not any("$" in text for text in texts):
        return Selection()
    chosen = _Chosen(catalog, user_home, base).read(texts, structured, connector_slugs)
    return Selection(tuple(chosen.skills.values()), chosen.notices(), tuple(chosen.not_loaded.values()))


class _Chosen:
    """The skills selected so far, by path, and the mentions that could not be selected."""

    def __init__(self, catalog: SkillCatalog, user_home: Path, base: LinkBase | None) -> None:
        self.skills: dict[Path, Skill] = {}
        self._base = base
        self._catalog = catalog
        self._user_home = user_home
        self._positions = {id(skill): position for position, skill in enumerate(catalog.skills)}
        self._blocked: set[str] = set()
        # Keyed by name, because a later mention of another kind may still select a skill of that name.
        self._ambiguous: dict[str, RefusedMention] = {}
        # By the line for the user; what is written there.
        self._notices: dict[str, str] = {}
        # A line for each name that is like no skill's. They hold no message back.
        self._unknown: list[str] = []
        self.not_loaded: dict[Path, SkillProblem] = {}
        self._untold = 0
        self._compared = 0

    def read(self, texts: Sequence[str], structured: Sequence[SkillInput], connector_slugs: Collection[str]) -> _Chosen:
        """Take in one user input."""
        for picked in structured:
            self.pick(picked)
        known = {skill.name for skill in self._catalog.skills}
        for text, mentions in [(text, find_mentions(text, known)) for text in texts]:
            self.follow_links(mentions.links)
            self.resolve_names([name for name in mentions.plain if name.lower() not in connector_slugs])
            self.note_unknown([run for run in mentions.unknown if run.lower() not in connector_slugs], text)
        return self

    def pick(self, picked: SkillInput) -> None:
        self._blocked.add(picked.name)
        path = str(picked.path)
        if skill := self._linked(path):
            self._add([skill])
        elif len(named := self._named_by_link(path)) == 1:
            self._add(named)
        else:
            self._note_no_skill_at(picked.name, path)

    def follow_links(self, links: Iterable[LinkMention]) -> None:
        found: list[Skill] = []
        for link in links:
            if link.link_type not in ("skill", "other"):
                continue
            if skill := self._linked(link.path):
                found.append(skill)
                continue
            named = self._named_by_link(link.path) if link.link_type == "skill" else ()
            if len(named) == 1:
                found += named
            elif named:
                self._refuse(link.path, link.name, f"could mean {len(named)} skills and selects none: ", named)
            elif link.link_type == "skill":
                self._note_no_skill_at(link.name, link.path)
        self._add(found)

    def _linked(self, path: str) -> Skill | None:
        """The skill whose file a path is, directly or through links; a relative one starts from where the user is, and
        stays in the project."""
        whole = self._whole(path)
        if skill := self._by_path.get(whole):
            return skill
        return self._by_path.get(real_path(whole)) if whole.startswith("/") and "\0" not in whole else None

    def _whole(self, path: str) -> str:
        """The absolute path of a link; a relative one that would leave the project stays relative."""
        tidy = _lexical(path, self._user_home)
        if tidy.startswith("/") or self._base is None:
            return tidy
        whole = os.path.normpath(f"{self._base.cwd}/{tidy}")
        return whole if Path(whole).is_relative_to(self._base.project) else tidy

    def _named_by_link(self, path: str) -> Sequence[Skill]:
        """The skills that `skill://name`, or `skill://namespace/name`, stands for; without the scheme here."""
        return self._catalog.find(path.strip("/").replace("/", ":"))

    def resolve_names(self, names: Iterable[str]) -> None:
        found: list[Skill] = []
        for name in names:
            if name in self._blocked:
                continue
            skills = self._catalog.find(name)
            if len(skills) == 1:
                found += skills
            elif skills:
                self._refuse(name, name, f"could mean {len(skills)} skills and selects none: ", skills)
            else:
                self._notices[f"the skill `{_shown(name)}` is switched off; {_enabling(name)}"] = name
        self._add(found)

    def note_unknown(self, runs: Iterable[str], text: str) -> None:
        for run in runs:
            if not (name := longest_known(run.lower(), self._by_case, self._lengths)):
                if not self._note_not_loaded(run) and self._compared < _MAX_COMPARED:
                    self._note_near(run, text)
                continue
            names = self._by_case[name]
            if not self._blocked.intersection(names):
                self._refuse(names[0], run[: len(name)], "is not a skill; you could mean ", self._named(names))

    def _note_near(self, run: str, text: str) -> None:
        """A line when the run is nearly a name or is meant as a skill's; none for variables such as `$HOME`."""
        run = run.rstrip(":")
        is_short = len(run) < (_MIN_NEAR if run.isascii() else 2)
        if is_short or not run[0].isalpha() or (run.isupper() and run.isascii()):
            return
        self._compared += 1
        near = self._nearest(run.lower())
        if near is None:
            if not run.isascii() or _is_meant_as_skill(run.rstrip("-"), text):
                shown = _shown(run[:_MAX_QUOTED])
                self._unknown.append(f"`${shown}` is not a skill; `codex-py skills list` shows the names")
        elif not self._blocked.intersection(names := self._by_case[near[0]]):
            self._refuse(f"${run}", run, "is not a skill; did you mean ", self._named(names), "?", length=near[1])

    def _nearest(self, run: str) -> tuple[str, int] | None:
        """The name that is most like a run, and how many characters of the run are meant for it.

        In a script without spaces the text after the name belongs to the run.
        """
        names = [name for name in self._by_case if name.isascii() == run.isascii()]
        lengths, likeness = ((), _NEAR) if run.isascii() else (lengths_of(names), _NEAR_SHORT)
        for length in (*lengths, len(run)):
            if near := get_close_matches(run[:length], names, 1, likeness):
                return near[0], length
        return None

    def _note_not_loaded(self, run: str, written: str = "") -> bool:
        """Note a skill that could not be loaded, by its name or directory, and the name that is written for it."""
        key = run if run in self._not_loaded else run.partition(":")[0]
        if problem := self._not_loaded.get(key):
            name = written or key
            reason = f"`{_shown(str(problem.path))}` could not be loaded: {sanitize_line(problem.message)}"
            self._notices[f"`${_shown(name)}` selects nothing: {reason}"] = name
            self.not_loaded[problem.path] = problem
            return True
        return False

    def notices(self) -> tuple[str, ...]:
        """At most eight lines; the last one says how many more there would be."""
        lines = [*self._notices, *(mention.reason for mention in self._open()), *self._unknown]
        if (rest := len(lines) + self._untold - _MAX_NOTICES) > 0:
            lines = [*lines[: _MAX_NOTICES - 1], f"{rest + 1} more mentions select no skill"]
        return tuple(lines)

    def refused(self) -> tuple[RefusedMention, ...]:
        """Each mention that selects nothing, once."""
        return (*(RefusedMention(name, line) for line, name in self._notices.items()), *self._open())

    def _open(self) -> list[RefusedMention]:
        """Those that could mean several skills, or nearly name one, of which none was selected in another way."""
        selected = {skill.name for skill in self.skills.values()}
        return [mention for name, mention in self._ambiguous.items() if name not in selected]

    def _refuse(
        self, key: str, written: str, why: str, skills: Sequence[Skill], end: str = "", *, length: int | None = None
    ) -> None:
        """Note a mention that selects nothing; `length` characters of what is written are the name."""
        reason = f"`${_shown(written)}` {why}{_choices(skills)}{end}"
        self._ambiguous[key] = RefusedMention(written[:length], reason, tuple(skills))

    def _named(self, names: Iterable[str]) -> list[Skill]:
        return [skill for name in names for skill in self._catalog.find(name)]

    @cached_property
    def _by_case(self) -> dict[str, list[str]]:
        """Names of enabled skills by their lower-case form, with accents and without; those with a namespace by the
        bare name as well.
        """
        enabled = self._catalog.enabled()
        pairs = [(name, skill.name) for skill in enabled for name in (skill.name.lower(), _unaccented(skill.name))]
        pairs += [
            (skill.name.removeprefix(f"{skill.namespace}:").lower(), skill.name) for skill in enabled if skill.namespace
        ]
        found: dict[str, list[str]] = {}
        for spelling, name in dict.fromkeys(pairs):
            found.setdefault(spelling, []).append(name)
        return found

    @cached_property
    def _lengths(self) -> list[int]:
        return lengths_of(self._by_case)

    @cached_property
    def _not_loaded(self) -> dict[str, SkillProblem]:
        """The fault of each skill that was not loaded, by the path and the name of its directory or file."""
        found = [(problem.path, problem) for problem in self._catalog.problems]
        found = [(path.parent if path.name == "SKILL.md" else path, problem) for path, problem in found]
        return {key: problem for path, problem in found for key in (path.name, str(path))}

    @cached_property
    def _by_path(self) -> dict[str, Skill]:
        """The enabled skills by both of their paths, as text: making a `Path` of every link takes longer."""
        enabled = self._catalog.enabled()
        found = {str(skill.path): skill for skill in enabled}
        found.update((str(skill.canonical_path), skill) for skill in enabled)
        return found

    def _add(self, skills: Iterable[Skill]) -> None:
        for skill in sorted(skills, key=lambda skill: self._positions[id(skill)]):
            self.skills.setdefault(skill.canonical_path, skill)

    def _note_no_skill_at(self, name: str, written: str) -> None:
        directory = self._whole(written).removesuffix("/SKILL.md")
        if self._note_not_loaded(directory, name) or self._note_not_loaded(written, name):
            return
        # Finding out why takes a look at every skill, so it is done as often as it is reported.
        if len(self._notices) < _MAX_NOTICES:
            self._notices[self._why_no_skill_at(name, written)] = name
        else:
            self._untold += 1

    def _why_no_skill_at(self, name: str, written: str) -> str:
        path = self._whole(written)
        target = f"`{_shown(written)}` of `${_shown(name)}`"
        if not path.startswith("/"):
            needs = (
                "a path from here that stays in the project, or an absolute one" if self._base else "an absolute path"
            )
            return f"no skill at {target}: a link to a skill needs {needs}{self._hint(name)}"
        for skill in self._catalog.skills:
            if path in (str(skill.path), str(skill.canonical_path)):
                return f"the skill at {target} is switched off; {_enabling(skill.name)}"
            if path in (str(skill.path.parent), str(skill.directory)):
                return f"{target} is the directory of a skill; write {_link_to(skill)}"
        if os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for what nobody may look at
            where = "no directory that is searched for skills; `codex-py skills doctor` says how to add one"
            return f"no skill at {target}: it lies in {where}{self._hint(name)}"
        return f"no skill at {target}{self._hint(name)}"

    def _hint(self, name: str) -> str:
        skills = self._catalog.find(name)
        return f"; you could mean {_choices(skills)}" if skills else ""


def _unaccented(name: str) -> str:
    letters = "".join(letter for letter in normalize("NFD", name.lower()) if not combining(letter))
    return normalize("NFC", letters)


def _is_meant_as_skill(run: str, text: str) -> bool:
    """Whether an unknown `$name` is likely to mean a skill, and not a variable."""
    found = re.search(rf"\${re.escape(run)}{_AFTER_SKILL}", text)
    if found is None:
        return False
    before = text[max(0, found.start() - 20) : found.start()]
    is_called = re.match(_CALLED_SKILL, text[found.end() : found.end() + 20], re.IGNORECASE)
    return is_called is not None or re.search(_BEFORE_SKILL, before, re.IGNORECASE) is not None


def _choices(skills: Sequence[Skill]) -> str:
    """Each skill with its scope and the way to name it, in one line."""
    by_name: dict[str, int] = {}
    for skill in skills:
        by_name[skill.name] = by_name.get(skill.name, 0) + 1
    lines: list[str] = []
    for skill in skills[:_MAX_CHOICES]:
        plain = by_name[skill.name] == 1 and is_mentionable(skill.name)
        lines.append(f"`${skill.name}` ({skill.scope})" if plain else f"{_link_to(skill)} ({skill.scope})")
    if len(skills) > _MAX_CHOICES:
        lines.append(f"{len(skills) - _MAX_CHOICES} more")
    return ", ".join(lines[:-1]) + f" or {lines[-1]}" if len(lines) > 1 else lines[0]


def _link_to(skill: Skill) -> str:
    """The mention that means this skill whatever its name is."""
    name = skill.name if is_mentionable(skill.name) else "skill"
    return f"`[${name}]({_shown(str(skill.path))})`"


def _enabling(name: str) -> str:
    return f"`codex-py skills enable {_shown(name)}` switches it on"


def _shown(text: str) -> str:
    return sanitize_line(text if len(text) <= 300 else f"{text[:299]}…").replace("`", "'")


def _lexical(path: str, user_home: Path) -> str:
    """An absolute path with `~`, `.`, `..` and doubled slashes resolved as text; a relative one only tidied up."""
    if path == "~" or path.startswith("~/"):
        path = f"{user_home}{path[1:]}"
    tidy = os.path.normpath(path)
    return tidy[1:] if tidy.startswith("//") else tidy
