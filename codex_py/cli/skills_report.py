"""`codex-py skills report`: a table, JSON or a page on how skills are used and whether they help."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from codex_py.cli.console import print_note, print_rows
from codex_py.cli.html_page import Bar, render_page, write_page
from codex_py.cli.skill_choice import Cwd, expanded, look_here
from codex_py.cli.skills_view import finding_object
from codex_py.cli.typer_command import Json, Overrides, Profile
from codex_py.errors import UsageError
from codex_py.services.skill_report import report_on_skills
from codex_py.skills.report import SkillAssessment, UseRecord, parse_since
from codex_py.skills.usage import WAYS
from codex_py.text.display import counted

_HEAD: Final = ("NAME", "USES", "BY", "TOKENS", "IN LIST", "COMPLETED", "SCRIPTS", "LAST USED", "VERDICT", "REASON")

_PAGE_HEAD: Final = (
    *("Skill", "Uses", "Tokens a use", "Tokens in the list", "Completed turns"),
    *("Scripts", "Last used", "Verdict", "Reason"),
)


def report_skills(
    since: Annotated[
        str | None, typer.Option("--since", metavar="SPAN", help="Only uses since then: 90d, 12h, 2w, or 2026-01-31.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with charts too.")] = None,
    cwd: Cwd = None,
    overrides: Overrides = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Show whether each skill helps: its uses and how they came, its tokens, how its turns ended, and a verdict.

    The verdicts are: keep, shorten, fix, stale, unused, overlaps with another one, never chosen by the model.
    """
    admin = look_here(cwd, overrides, profile)
    moment = None
    if since is not None and (moment := parse_since(since)) is None:
        raise UsageError(f"`--since` takes a time span or a date, not `{since}`", hint="such as `90d` or `2026-01-31`")
    assessments, elsewhere = report_on_skills(admin, since=moment, period=_period(since))
    if html is not None:
        write_page(expanded(html), _page(assessments, since))
    print_rows(_HEAD, map(_row, assessments), map(_object, assessments), as_json=as_json)
    if elsewhere:
        uses = counted(elsewhere, "use")
        print_note(f"{uses} of skills that are not enabled here are left out: see `codex-py skills usage`")
    if not assessments:
        print_note("no skills found")
    return 0


def _period(since: str | None) -> str:
    """How the time span is called in a sentence; a date is none."""
    return "" if since is None or "-" in since else since.strip()


def _object(entry: SkillAssessment) -> dict[str, Any]:
    skill, record = entry.facts.skill, entry.record
    return {
        "name": skill.name,
        "scope": skill.scope,
        "path": str(skill.path),
        "uses": record.uses,
        "ways": {way: record.ways.get(way, 0) for way in WAYS},
        "tokens": entry.tokens,
        "tokens_in_list": entry.facts.line_tokens,
        "outcomes": dict(record.outcomes),
        "completed": None if record.completed is None else round(record.completed, 3),
        "script_runs": len(record.exits),
        "script_failures": record.failing,
        "last_used": record.last_used or None,
        "repositories": sorted(record.projects),
        "findings": [finding_object(finding) for finding in entry.facts.stale],
        "verdict": entry.verdict,
        "reason": entry.reason,
    }


def _row(entry: SkillAssessment) -> tuple[str, ...]:
    record = entry.record
    return (
        entry.facts.skill.name,
        str(record.uses),
        _ways(record),
        f"{entry.tokens:,}",
        f"{entry.facts.line_tokens:,}",
        _completed(record),
        _scripts(record),
        record.last_used[:10],
        entry.verdict,
        entry.reason,
    )


def _ways(record: UseRecord) -> str:
    return ", ".join(f"{count} {way}" for way, count in record.ways.items()) or "-"


def _completed(record: UseRecord) -> str:
    return "-" if record.completed is None else f"{record.completed:.0%}"


def _scripts(record: UseRecord) -> str:
    return f"{record.failing} of {len(record.exits)} failed" if record.exits else "-"


def _page(assessments: Sequence[SkillAssessment], since: str | None) -> str:
    most_uses = max((entry.record.uses for entry in assessments), default=0)
    most_tokens = max((entry.tokens for entry in assessments), default=0)
    rows: list[list[str | Bar]] = []
    for entry in assessments:
        record = entry.record
        ways = tuple((way, float(record.ways.get(way, 0))) for way in WAYS)
        share = (("completed", record.completed or 0.0),)
        rows.append(
            [
                entry.facts.skill.name,
                Bar(ways, most_uses, f"{record.uses}: {_ways(record)}" if record.uses else "0"),
                Bar((("tokens", float(entry.tokens)),), most_tokens, f"{entry.tokens:,}"),
                f"{entry.facts.line_tokens:,}",
                Bar(share, 1.0, _completed(record)),
                _scripts(record),
                record.last_used[:10] or "never",
                entry.verdict,
                entry.reason,
            ]
        )
    notes = [f"Uses since {since}." if since else "All uses on record.", f"The colours are: {', '.join(WAYS)}."]
    return render_page("Skills", notes, _PAGE_HEAD, rows)
