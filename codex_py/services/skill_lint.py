"""Checking skills with what is around them: their install records, and the descriptions of their neighbours."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from codex_py.errors import CodexError
from codex_py.paths import user_home
from codex_py.services.skill_trust import consent_check
from codex_py.skills.lint import field_lines, lint_file, skill_files
from codex_py.skills.lint_references import LintFinding
from codex_py.skills.model import SkillRoot
from codex_py.skills.overlaps import find_overlaps
from codex_py.skills.parse import SkillRefused, parse_skill, read_skill_text

_MAX_NEIGHBOURS = 500


def lint_skills(paths: Sequence[Path], home: Path, env: Mapping[str, str]) -> tuple[LintFinding, ...]:
    """The findings about the skills of some paths, errors first; `home` is CODEX_HOME. Raises `UsageError`."""
    files = list(dict.fromkeys(file for path in paths for file in skill_files(path)))
    found = [finding for file in files for finding in lint_file(file)]
    found += [*_held_back(files, home, env), *_overlaps(files)]
    return tuple(sorted(found, key=lambda finding: (finding.level != "error", str(finding.path.parent))))


def _held_back(files: Sequence[Path], home: Path, env: Mapping[str, str]) -> Iterator[LintFinding]:
    """A finding for each installed skill that is kept from loading until it is agreed to."""
    real = {Path(os.path.realpath(file.parent)): file for file in files}
    check = consent_check(home, env)
    own = Path(os.path.realpath(user_home(env) / ".agents" / "skills"))
    for root in dict.fromkeys(directory.parent for directory in real):
        is_own = root.is_relative_to(os.path.realpath(home)) or root == own
        for state in check.states(SkillRoot(root, "user" if is_own else "repo", "agents")):
            held = [directory for directory in real if directory.is_relative_to(state.directory)]
            for directory in held if state.is_held else ():
                remedy = "restore the files with `codex-py skills sync`, or agree to them with `skills update --accept`"
                yield LintFinding("error", real[directory], state.message, "held", 1, remedy)


def _overlaps(files: Sequence[Path]) -> Iterator[LintFinding]:
    """Skills whose descriptions say nearly the same, among those that are checked and their neighbours."""
    shown = {file.absolute(): file for file in files}
    described: dict[str, str] = {}
    names: dict[str, str] = {}
    for path in sorted({*shown, *(path for file in shown for path in _neighbours(file))}):
        try:
            skill = parse_skill(read_skill_text(path, None))
        except SkillRefused:
            continue
        described[str(path)], names[str(path)] = skill.description, skill.name
    overlaps = find_overlaps(described)
    for path, file in shown.items():
        for other in overlaps.get(str(path), ())[:1]:
            message = f"the description is nearly that of `{names[other]}`: the model cannot tell them apart"
            line = field_lines(read_skill_text(file, None)).get("description", 1)
            remedy = "say in both what the other is not for, or make one skill of them"
            yield LintFinding("advice", file, message, "overlap", line, remedy)


def _neighbours(file: Path) -> Sequence[Path]:
    try:
        return skill_files(file.parent.parent)[:_MAX_NEIGHBOURS]
    except (CodexError, OSError):
        return ()
