"""Edits that repair what a check of skills has found, where there is only one way to do it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.replace_file import replace_file
from codex_py.skills.lint_references import LintFinding
from codex_py.skills.scan import SKILL_FILE
from codex_py.text.frontmatter import YamlRefused, parse_yaml, repair_yaml, split_frontmatter

_WRITES: Final = re.compile(r"write `([^`]+)`")
_NAMES: Final = re.compile(r"(?:names|the field) `([^`]+)`")


class SkillEdit(NamedTuple):
    """The planned changes of one file of a skill."""

    path: Path
    changes: tuple[str, ...]
    """Each change in a line of words."""
    text: str
    """The whole file afterwards."""
    new_path: Path
    """Another name where the file is to be renamed, else `path`."""


def plan_edits(findings: Iterable[LintFinding]) -> list[SkillEdit]:
    """The edits that some findings lead to, one a file. A file behind a link may be no part of the skill and stays."""
    by_path: dict[Path, list[LintFinding]] = {}
    for finding in findings:
        by_path.setdefault(finding.path, []).append(finding)
    edits: list[SkillEdit] = []
    for path, found in by_path.items():
        is_inner = path.name.lower() != SKILL_FILE.lower()
        if path.is_symlink() or (is_inner and path.parent.is_symlink()):
            continue
        try:
            with path.open(encoding="utf-8", newline="") as file:
                before = text = file.read()
        except (OSError, UnicodeError):
            continue
        changes: list[str] = []
        new_path = path
        for finding in found:
            edited = _edit(text, finding)
            if edited != text:
                changes.append(f"line {finding.line}: {finding.message}: {finding.remedy}")
                text = edited
            elif not is_inner and finding.remedy == f"rename it to `{SKILL_FILE}`" and _is_free(path):
                changes.append(finding.remedy)
                new_path = path.with_name(SKILL_FILE)
        if text != before or new_path != path:
            edits.append(SkillEdit(path, tuple(changes), text, new_path))
    return edits


def apply_edit(edit: SkillEdit) -> None:
    """Write the file, and rename it. A failure leaves the old text whole. Raises `OSError`."""
    replace_file(edit.path, edit.text.encode(), mode=edit.path.stat().st_mode & 0o777)
    if edit.new_path != edit.path:
        edit.path.rename(edit.new_path)


def _is_free(path: Path) -> bool:
    """Whether the right name is free; on a file system without case it is the file itself."""
    target = path.with_name(SKILL_FILE)
    return not target.exists() or target.samefile(path)


def _edit(text: str, finding: LintFinding) -> str:
    """The text with one finding repaired; unchanged where that cannot be done mechanically."""
    if "could be repaired" in finding.message:
        return _quote_values(text)
    new, old = _WRITES.search(finding.remedy), _NAMES.search(finding.message)
    lines = text.splitlines(keepends=True)
    if new is None or old is None or not 1 <= finding.line <= len(lines):
        return text
    pattern = rf"(?<![\w./-])(?:\./)?{re.escape(old[1])}(?![\w/-])"
    lines[finding.line - 1] = re.sub(pattern, lambda _: new[1], lines[finding.line - 1], count=1)
    return "".join(lines)


def _quote_values(text: str) -> str:
    block = split_frontmatter(text)
    if block is None:
        return text
    repaired = repair_yaml(block.yaml)
    try:
        parse_yaml(repaired)
    except YamlRefused:
        return text
    at = text.index(block.yaml)
    return text[:at] + repaired + text[at + len(block.yaml) :]
