"""The output of `codex-py skills`: tables for people, and JSON with stable fields.

Names, paths and texts come from others, so they pass the sanitizer; JSON is plain ASCII.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from codex_py.cli.console import aligned, print_json, print_table
from codex_py.skills.dependencies import SkillNeed
from codex_py.skills.doctor import Examination
from codex_py.skills.lint_references import LintFinding
from codex_py.skills.model import Skill, SkillCatalog, SkillProblem
from codex_py.skills.parse import SkillRefused, read_skill_text
from codex_py.skills.render import BudgetUse
from codex_py.skills.rules import SkillSwitch, decisions
from codex_py.skills.search_index import FoundSkill
from codex_py.text.display import first_names
from codex_py.text.sanitize import sanitize, sanitize_line
from codex_py.text.tokenizer import count_tokens

_MAX_FILES: Final = 200
_MAX_NAMES: Final = 20


def print_list(catalog: SkillCatalog, rules: Sequence[SkillSwitch], *, as_json: bool) -> None:
    """Print every skill with the layer that switched it on or off, then the files that were not loaded or ignored."""
    decided = decisions(catalog.skills, rules)
    if as_json:
        print_json(
            {
                "skills": [
                    {**_skill_object(skill, catalog), "decided_by": _rule_object(decided.get(skill.canonical_path))}
                    for skill in catalog.skills
                ],
                "not_loaded": [_problem_object(problem) for problem in catalog.problems],
                "ignored": [_problem_object(problem) for problem in catalog.remarks],
                "notes": list(catalog.notes),
            },
        )
        return
    rows = [
        (
            skill.name,
            skill.scope,
            _yes(catalog.is_enabled(skill)),
            *([_layer_of(decided.get(skill.canonical_path))] if decided else []),
            _yes(skill.allow_implicit),
            str(skill.path),
        )
        for skill in catalog.skills
    ]
    by = ("DECIDED BY",) if decided else ()
    print_table(("NAME", "SCOPE", "ENABLED", *by, "IMPLICIT", "PATH"), rows)
    _print_problems("not loaded", catalog.problems, spaced=bool(rows))
    _print_problems("ignored", catalog.remarks, spaced=bool(rows or catalog.problems))


def print_skills(
    skills: Sequence[Skill], catalog: SkillCatalog, needs: Sequence[SkillNeed], *, model: str, as_json: bool
) -> None:
    """Print everything about each skill, with its `SKILL.md` and the tokens it takes for a model.

    `needs` are those of all of them.
    """
    if as_json:
        print_json([_whole_object(skill, catalog, needs, model) for skill in skills])
        return
    for number, skill in enumerate(skills):
        if number:
            print()
        content = _content(skill)
        facts = [(label, value) for label, value in _facts(skill, catalog, needs) if value]
        facts.append(("tokens", count_tokens(content, model).in_words()))
        width = max(len(label) for label, _ in facts)
        for label, value in facts:
            print(f"{label + ':':<{width + 1}}  {sanitize_line(value)}")
        print(f"\n{sanitize(content).rstrip()}")


def print_examination(examination: Examination, orphans: Sequence[tuple[str, str]], *, as_json: bool) -> None:
    """Print the findings of the doctor; `orphans` are servers, each with the reason why no skill needs it."""
    if as_json:
        print_json(
            {
                **_examination_object(examination),
                "orphans": [{"name": name, "reason": reason} for name, reason in orphans],
            }
        )
        return
    counts = {root: 0 for root in examination.roots}
    for share in examination.budget.shares:
        counts[share.skill.root] = counts.get(share.skill.root, 0) + 1
    rows = [(f"{number} listed", root.scope, str(root.path)) for root, number in counts.items()]
    _print_section("directories searched, in this order", aligned(rows))
    loaded = [
        (verdict.name or "", verdict.reason, str(verdict.path)) for verdict in examination.verdicts if verdict.loaded
    ]
    _print_section("loaded", aligned(loaded))
    others = [f"{verdict.path}: {verdict.reason}" for verdict in examination.verdicts if not verdict.loaded]
    _print_section("not loaded", others)
    clashes = [f"`{clash.name}`: {', '.join(map(str, clash.paths))}" for clash in examination.clashes]
    _print_section("names of several skills, to be mentioned as [$name](path)", clashes)
    _print_section("ignored", [f"{verdict.path}: {verdict.message}" for verdict in examination.remarks])
    _print_section("to be known", examination.notes)
    orphaned = [f"`{name}`: {reason}" for name, reason in orphans]
    _print_section("MCP servers that no skill needs any more, which `--fix` removes", orphaned)
    _print_section("the list for the model", _budget_lines(examination.budget))


def print_findings(findings: Sequence[LintFinding], *, as_json: bool) -> None:
    """Print a line for each finding, errors first for each skill."""
    if as_json:
        print_json([finding_object(finding) for finding in findings])
        return
    for finding in findings:
        remedy = f" ({finding.remedy})" if finding.remedy and finding.remedy not in finding.message else ""
        at = f"{finding.path}:{finding.line}"
        print(sanitize_line(f"{finding.level}: {at}: {finding.message}{remedy}"))


def finding_object(finding: LintFinding) -> dict[str, Any]:
    """A finding as JSON."""
    return {
        "level": finding.level,
        "path": str(finding.path),
        "file": str(finding.path),
        "line": finding.line,
        "rule": finding.rule,
        "message": finding.message,
        "remedy": finding.remedy,
    }


def print_found(entries: Sequence[FoundSkill], *, as_json: bool) -> None:
    """Print skills with their best passages, or the passages of one skill, the best first."""
    if as_json:
        print_json(
            [
                {
                    **found._asdict(),
                    "skill": found.skill.name,
                    "path": found.path,
                    "text": found.text(),
                    "file": str(found.skill.path),
                    "scope": found.skill.scope,
                }
                for found in entries
            ]
        )
        return
    for number, found in enumerate(entries):
        where = f"{found.path}:{found.start_line}-{found.end_line}"
        print(("\n" if number else "") + sanitize_line(f"{found.skill.name}  {where}  {found.score:.3f}"))
        print(found.text().rstrip())


def _print_problems(title: str, problems: Sequence[SkillProblem], *, spaced: bool) -> None:
    if problems:
        print("\n" * spaced + f"{title}:")
    for problem in problems:
        print(sanitize_line(f"  {problem.path}: {problem.message}"))


def _print_section(title: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    print(f"{title}:")
    for line in lines:
        print(f"  {sanitize_line(line)}")
    print()


def _budget_lines(use: BudgetUse) -> list[str]:
    shares = use.shares
    if not shares:
        return ["empty: no skill is listed for the model"]
    missing = [share.skill.name for share in shares if not share.listed]
    cut = sum(share.length - share.shown for share in shares if share.listed)
    lines = [f"{use.used:,} of {use.limit:,} {use.unit} for {len(shares) - len(missing)} of {len(shares)} skills"]
    if cut:
        lines.append(f"{cut:,} characters of descriptions do not fit")
    if missing:
        lines.append(f"left out: {first_names(missing, _MAX_NAMES)}")
    largest = sorted(shares, key=lambda share: -share.cost)[:5]
    lines.append("the largest: " + ", ".join(f"{share.skill.name} ({share.cost})" for share in largest))
    return lines


def _facts(skill: Skill, catalog: SkillCatalog, needs: Sequence[SkillNeed]) -> Iterator[tuple[str, str]]:
    interface = skill.interface
    yield "name", skill.name
    yield "description", skill.description
    yield "short", skill.short or ""
    yield "shown as", (interface.display_name or "") if interface else ""
    yield "prompt", (interface.default_prompt or "") if interface else ""
    yield "scope", skill.scope
    yield "enabled", _yes(catalog.is_enabled(skill))
    yield "implicit", "yes" if skill.allow_implicit else "no: used only when it is mentioned"
    yield "in menus", "" if skill.user_invocable else "no"
    yield "path", str(skill.path)
    yield "real path", "" if skill.canonical_path == skill.path else str(skill.canonical_path)
    yield "plugin", skill.plugin_id or ""
    yield "tools", ", ".join(skill.allowed_tools)
    for need in needs:
        if need.path == str(skill.path):
            where = f" ({need.target})" if need.target else ""
            yield "needs", f"{need.kind} {need.name}{where}: {need.status}"
    names = _files(skill)
    more = " …" if len(names) == _MAX_FILES else ""
    yield "files", ", ".join(names) + more


def _files(skill: Skill) -> list[str]:
    """The files beside the `SKILL.md`, links and hidden ones left out, and at most 200."""
    return list(islice(_walk(skill.directory, ""), _MAX_FILES))


def _walk(directory: Path, prefix: str, depth: int = 0) -> Iterator[str]:
    try:
        with os.scandir(directory) as found:
            entries = sorted(islice(found, 10 * _MAX_FILES), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            # A directory with a `SKILL.md` belongs to another skill.
            if depth < 4 and not Path(entry.path, "SKILL.md").exists():
                yield from _walk(Path(entry.path), f"{prefix}{entry.name}/", depth + 1)
        elif entry.is_file(follow_symlinks=False) and f"{prefix}{entry.name}" != "SKILL.md":
            yield f"{prefix}{entry.name}"


def _content(skill: Skill) -> str:
    try:
        return read_skill_text(skill.canonical_path, skill.root.inside)
    except SkillRefused as error:
        return f"({error})"


def _skill_object(skill: Skill, catalog: SkillCatalog) -> dict[str, Any]:
    return {
        "name": skill.name,
        "description": skill.description,
        "short_description": skill.short,
        "scope": skill.scope,
        "path": str(skill.path),
        "canonical_path": str(skill.canonical_path),
        "enabled": catalog.is_enabled(skill),
        "implicit": skill.allow_implicit,
        "user_invocable": skill.user_invocable,
        "plugin": skill.plugin_id,
    }


def _rule_object(rule: SkillSwitch | None) -> dict[str, Any] | None:
    if rule is None:
        return None
    return {"layer": rule.layer, "file": str(rule.file) if rule.file else None, "rule": f"skills.{rule.key}"}


def _layer_of(rule: SkillSwitch | None) -> str:
    return f"{rule.layer} (skills.{rule.key})" if rule else "default"


def _whole_object(skill: Skill, catalog: SkillCatalog, needs: Sequence[SkillNeed], model: str) -> dict[str, Any]:
    content = _content(skill)
    count = count_tokens(content, model)
    interface = vars(skill.interface) if skill.interface else {}
    return {
        **_skill_object(skill, catalog),
        "interface": {name: value if value is None else str(value) for name, value in interface.items()} or None,
        "dependencies": [need._asdict() for need in skill.dependencies],
        "needs": [{**vars(need), "status": need.status} for need in needs if need.path == str(skill.path)],
        "allowed_tools": list(skill.allowed_tools),
        "files": _files(skill),
        "tokens": count.tokens,
        "tokens_estimated": count.estimated,
        "content": content,
    }


def _problem_object(problem: SkillProblem) -> dict[str, Any]:
    return {"path": str(problem.path), "scope": problem.scope, "reason": problem.message}


def _examination_object(examination: Examination) -> dict[str, Any]:
    use = examination.budget
    return {
        "roots": [{"path": str(root.path), "scope": root.scope} for root in examination.roots],
        "files": [
            {"path": str(verdict.path), "loaded": verdict.loaded, "name": verdict.name, "reason": verdict.reason}
            for verdict in examination.verdicts
        ],
        "name_clashes": [
            {"name": verdict.name, "paths": list(map(str, verdict.paths))} for verdict in examination.clashes
        ],
        "ignored": [_problem_object(problem) for problem in examination.remarks],
        "notes": list(examination.notes),
        "budget": {
            "unit": use.unit,
            "limit": use.limit,
            "used": use.used,
            "skills": [
                {
                    "name": share.skill.name,
                    "path": str(share.skill.path),
                    "listed": share.listed,
                    "cost": share.cost,
                    "description_shown": share.shown,
                    "description_length": share.length,
                }
                for share in use.shares
            ],
        },
    }


def _yes(value: bool) -> str:
    return "yes" if value else "no"
