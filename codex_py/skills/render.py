"""The list of skills that the model gets: a line a skill within a budget, and how to use them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from codex_py.protocol.value import Value
from codex_py.skills.budget import (
    MAX_TOKENS,
    Budget,
    BudgetLine,
    Fit,
    Preference,
    Unit,
    budget_for,
    fit_lines,
    fits_whole,
)
from codex_py.skills.model import ROOT_ORDER, Skill, SkillCatalog, SkillRoot
from codex_py.text.sanitize import sanitize_line

_INTRO: Final = (
    "A skill is a directory whose `SKILL.md` teaches one kind of work: instructions, often with scripts, references "
    "and templates next to it. Each line below gives a skill's name, what it is for, and its file."
)
_ALIAS_INTRO: Final = f"{_INTRO} A file begins with the alias of a skill root: put that directory in its place."

_MAX_DESCRIPTION: Final = 1024
# So many characters of a description say what a skill is for.
_CLEAR: Final = 60
_OWN_TAG: Final = r"(?i)<(?=/?\s*skills_instructions)"


class _Texts(Value):
    """Names, descriptions and files of the skills, in their order."""

    names: list[str]
    descriptions: list[str]
    paths: list[str]


class SkillShare(Value):
    """The share of the budget that one skill takes; `cost` is 0 for one that is left out.

    `shown` characters of its description are in the list, of `length` that could be.
    """

    skill: Skill
    listed: bool
    cost: int
    shown: int
    length: int


class BudgetUse(Value):
    """How the budget was used; skills in the order of the list."""

    unit: Unit
    limit: int
    used: int
    shares: tuple[SkillShare, ...]


class RenderedSkills(Value):
    """The block for the developer message, "" when no skill is for the model, and lines for the user."""

    text: str
    warnings: tuple[str, ...]
    report: BudgetUse

    @property
    def hides_descriptions(self) -> bool:
        """Whether a skill is left out, or its description is cut below 60 characters."""
        return any(not share.listed or share.shown < min(share.length, _CLEAR) for share in self.report.shares)


class _Layout(Value):
    """One way to write the list: with whole paths, or with a table of `roots` and aliases."""

    roots: tuple[str, ...]
    lines: list[BudgetLine]

    @property
    def length(self) -> int:
        """What of the length differs between layouts: the head, and the locations."""
        return len(_head(self.roots)) + sum(len(line.location) for line in self.lines)


def render_skills(
    catalog: SkillCatalog,
    *,
    context_window: int | None,
    max_tokens: int | None,
    prefer: Callable[[Sequence[Skill]], Preference] | None = None,
) -> RenderedSkills:
    """Write the list of the skills the model may use on its own, within `max_tokens` or 2 % of the context window.

    Without either the list has 8,000 characters, and never more than 60,000 tokens. The same catalogue and budget give
    the same text. Descriptions end at 1,024 characters in any case. Warnings say when they were shortened further, and
    when skills are left out. `prefer` is asked only where not everything fits.
    """
    skills = catalog.listed()
    budget = budget_for(context_window, max_tokens)
    if not skills:
        return RenderedSkills("", (), BudgetUse(budget.unit, budget.limit, 0, ()))
    texts = _Texts(
        [_clean(skill.name) for skill in skills],
        [_description(skill) for skill in skills],
        [_slashed(skill.path) for skill in skills],
    )
    # Of two of one length the first, with whole paths: one table less to read.
    layout = min(_whole_paths(texts), _aliased(skills, texts), key=lambda each: each.length)
    preference = prefer(skills) if prefer and not fits_whole(layout.lines, budget) else None
    fit = fit_lines(layout.lines, budget, preference)
    report = _report(skills, layout, fit, budget)
    whole = sum(budget.cost(f"{line.text()}\n") for line in layout.lines)
    return RenderedSkills(_block(layout, fit), _warnings(report, whole, context_window), report)


def _whole_paths(texts: _Texts) -> _Layout:
    return _Layout((), list(map(BudgetLine, texts.names, texts.descriptions, texts.paths)))


def _aliased(skills: Sequence[Skill], texts: _Texts) -> _Layout:
    """The list with aliases. The table of roots is outside the budget, as the head of the list is."""
    directories = _alias_directories(skills)
    aliases = {directory: f"r{number}" for number, directory in enumerate(dict.fromkeys(directories.values()))}
    prefixes = {root: (f"{directory}/", aliases[directory]) for root, directory in directories.items()}
    lines: list[BudgetLine] = []
    for skill, name, description, path in zip(skills, texts.names, texts.descriptions, texts.paths, strict=True):
        directory, alias = prefixes[skill.root.path]
        location = f"{alias}/{path[len(directory) :]}" if path.startswith(directory) else path
        lines.append(BudgetLine(name, description, location))
    return _Layout(tuple(aliases), lines)


def _alias_directories(skills: Sequence[Skill]) -> dict[Path, str]:
    """The directory an alias stands for, by root, in the order in which roots are searched.

    Plugins with one skill each share the directory of their marketplace.
    """
    roots: dict[Path, SkillRoot] = {}
    counts: dict[Path, int] = {}
    for skill in skills:
        roots[skill.root.path] = skill.root
        counts[skill.root.path] = counts.get(skill.root.path, 0) + 1
    ordered = sorted(roots.values(), key=_search_order)
    return {root.path: _slashed(_marketplace(root) if counts[root.path] == 1 else root.path) for root in ordered}


def _search_order(root: SkillRoot) -> tuple[int, int, str]:
    depth = len(root.path.parts)
    nearest_first = {"project-config": -depth, "agents": depth}
    return ROOT_ORDER.index(root.root_type), nearest_first.get(root.root_type, 0), str(root.path)


def _marketplace(root: SkillRoot) -> Path:
    """`…/plugins/cache/<marketplace>` for the root of a plugin that lies there, else the root itself."""
    names = root.path.parts
    if root.plugin_id is not None:
        for index in range(len(names) - 4, 0, -1):
            if names[index - 1 : index + 1] == ("plugins", "cache"):
                return Path(*names[: index + 2])
    return root.path


def _block(layout: _Layout, fit: Fit) -> str:
    lines = [line.text(shown) for line, shown in zip(layout.lines, fit.shown, strict=True) if shown is not None]
    rules = Path(__file__).with_name("prompts").joinpath("how_to_use.md").read_text("utf-8").strip()
    listed = "\n".join([_head(layout.roots), *lines])
    return f"<skills_instructions>\n{listed}\n### How to use skills\n{rules}\n</skills_instructions>"


def _head(roots: Sequence[str]) -> str:
    table = [f"- `r{number}` = `{directory}`" for number, directory in enumerate(roots)]
    heading = ["### Skill roots", *table] if roots else []
    return "\n".join(["## Skills", _ALIAS_INTRO if roots else _INTRO, *heading, "### Available skills"])


def _report(skills: Sequence[Skill], layout: _Layout, fit: Fit, budget: Budget) -> BudgetUse:
    shares = tuple(
        SkillShare(skill, True, budget.cost(f"{line.text(shown)}\n"), shown, len(line.description))
        if shown is not None
        else SkillShare(skill, False, 0, 0, len(line.description))
        for skill, line, shown in zip(skills, layout.lines, fit.shown, strict=True)
    )
    return BudgetUse(budget.unit, budget.limit, fit.cost, shares)


def _warnings(report: BudgetUse, whole: int, window: int | None) -> tuple[str, ...]:
    """`whole` is what the list takes with all descriptions."""
    shares = report.shares
    missing = sum(not share.listed for share in shares)
    shortened = [share for share in shares if share.listed and share.shown < share.length]
    budget = f"the list of skills has a budget of {report.limit:,} {report.unit}"
    remedy = "switch off skills you do not use (`codex-py skills disable NAME`)"
    if window and (share := -(-100 * whole // window)) <= 100 and whole <= MAX_TOKENS:
        remedy += f' or set `skills.budget = "{share}%"`, the share of the context window that shows them all'
    elif (report.limit, report.unit) != (MAX_TOKENS, "tokens"):
        remedy += " or raise `skills.max_context_tokens`"
    warnings: list[str] = []
    if shortened:
        cut, whole = sum(share.length - share.shown for share in shortened), sum(share.length for share in shortened)
        warnings.append(
            f"{_count(len(shortened), 'skill description')} shortened for the model, by {cut:,} of {whole:,} "
            f"characters: {budget}; to make room {remedy}"
        )
    if missing:
        warnings.append(f"{_count(missing, 'skill')} left out of what the model is told: {budget}; {remedy}")
    return tuple(warnings)


def _count(number: int, noun: str) -> str:
    return f"1 {noun} was" if number == 1 else f"{number:,} {noun}s were"


def _description(skill: Skill) -> str:
    text = _clean(skill.description)
    return text if len(text) <= _MAX_DESCRIPTION else f"{text[: _MAX_DESCRIPTION - 3]}..."


def _clean(text: str) -> str:
    """One line without hidden characters that cannot end the block it is put into."""
    return re.sub(_OWN_TAG, "&lt;", sanitize_line(text)) if "<" in text else sanitize_line(text)


def _slashed(path: Path) -> str:
    return _clean(str(path).replace("\\", "/"))
