"""Repairs what a check of skills has found, as far as there is only one way to do it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from codex_py.skills.lint_finding import LintFinding
from codex_py.skills.scan import SKILL_FILE
from codex_py.text.frontmatter import YamlRefused, parse_yaml, repair_yaml, split_frontmatter

_WRITES: Final = re.compile(r"write `([^`]+)`")
_NAMES: Final = re.compile(r"(?:names|the field) `([^`]+)`")


def fix_findings(findings: Iterable[LintFinding]) -> list[LintFinding]:
    """Repair what can be repaired mechanically, as far as files can be written; the findings that were repaired."""
    fixed: list[LintFinding] = []
    renamed: dict[Path, Path] = {}
    for finding in findings:
        finding_now = finding._replace(path=renamed.get(finding.path, finding.path))
        try:
            if _fix(finding_now, renamed):
                fixed.append(finding)
        except (OSError, UnicodeError):
            continue
    return fixed


def _fix(finding: LintFinding, renamed: dict[Path, Path]) -> bool:
    is_inner = finding.path.name != SKILL_FILE
    if finding.path.is_symlink() or (is_inner and finding.path.parent.is_symlink()):
        return False  # What a link leads to may be no part of the skill.
    match finding.rule:
        case "executable":
            mode = finding.path.stat().st_mode
            # Executable for whoever may read it.
            finding.path.chmod(mode | ((mode & 0o444) >> 2))
            return True
        case "load" if finding.remedy == f"rename it to `{SKILL_FILE}`":
            return _rename(finding.path, renamed)
        case "field" if "could be repaired" in finding.message:
            return _quote_values(finding.path)
        case "field" | "missing-file" if _WRITES.search(finding.remedy):
            return _replace_word(finding)
        case _:
            return False


def _rename(path: Path, renamed: dict[Path, Path]) -> bool:
    target = path.with_name(SKILL_FILE)
    # On a file system without case the name is there: it is the file itself.
    if target.exists() and not target.samefile(path):
        return False
    path.rename(target)
    renamed[path] = target
    return True


def _quote_values(path: Path) -> bool:
    text = _read(path)
    block = split_frontmatter(text)
    if block is None:
        return False
    repaired = repair_yaml(block.yaml)
    try:
        parse_yaml(repaired)
    except YamlRefused:
        return False
    at = text.index(block.yaml)
    _write(path, text[:at] + repaired + text[at + len(block.yaml) :])
    return True


def _replace_word(finding: LintFinding) -> bool:
    """Write the right name in the line of the finding, in place of the wrong one."""
    new, old = _WRITES.search(finding.remedy), _NAMES.search(finding.message)
    if new is None or old is None:
        return False
    lines = _read(finding.path).splitlines(keepends=True)
    if not 1 <= finding.line <= len(lines):
        return False
    line = lines[finding.line - 1]
    pattern = rf"(?<![\w./-]){re.escape(old[1])}(?![\w/-])"
    changed = re.sub(pattern, lambda _: new[1], line, count=1)
    if changed == line:
        return False
    lines[finding.line - 1] = changed
    _write(finding.path, "".join(lines))
    return True


def _read(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def _write(path: Path, text: str) -> None:
    """Write beside the file, then put it in its place: a failure leaves the old text whole."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with draft.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
        draft.chmod(path.stat().st_mode & 0o777)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
