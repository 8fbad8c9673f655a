"""Checks skills before they are used: what keeps one from loading, and what would make it work better."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from codex_py.errors import UsageError
from codex_py.skills.dependencies import dependency_fault
from codex_py.skills.front_matter import KEYS
from codex_py.skills.lint_references import LintFinding, LintRule, check_references
from codex_py.skills.mentions import NAME, find_mentions
from codex_py.skills.parse import (
    MAX_DESCRIPTION_CHARS,
    SkillRefused,
    SkillText,
    parse_skill,
    read_record,
    read_skill_text,
)
from codex_py.skills.record import FoundFile
from codex_py.skills.scan import SKILL_FILE
from codex_py.skills.spec import odd_metadata
from codex_py.text.frontmatter import YamlRefused, parse_yaml, repair_yaml, split_frontmatter
from codex_py.text.nearest import nearest

_SHORT_DESCRIPTION: Final = 40
_LONG_DESCRIPTION: Final = 400
_MAX_BODY_BYTES: Final = 256 * 1024
_LONG_BODY_LINES: Final = 500
_MAX_SCRIPTS: Final = 200
_PARSE_SECONDS: Final = 5.0
# How a script is parsed without running it; Python is parsed here.
_PARSERS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys((".sh", ".bash"), ("bash", "-n")),
    **dict.fromkeys((".js", ".mjs", ".cjs"), ("node", "--check")),
}
_LINE: Final = re.compile(r"\bline (\d{1,6})\b|:(\d{1,6})(?::|$)", re.MULTILINE)
# The Agent Skills format allows these names.
_STANDARD: Final = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_WHEN: Final = re.compile(r"\b(when|whenever|if|for|before|after|to|on)\b", re.IGNORECASE)
# Without the words that often mean something else.
_CLEARLY_WHEN: Final = re.compile(r"\b(when|whenever|if|before|after|asks?|wants?|needs?)\b", re.IGNORECASE)


def lint(path: Path) -> tuple[LintFinding, ...]:
    """Check a `SKILL.md` or its directory; of a directory of skills, each one. Errors come first. Nothing is run.

    Raises `UsageError` when there is nothing to check.
    """
    found = [finding for file in skill_files(path) for finding in lint_file(file)]
    return tuple(sorted(found, key=lambda finding: finding.level != "error"))


def skill_files(path: Path) -> tuple[Path, ...]:
    """The `SKILL.md` a path means: itself, the one in the directory, or those in the directories of the directory."""
    if path.is_dir():
        found = _files_called_skill(path) or [
            file
            for directory in sorted(path.iterdir())
            if directory.is_dir()
            for file in _files_called_skill(directory)
        ]
        if not found:
            raise UsageError(
                f"no `{SKILL_FILE}` in `{path}`", hint="give a skill's directory, or a directory of skills"
            )
        return tuple(found)
    if not os.path.lexists(path):
        hint = f"give a `{SKILL_FILE}`, a skill's directory, or a directory of skills"
        raise UsageError(f"no such file: `{path}`", hint=hint)
    return (path,)


def _files_called_skill(directory: Path) -> list[Path]:
    try:
        return [entry for entry in directory.iterdir() if entry.name.lower() == SKILL_FILE.lower()]
    except OSError:
        return []


def lint_file(path: Path) -> Iterator[LintFinding]:
    """The findings about one `SKILL.md` and the files beside it."""
    if path.name != SKILL_FILE:
        message = f"the file must be called `{SKILL_FILE}` (case-sensitive)"
        yield LintFinding("error", path, message, "load", 1, f"rename it to `{SKILL_FILE}`")
    try:
        text = read_skill_text(path, None)
        skill = parse_skill(text)
    except SkillRefused as error:
        message = str(error)
        yield LintFinding("error", path, message, "load", _line_in(message), _load_remedy(message))
        return
    yield from _check_fields(path, text, skill)
    yield from _check_metadata(path)
    yield from _check_body(path, text)
    yield from check_references(path, text)
    yield from _check_scripts(path.parent)


def _line_in(message: str) -> int:
    """The line that a parser's message names."""
    found = _LINE.search(message)
    return int(found[1] or found[2]) if found else 1


def _load_remedy(message: str) -> str:
    if "frontmatter" in message:
        return "begin the file with `---`, `name:`, `description:` and `---`"
    if found := re.search(r"missing field `(\w+)`", message):
        return f"add `{found[1]}: …` to the front matter"
    return "correct the front matter"


def field_lines(text: str) -> dict[str, int]:
    """The keys at the top of the front matter, each with its line in the file."""
    block = split_frontmatter(text)
    keys = [re.match(r"([A-Za-z_][\w-]*)[ \t]*:(?:\s|$)", line) for line in block.yaml.split("\n")] if block else []
    return {match[1]: number for number, match in enumerate(keys, start=2) if match}


def _check_fields(path: Path, text: str, skill: SkillText) -> Iterator[LintFinding]:
    """The findings about the front matter of a skill that loads."""
    block = split_frontmatter(text)
    source = f"\n{block.yaml}" if block else ""
    lines = field_lines(text)

    def advice(rule: LintRule, key: str, message: str, remedy: str) -> LintFinding:
        return LintFinding("advice", path, message, rule, lines.get(key, _line_in(message)), remedy)

    try:
        parse_yaml(source)
    except YamlRefused as error:
        message = f"the frontmatter is read only because it could be repaired: {error}"
        yield advice("field", "", message, "put the value in quotes")
        source = repair_yaml(source)
    if skill.remark:
        yield advice("field", "", skill.remark, "correct the value")
    for message in _check_name(skill.name, path):
        yield advice("name", "name", message, "change `name`")
    for message in _check_description(skill.description):
        yield advice("description", "description", message, "rewrite `description`: what it does, then `Use when …`")
    for key in lines.keys() - KEYS:
        near = nearest(key, sorted(KEYS))
        remedy = f"write `{near}`" if near else "remove it, or move it below `metadata`"
        yield advice("field", key, f"the field `{key}` is ignored", remedy)
    for key in odd_metadata(source):
        message = f"`metadata.{key}` is not a text: the Agent Skills format has no other values there"
        yield advice("field", "metadata", message, "put the value in quotes")


def _check_metadata(path: Path) -> Iterator[LintFinding]:
    """The findings about `agents/openai.yaml`, and about dependencies wherever they are declared."""
    record = read_record(FoundFile(str(path), str(path), None, True), None)
    metadata = path.parent / "agents" / "openai.yaml"
    where = metadata if metadata.is_file() else path
    if remark := record.metadata_remark:
        yield LintFinding("error", metadata, remark, "metadata", _line_in(remark), "correct the value")
    for need in record.dependencies:
        if fault := dependency_fault(need):
            message = f"the dependency `{need.value}` of type `{need.type}` is ignored: {fault}"
            yield LintFinding("advice", where, message, "metadata", 1, "correct it below `dependencies.tools`")
    if not record.ours:
        message = "`policy.products` does not name `codex`: the skill is not loaded here"
        yield LintFinding("advice", where, message, "metadata", 1, "add `codex`, or remove the list")


def _check_name(name: str, path: Path) -> Iterator[str]:
    if not re.fullmatch(NAME, name):
        yield f"`{name}` cannot be mentioned as `$name`: use letters, digits, `-` and `_`"
    elif find_mentions(f"${name}", {name}).plain != (name,):
        yield f"`${name}` is read as an environment variable and mentions nothing: choose another name"
    elif name != name.lower():
        yield f"`{name}` has capitals: a mention must have them too"
    elif not _STANDARD.fullmatch(name):
        yield f"other programs refuse the name `{name}`: use letters and digits, with single `-` between them"
    directory = path.absolute().parent.name
    if name != directory:
        yield f"the name `{name}` is not that of the directory `{directory}`"


def _check_description(description: str) -> Iterator[str]:
    length = len(description)
    if length > MAX_DESCRIPTION_CHARS:
        yield f"the description has {length} characters: the list shows {MAX_DESCRIPTION_CHARS} at most"
    elif length > _LONG_DESCRIPTION:
        yield f"the description has {length} characters: with many skills the list shows only its beginning"
    elif length < _SHORT_DESCRIPTION:
        yield f"the description has {length} characters: say what the skill does and when to use it"
    if length >= _SHORT_DESCRIPTION and not _WHEN.search(description):
        yield "the description does not say when to use the skill: the model chooses by it"


def says_when(description: str) -> bool:
    """Whether a description has a word that says when to use the skill."""
    return _CLEARLY_WHEN.search(description) is not None


def _check_body(path: Path, text: str) -> Iterator[LintFinding]:
    block = split_frontmatter(text)
    start = block.body_start if block else 0
    body, first, size = text[start:], text[:start].count("\n") + 1, path.stat().st_size
    split = "move what is not always needed into `references/`"
    if not body.strip():
        message = "there is no text below the frontmatter"
        yield LintFinding("advice", path, message, "text", first, "write the steps")
    elif size > _MAX_BODY_BYTES:
        message = f"{size} bytes: the model gets the first {_MAX_BODY_BYTES // 1024} KiB"
        yield LintFinding("advice", path, message, "text", first, split)
    elif (lines := body.count("\n")) > _LONG_BODY_LINES:
        yield LintFinding("advice", path, f"{lines} lines", "text", first + _LONG_BODY_LINES, split)


def _check_scripts(directory: Path) -> Iterator[LintFinding]:
    """The scripts that do not parse; none is run."""
    for path in sorted((directory / "scripts").rglob("*"))[:_MAX_SCRIPTS]:
        if path.is_file() and "node_modules" not in path.parts and (fault := _parse_fault(path)):
            yield LintFinding("advice", path, f"does not parse: {fault[1]}", "script", fault[0], "correct the script")


def _parse_fault(path: Path) -> tuple[int, str] | None:
    """The line and the words in which a parser refuses a script; None without a parser for it, too."""
    if path.suffix == ".py":
        try:
            with warnings.catch_warnings(action="ignore"):
                ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return getattr(error, "lineno", None) or 1, str(getattr(error, "msg", None) or error)
        return None
    parser = _PARSERS.get(path.suffix)
    if parser is None or shutil.which(parser[0]) is None:
        return None
    argv = (*parser, str(path.absolute()))
    try:
        ended = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PARSE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if ended.returncode == 0:
        return None
    report = ended.stderr.decode(errors="replace").replace(f"{argv[-1]}: ", "")
    errors = [line.strip() for line in report.splitlines() if "rror" in line] or [f"exit status {ended.returncode}"]
    return _line_in(report), errors[-1][:200]
