"""The report on the skills of a directory: what each says of itself and costs, put together with the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from codex_py.services.skill_admin import SkillAdmin, window_for
from codex_py.skills.lint import lint_file, says_when
from codex_py.skills.lint_references import LintFinding
from codex_py.skills.model import Skill
from codex_py.skills.overlaps import find_overlaps
from codex_py.skills.render import render_skills
from codex_py.skills.report import SkillAssessment, SkillFacts, judge_skills, read_records
from codex_py.skills.usage import read_entries
from codex_py.text.tokens import estimate_tokens

_CHARACTERS_PER_TOKEN: Final = 4


def report_on_skills(
    admin: SkillAdmin, *, since: float | None = None, period: str = ""
) -> tuple[tuple[SkillAssessment, ...], int]:
    """Judge every enabled skill by its own files and by its uses since a moment, the most used first.

    The second value counts the uses of skills that are not enabled in this directory.
    """
    skills = admin.catalog.enabled()
    records = read_records(read_entries(admin.request.home), since)
    here = {str(skill.canonical_path) for skill in skills}
    elsewhere = sum(record.uses for path, record in records.items() if path not in here)
    return judge_skills(_facts(admin, skills), records, period), elsewhere


def _facts(admin: SkillAdmin, skills: Sequence[Skill]) -> list[SkillFacts]:
    names = {str(skill.canonical_path): skill.name for skill in skills}
    overlaps = find_overlaps({str(skill.canonical_path): skill.description for skill in skills})
    lines = _line_tokens(admin)
    found: list[SkillFacts] = []
    for skill in skills:
        path = str(skill.canonical_path)
        size, count = _size_of(skill)
        found.append(
            SkillFacts(
                skill=skill,
                body_tokens=estimate_tokens(size),
                body_lines=count,
                line_tokens=lines.get(path, 0),
                says_when=says_when(skill.description),
                stale=tuple(finding for finding in _findings(skill) if finding.is_stale),
                overlaps=tuple(names[other] for other in overlaps.get(path, ())),
            )
        )
    return found


def _findings(skill: Skill) -> list[LintFinding]:
    try:
        return list(lint_file(skill.canonical_path))
    except OSError:
        return []


def _line_tokens(admin: SkillAdmin) -> dict[str, int]:
    """The tokens that each skill's line takes in the list that the model is sent."""
    use = render_skills(
        admin.catalog,
        context_window=window_for(admin),
        max_tokens=admin.loaded.config.skills.max_context_tokens,
    ).report
    unit = 1 if use.unit == "tokens" else _CHARACTERS_PER_TOKEN
    return {str(share.skill.canonical_path): -(-share.cost // unit) for share in use.shares}


def _size_of(skill: Skill) -> tuple[int, int]:
    """The bytes and the lines of a skill's text."""
    try:
        raw = skill.canonical_path.read_bytes()
    except OSError:
        return 0, 0
    return len(raw), raw.count(b"\n")
