"""Judging skills before they are used: what keeps one from loading, what has fallen behind, what would work better."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from codex_py.errors import UsageError, UserError
from codex_py.protocol.value import Value
from codex_py.skills.dependencies import dependency_fault
from codex_py.skills.evals import read_evals
from codex_py.skills.front_matter import KEYS
from codex_py.skills.lint_commands import check_commands
from codex_py.skills.lint_document import Document
from codex_py.skills.lint_finding import LintFinding
from codex_py.skills.lint_references import check_references
from codex_py.skills.lint_repository import RepositoryFacts, check_versions
from codex_py.skills.lint_scripts import check_scripts
from codex_py.skills.mentions import find_mentions
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
from codex_py.text.frontmatter import YamlRefused, parse_yaml, split_frontmatter
from codex_py.text.nearest import nearest

_SHORT_DESCRIPTION: Final = 40
_LONG_DESCRIPTION: Final = 400
_MAX_BODY_BYTES: Final = 256 * 1024
_LONG_BODY_LINES: Final = 500
_MAX_COMPATIBILITY: Final = 500
# The usual tools of agents. Another name may be a tool of an MCP server.
_TOOLS: Final = frozenset(
    "Bash Edit Write MultiEdit Read Grep Glob LS Task Skill TodoWrite TodoRead NotebookEdit NotebookRead WebFetch"
    " WebSearch exec_command apply_patch update_plan view_image web_search shell".split()
)
_MAX_DOCUMENTS: Final = 50
_MAX_DOCUMENT_BYTES: Final = 512 * 1024
# What the Agent Skills format allows.
_STANDARD: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MENTIONABLE: Final = re.compile(r"[A-Za-z0-9_-]+")
_WHEN: Final = re.compile(r"\b(when|whenever|if|for|before|after|to|on)\b", re.IGNORECASE)
# Without the words that also stand elsewhere.
_CLEARLY_WHEN: Final = re.compile(r"\b(when|whenever|if|before|after|asks?|wants?|needs?)\b", re.IGNORECASE)


class LintContext(Value):
    """What skills are judged against: the repository they belong to, and the directories of programs."""

    repository: RepositoryFacts | None = None
    search_path: str = os.defpath


def lint(path: Path, context: LintContext | None = None) -> tuple[LintFinding, ...]:
    """Judge a `SKILL.md` or the directory it lies in; of a directory of skills each one. Errors come first.

    Raises `UsageError` when there is nothing to judge.
    """
    found = [finding for file in skill_files(path) for finding in lint_file(file, context)]
    return tuple(sorted(found, key=lambda finding: finding.level != "error"))


def skill_files(path: Path) -> tuple[Path, ...]:
    """The `SKILL.md` a path means: itself, the one in the directory, or those in the directories of the directory."""
    if path.is_dir():
        own = [entry for entry in path.iterdir() if entry.name.lower() == SKILL_FILE.lower()]
        found = own or sorted(
            entry for directory in path.iterdir() if directory.is_dir() for entry in _files_called_skill(directory)
        )
        if not found:
            raise UsageError(
                f"no `{SKILL_FILE}` in `{path}`", hint="give a skill's directory, or a directory of skills"
            )
        return tuple(found)
    if not os.path.lexists(path):
        raise UsageError(
            f"no such file: `{path}`", hint=f"give a `{SKILL_FILE}`, a skill's directory, or a directory of skills"
        )
    return (path,)


def _files_called_skill(directory: Path) -> list[Path]:
    try:
        return [entry for entry in directory.iterdir() if entry.name.lower() == SKILL_FILE.lower()]
    except OSError:
        return []


def lint_file(path: Path, context: LintContext | None = None) -> Iterator[LintFinding]:
    """The findings about one `SKILL.md` and the files beside it; nothing is run."""
    context = context or LintContext(search_path=os.environ.get("PATH", os.defpath))
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
    yield from _about_head(path, text, skill)
    yield from _about_body(path, text)
    yield from _about_contents(path.parent, context, text)
    yield from _about_evals(path.parent)


def _about_head(path: Path, text: str, skill: SkillText) -> Iterator[LintFinding]:
    record = read_record(FoundFile(str(path), str(path), None, True), None)
    metadata = path.parent / "agents" / "openai.yaml"
    if record.metadata_remark:
        yield LintFinding(
            "error", metadata, record.metadata_remark, "metadata", _line_in(record.metadata_remark), "correct the value"
        )
    for need in record.dependencies:
        if fault := dependency_fault(need):
            message = f"the dependency `{need.value}` of type `{need.type}` is ignored: {fault}"
            where = metadata if metadata.is_file() else path
            yield LintFinding("advice", where, message, "metadata", 1, "correct it below `dependencies.tools`")
    lines = _field_lines(text)
    for message in _about_frontmatter(text, skill):
        yield LintFinding("advice", path, message, "field", _line_in(message), "put the value in quotes")
    for message in _about_name(skill.name, path):
        yield LintFinding("advice", path, message, "name", lines.get("name", 1), "change `name`")
    for message in _about_description(skill):
        remedy = "rewrite `description`: what it does, then `Use when …`"
        yield LintFinding("advice", path, message, "description", lines.get("description", 1), remedy)
    for key, line in lines.items():
        if key not in KEYS:
            near = nearest(key, sorted(KEYS))
            remedy = f"write `{near}`" if near else "remove it, or move it below `metadata`"
            yield LintFinding("advice", path, f"the field `{key}` is ignored", "field", line, remedy)
    for key, message, remedy in _about_values(text, skill):
        yield LintFinding("advice", path, message, "field", lines.get(key, 1), remedy)
    if not record.ours:
        message = "`policy.products` does not name `codex`: the skill is not loaded here"
        yield LintFinding(
            "advice", path, message, "metadata", lines.get("policy", 1), "add `codex`, or remove the list"
        )


def _field_lines(text: str) -> dict[str, int]:
    """The keys at the top of the front matter, each with its line."""
    block = split_frontmatter(text)
    if block is None:
        return {}
    found: dict[str, int] = {}
    for number, line in enumerate(block.yaml.splitlines(), start=2):
        if match := re.match(r"([A-Za-z_][\w-]*)[ \t]*:(?:\s|$)", line):
            found.setdefault(match[1], number)
    return found


def _line_in(message: str) -> int:
    """The line that a parser's message names."""
    found = re.search(r"\bline (\d{1,6})\b", message)
    return int(found[1]) if found else 1


def _load_remedy(message: str) -> str:
    if "frontmatter" in message:
        return "begin the file with `---`, `name:`, `description:` and `---`"
    if found := re.search(r"missing field `(\w+)`", message):
        return f"add `{found[1]}: …` to the front matter"
    return "correct the front matter"


def _about_frontmatter(text: str, skill: SkillText) -> Iterator[str]:
    block = split_frontmatter(text)
    try:
        parse_yaml(f"\n{block.yaml}" if block else "")
    except YamlRefused as error:
        yield f"the frontmatter is read only because it could be repaired: {error}; put the value in quotes"
    if skill.remark:
        yield skill.remark


def _about_values(text: str, skill: SkillText) -> Iterator[tuple[str, str, str]]:
    """The key, what is wrong with its value, and the remedy."""
    for tool in skill.allowed_tools:
        name = tool.partition("(")[0]
        near = None if name in _TOOLS else nearest(name, sorted(_TOOLS))
        if near:
            yield (
                "allowed-tools",
                f"`allowed-tools` names `{name}`, which is no tool: it permits nothing",
                f"write `{near}`",
            )
    block = split_frontmatter(text)
    found = re.search(r"^compatibility:[ \t]*(.*(?:\n[ \t]+.*)*)", block.yaml if block else "", re.MULTILINE)
    if found and (length := len(" ".join(found[1].split()))) > _MAX_COMPATIBILITY:
        message = f"`compatibility` has {length} characters: the format allows {_MAX_COMPATIBILITY}"
        yield "compatibility", message, "keep what a reader needs to know before an installation"


def _about_name(name: str, path: Path) -> Iterator[str]:
    if not _MENTIONABLE.fullmatch(name):
        yield f"`{name}` cannot be mentioned as `$name`: use letters, digits, `-` and `_`"
    elif find_mentions(f"${name}", {name}).plain != (name,):
        yield f"`${name}` is read as an environment variable and mentions nothing: choose another name"
    elif name != name.lower():
        yield f"`{name}` has capitals: a mention must have them too"
    elif not _STANDARD.fullmatch(name):
        yield f"other programs refuse the name `{name}`: use letters and digits, with single `-` between them"
    directory = path.absolute().parent.name
    if name != directory:
        yield f"the name `{name}` is not that of the directory `{directory}`: people look for one by the other"


def _about_description(skill: SkillText) -> Iterator[str]:
    length = len(skill.description)
    if length > MAX_DESCRIPTION_CHARS:
        yield f"the description has {length} characters: the list shows {MAX_DESCRIPTION_CHARS} at most"
    elif length > _LONG_DESCRIPTION:
        yield f"the description has {length} characters: with many skills the list shows only its beginning"
    elif length < _SHORT_DESCRIPTION:
        yield f"the description has {length} characters: say what the skill does and when to use it"
    if length >= _SHORT_DESCRIPTION and not _WHEN.search(skill.description):
        yield "the description does not say when to use the skill: the model chooses by it"


def says_when(description: str) -> bool:
    """Whether a description has a word that says when to use the skill."""
    return _CLEARLY_WHEN.search(description) is not None


def _about_body(path: Path, text: str) -> Iterator[LintFinding]:
    block = split_frontmatter(text)
    start = block.body_start if block else 0
    body, first = text[start:], text[:start].count("\n") + 1
    size = path.stat().st_size
    if not body.strip():
        message = "there is no text below the frontmatter"
        yield LintFinding("advice", path, message, "text", first, "write the steps")
    split = "move what is not always needed into `references/`"
    if size > _MAX_BODY_BYTES:
        message = f"{size} bytes: the model is given the first {_MAX_BODY_BYTES // 1024} KiB"
        yield LintFinding("advice", path, message, "text", first, split)
    elif (lines := body.count("\n")) > _LONG_BODY_LINES:
        message = f"{lines} lines: move what is not always needed into `references/`"
        yield LintFinding("advice", path, message, "text", first + _LONG_BODY_LINES, split)


def _about_contents(directory: Path, context: LintContext, text: str) -> Iterator[LintFinding]:
    """The findings about what the texts of a skill refer to, and about its scripts."""
    documents = _documents(directory, text)
    repository = context.repository
    root = repository.root if repository else None
    seen: set[tuple[str, str]] = set()
    for document in documents:
        for finding in (
            *check_references(document, directory, root),
            *check_commands(document, directory, repository, search_path=context.search_path),
            *(check_versions(document, repository) if repository else ()),
        ):
            if (finding.rule, finding.message) not in seen:
                seen.add((finding.rule, finding.message))
                yield finding
    yield from check_scripts(directory, "\n".join(document.text for document in documents), repository)


def _documents(directory: Path, text: str) -> Sequence[Document]:
    """The text of the skill below its front matter, and its references."""
    block = split_frontmatter(text)
    start = block.body_start if block else 0
    found = [Document(directory / SKILL_FILE, text[start:], text[:start].count("\n") + 1)]
    for path in sorted(islice((directory / "references").rglob("*.md"), _MAX_DOCUMENTS)):
        try:
            raw = path.read_bytes()[:_MAX_DOCUMENT_BYTES]
        except OSError:
            continue
        found.append(Document(path, raw.decode("utf-8", "replace")))
    return found


def _about_evals(directory: Path) -> Iterator[LintFinding]:
    if not ((directory / "evals").is_dir() or (directory / "evals.json").is_file()):
        return
    try:
        read_evals(directory)
    except UserError as error:
        message = str(error)
        path = re.search(r"cannot read `([^`]+)`", message)
        remedy = error.hint or "correct the evaluation"
        where = Path(path[1]) if path else directory / "evals"
        yield LintFinding("advice", where, message, "evals", _line_in(message), remedy)
