"""Shows people a skill before it is installed or updated. Nothing of it is run.

Texts and names come from others, so every line passes the sanitizer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.cli.console import print_json, print_note, print_rows
from codex_py.services.skill_install import SourceSkill, StagedSkill
from codex_py.services.skill_origins import InstalledSkill, capability_lines, tree_diff
from codex_py.skills.capabilities import Capabilities
from codex_py.skills.lint import lint
from codex_py.skills.parse import parse_skill, read_skill_text
from codex_py.skills.records import InstallRecord
from codex_py.skills.tree import TreeFile, read_file
from codex_py.text.sanitize import sanitize

_MAX_FILES: Final = 60
_MAX_LINES: Final = 40
_MAX_CHARS: Final = 160
_MAX_DESCRIPTION: Final = 400
_MAX_SEARCHED: Final = 1024 * 1024
# Patterns that a person should look at; each may be harmless.
_SIGNS: Final = (
    ("downloads and runs", re.compile(r"(curl|wget)\b[^\n|]{0,300}\|\s*(sudo\s+)?(ba|z)?sh\b")),
    ("encoded payload", re.compile(r"base64\s+(-d|--decode)|b64decode|atob\(|[A-Za-z0-9+/]{400}")),
    ("raises its rights", re.compile(r"\bsudo\b|danger-full-access|--dangerously|bypass[-_ ]approvals")),
    ("deletes", re.compile(r"\brm\s+-[a-z]*r[a-z]*f|\brm\s+-[a-z]*f[a-z]*r|shutil\.rmtree|\bmkfs\b|\bdd\s+if=")),
    ("reads secrets", re.compile(r"~/\.(ssh|aws|gnupg|netrc|kube)|id_rsa|auth\.json|printenv")),
    ("addresses the agent", re.compile(r"(?i)(ignore|disregard|forget)\s+(all|any|previous|prior|earlier)\b")),
    ("addresses the agent", re.compile(r"(?i)do not (tell|inform|mention)[^\n]{0,20}\buser|without (asking|telling)")),
    ("changes start-up files", re.compile(r"\.(ba|z)shrc|crontab|LaunchAgents|systemctl\s+enable")),
    (
        "invisible characters",
        re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\U000e0000-\U000e007f]"),
    ),
)


def staged_lines(staged: StagedSkill) -> Iterator[str]:
    """The lines about a new skill: source, files, capabilities, findings."""
    skill = parse_skill(read_skill_text(staged.directory / "SKILL.md", None))
    yield f"skill `{staged.name}`: {skill.description[:_MAX_DESCRIPTION]}"
    yield f"  from: {origin(staged.record)}"
    total = sum(file.size for file in staged.files)
    yield f"  files: {len(staged.files)}, {total} bytes"
    yield from _some([f"{file.path}  {file.size}" for file in staged.files], _MAX_FILES)
    for noun, values in _named(staged.record.declared):
        yield f"  {noun}: {', '.join(values[:_MAX_LINES])}" + (" …" if len(values) > _MAX_LINES else "")
    signs = list(_signs(staged.directory, staged.files))
    if signs:
        yield "  worth a look (found by pattern, may be harmless):"
        yield from _some(signs, _MAX_LINES)
    findings = lint(staged.directory)
    if findings:
        yield "  lint:"
        shown = [f"{found.level}: {found.path.relative_to(staged.directory)}: {found.message}" for found in findings]
        yield from _some(shown, _MAX_LINES)


def summary(declared: Capabilities) -> str:
    """Capabilities in one line."""
    return "; ".join(f"{noun}: {', '.join(values)}" for noun, values in _named(declared)) or "text alone"


def _named(declared: Capabilities) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The capabilities by sort, without the sorts that are empty."""
    sorts = (
        ("scripts", declared.scripts),
        ("MCP servers", declared.servers),
        ("environment variables", declared.env_vars),
        ("allowed tools", declared.allowed_tools),
    )
    yield from ((noun, values) for noun, values in sorts if values)


def show_update(installed: InstalledSkill, staged: StagedSkill) -> None:
    """Print what an update changes: the capabilities, then the text."""
    print_note(f"skill `{staged.name}`: {origin(installed.record)} -> {origin(staged.record)}")
    lines = capability_lines(installed.record.declared, staged.record.declared)
    diff = sanitize(tree_diff(installed.directory, staged.directory)).splitlines()
    print_note(*(f"  {line}" for line in (*(lines or ["no change of its capabilities"]), *diff)))


def origin(record: InstallRecord) -> str:
    """Where a skill came from, in one line."""
    parts = [record.source]
    if record.path:
        parts.append(f"directory `{record.path}`")
    if record.ref:
        parts.append(f"at `{record.ref}`")
    if record.commit:
        parts.append(f"commit {record.commit[:12]}")
    return ", ".join(parts)


def print_behind(behind: Sequence[tuple[InstalledSkill, SourceSkill]], *, as_json: bool) -> None:
    """Print the skills whose source has another version."""
    rows = [(each.name, each.scope, each.record.date or "-", origin(each.record)) for each, _ in behind]
    records = (installed_record(each) for each, _ in behind)
    print_rows(("SKILL", "SCOPE", "INSTALLED", "SOURCE"), rows, records, as_json=as_json)
    if not (behind or as_json):
        print_note("no skill is behind its source")


def print_installed(installed: Sequence[InstalledSkill], *, as_json: bool) -> None:
    """Print the installed skills with their sources."""
    if as_json:
        print_json([installed_record(each, edited=each.is_edited) for each in installed])
        return
    for each in installed:
        edited = "; edited since" if each.is_edited else "" if each.directory.is_dir() else "; its files are gone"
        print(sanitize(f"{each.name}  ({each.scope})  {each.directory}\n  from {origin(each.record)}{edited}"))
    if not installed:
        print_note("no skills are installed from a source")


def installed_record(installed: InstalledSkill, **more: Any) -> dict[str, Any]:
    """An installed skill as JSON."""
    fields = installed.record.replace(pending=None).as_json()
    return {"name": installed.name, "scope": installed.scope, "path": str(installed.directory), **fields, **more}


def _signs(directory: Path, files: Sequence[TreeFile]) -> Iterator[str]:
    for file in files:
        content = read_file(directory, file)
        if b"\0" in content[:8192]:
            yield f"{file.path}: not text"
            continue
        if len(content) > _MAX_SEARCHED:
            yield f"{file.path}: too large to be searched"
            continue
        for number, line in enumerate(content.decode("utf-8", "replace").split("\n"), 1):
            sign = next((sign for sign, pattern in _SIGNS if pattern.search(line[:5000])), None)
            if sign:
                yield f"{file.path}:{number}: {sign}: {line.strip()[:_MAX_CHARS]}"


def _some(lines: Sequence[str], limit: int) -> Iterator[str]:
    yield from (f"    {line}" for line in lines[:limit])
    if len(lines) > limit:
        yield f"    … and {len(lines) - limit} more"
