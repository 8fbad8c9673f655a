"""`codex-py skills report`: a table, JSON or a page on how skills are used and whether they help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from codex_py.cli.console import print_note, print_rows
from codex_py.cli.html_page import write_page
from codex_py.cli.skill_choice import Cwd, expanded, look_here
from codex_py.cli.skills_view import finding_object
from codex_py.cli.typer_command import Json, Overrides, Profile, Since, read_since
from codex_py.protocol.value import Value
from codex_py.services.skill_admin import SkillAdmin, list_tokens, model_for, window_for
from codex_py.skills.lint import lint_file, says_when
from codex_py.skills.lint_references import LintFinding
from codex_py.skills.overlaps import find_overlaps
from codex_py.skills.render import render_skills
from codex_py.skills.report import SkillFacts, UseRecord, judge, read_records, tokens_of_a_use
from codex_py.skills.usage import WAYS, read_entries
from codex_py.text.display import counted
from codex_py.text.tokenizer import TokenCount, count_tokens

_HEAD: Final = ("NAME", "USES", "BY", "TOKENS", "IN LIST", "COMPLETED", "SCRIPTS", "LAST USED", "VERDICT", "REASON")


class ReportRow(Value):
    """One skill of the report."""

    name: str
    scope: str
    path: str
    record: UseRecord
    tokens: TokenCount
    """The tokens of one use."""
    tokens_in_list: int
    """The tokens of its line in the list for the model; 0 when it is not listed."""
    findings: tuple[LintFinding, ...]
    verdict: str
    reason: str

    def cells(self) -> tuple[str, ...]:
        """The columns of the table."""
        record = self.record
        ways = ", ".join(f"{record.ways[way]} {way}" for way in WAYS if record.ways[way])
        completed = "-" if record.completed is None else f"{record.completed:.0%}"
        scripts = f"{record.failing} of {len(record.exits)} failed" if record.exits else "-"
        costs = (self.tokens.in_words(), TokenCount(self.tokens_in_list, True).in_words())
        ends = (completed, scripts, record.last_used[:10], self.verdict, self.reason)
        return (self.name, str(record.uses), ways or "-", *costs, *ends)

    def as_object(self) -> dict[str, Any]:
        """The object of `--json`."""
        record = self.record
        return {
            "name": self.name,
            "scope": self.scope,
            "path": self.path,
            "uses": record.uses,
            "explicit": record.explicit,
            "implicit": record.uses - record.explicit,
            "ways": {way: record.ways[way] for way in WAYS},
            "tokens": self.tokens.tokens,
            "tokens_estimated": self.tokens.estimated,
            "tokens_in_list": self.tokens_in_list,
            "outcomes": dict(record.outcomes),
            "completed": None if record.completed is None else round(record.completed, 3),
            "script_runs": len(record.exits),
            "script_failures": record.failing,
            "last_used": record.last_used or None,
            "repositories": sorted(record.projects),
            "findings": [finding_object(finding) for finding in self.findings],
            "verdict": self.verdict,
            "reason": self.reason,
        }


def report_skills(
    since: Since = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with bars too.")] = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Also used skills that are not enabled here.")] = False,
    cwd: Cwd = None,
    overrides: Overrides = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Show whether each skill helps: its uses and how they came, its tokens, how its turns ended, and a verdict.

    The verdicts are: keep, shorten, fix, stale, unused, overlaps with another one, never chosen by the model.
    """
    start = read_since(since)
    admin = look_here(cwd, overrides, profile)
    records = read_records(read_entries(admin.request.home), max(0.0, start.timestamp()) if start else None)
    rows = list(_rows(admin, records, since.strip() if since and since[0].isdigit() and "-" not in since else ""))
    here = {row.path for row in rows}
    elsewhere = {path: record for path, record in records.items() if path not in here}
    if everywhere:
        rows += [_row_of_elsewhere(path, record) for path, record in elsewhere.items()]
    elif elsewhere:
        uses = counted(sum(record.uses for record in elsewhere.values()), "use")
        print_note(f"{uses} of skills that are not enabled here are left out: `--all` shows them")
    rows.sort(key=lambda row: (-row.record.uses, row.name))
    if html is not None:
        note = f"Uses since {since}." if since else "All uses on record."
        write_page(
            expanded(html), "Skills", [note], map(str.capitalize, _HEAD), (row.cells() for row in rows), _bars(rows)
        )
    print_rows(_HEAD, (row.cells() for row in rows), (row.as_object() for row in rows), as_json=as_json)
    if not rows:
        print_note("no skills found")
    return 0


def show_usage(as_json: Json = False) -> int:
    """Another name of `codex-py skills report --all`."""
    print_note("`skills usage` is now `codex-py skills report --all`")
    return report_skills(everywhere=True, as_json=as_json)


def _rows(admin: SkillAdmin, records: dict[str, UseRecord], period: str) -> Iterator[ReportRow]:
    """A row for each enabled skill."""
    model = model_for(admin)
    skills = {str(skill.canonical_path): skill for skill in admin.catalog.enabled()}
    overlaps = find_overlaps({path: skill.description for path, skill in skills.items()})
    window = window_for(admin)
    listed = render_skills(admin.catalog, context_window=window, max_tokens=list_tokens(admin, window)).report
    unit = 1 if listed.unit == "tokens" else 4  # characters
    costs = {str(share.skill.canonical_path): -(-share.cost // unit) for share in listed.shares}
    for path, skill in skills.items():
        try:
            raw, findings = Path(path).read_bytes(), tuple(lint_file(Path(path)))
        except OSError:
            raw, findings = b"", ()
        stale = tuple(finding for finding in findings if finding.is_stale)
        body = count_tokens(raw.decode("utf-8", "replace"), model)
        facts = SkillFacts(
            skill.name,
            body_tokens=body.tokens,
            body_lines=raw.count(b"\n"),
            allow_implicit=skill.allow_implicit,
            says_when=says_when(skill.description),
            stale=tuple(f"{finding.path.name}:{finding.line}: {finding.message}" for finding in stale),
            overlaps=tuple(skills[other].name for other in overlaps.get(path, ())),
        )
        record = records.get(path, UseRecord())
        tokens = TokenCount(tokens_of_a_use(facts, record), body.estimated or bool(record.tokens))
        cost = costs.get(path, 0)
        yield ReportRow(skill.name, skill.scope, path, record, tokens, cost, stale, *judge(facts, record, period))


def _row_of_elsewhere(path: str, record: UseRecord) -> ReportRow:
    tokens = TokenCount(round(record.tokens / record.uses), True)
    return ReportRow(
        record.name, record.scope, path, record, tokens, 0, (), "not here", f"`{path}` is not enabled here"
    )


def _bars(rows: Sequence[ReportRow]) -> list[dict[int, float]]:
    """The bars of the page, by column: uses, tokens, and how many of its turns were completed."""
    most_uses = max((row.record.uses for row in rows), default=0) or 1
    most_tokens = max((row.tokens.tokens for row in rows), default=0) or 1
    return [
        {1: row.record.uses / most_uses, 3: row.tokens.tokens / most_tokens, 5: row.record.completed or 0.0}
        for row in rows
    ]
