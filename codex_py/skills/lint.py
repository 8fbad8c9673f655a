"""Judging one skill before it is used: what keeps it from loading, and what would make it work better."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from codex_py.errors import UsageError
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

_SHORT_DESCRIPTION: Final = 40
_LONG_DESCRIPTION: Final = 400
_MAX_BODY_BYTES: Final = 256 * 1024
_LONG_BODY_LINES: Final = 500
_MAX_FILES: Final = 2000
_MAX_REFERENCES: Final = 500
_MENTIONABLE: Final = re.compile(r"[A-Za-z0-9_-]+")
_WHEN: Final = re.compile(r"\b(when|whenever|if|for|before|after|to|on)\b", re.IGNORECASE)
# Without the words that also stand elsewhere.
_CLEARLY_WHEN: Final = re.compile(r"\b(when|whenever|if|before|after|asks?|wants?|needs?)\b", re.IGNORECASE)
# A link of Markdown, or code that is a path below one of the directories a skill has.
_REFERENCE: Final = re.compile(
    r"\]\((?!#|[a-zA-Z][a-zA-Z+.-]{1,20}:)([^()\s<>]{1,300})\)|`((?:scripts|references|assets)/[\w./-]{1,300})`"
)
_FENCE: Final = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


LintRule: TypeAlias = Literal[
    "load", "metadata", "name", "description", "text", "field", "missing-file", "missing-command", "missing-flag",
    "missing-package", "missing-link", "script", "old-version", "overlap",
]  # fmt: skip
# What says that a skill has fallen behind the things it refers to.
_STALE: Final = frozenset(
    ("missing-file", "missing-command", "missing-flag", "missing-package", "missing-link", "script", "old-version")
)


class LintFinding(NamedTuple):
    """An `error` keeps the skill, or a part of it, from loading; `advice` does not. `remedy` says what to do."""

    level: Literal["error", "advice"]
    path: Path
    message: str
    rule: LintRule = "load"
    line: int = 1
    remedy: str = ""

    @property
    def is_stale(self) -> bool:
        """Whether what the skill refers to is not there, or does not work."""
        return self.rule in _STALE


def lint(path: Path) -> tuple[LintFinding, ...]:
    """Judge a `SKILL.md` or the directory it lies in; of a directory of skills each one. Errors come first.

    Raises `UsageError` when there is nothing to judge.
    """
    found = [finding for file in skill_files(path) for finding in lint_file(file)]
    return tuple(sorted(found, key=lambda finding: finding.level != "error"))


def skill_files(path: Path) -> tuple[Path, ...]:
    """The `SKILL.md` a path means: itself, the one in the directory, or those in the directories of the directory."""
    if path.is_dir():
        own = [entry for entry in path.iterdir() if entry.name.lower() == SKILL_FILE.lower()]
        found = own or sorted(
            directory / SKILL_FILE for directory in path.iterdir() if (directory / SKILL_FILE).is_file()
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


def lint_file(path: Path) -> Iterator[LintFinding]:
    """The findings about one `SKILL.md`."""
    if path.name != SKILL_FILE:
        yield LintFinding("error", path, f"the file must be called `{SKILL_FILE}` (case-sensitive)")
    try:
        text = read_skill_text(path, None)
        skill = parse_skill(text)
    except SkillRefused as error:
        yield LintFinding("error", path, str(error))
        return
    record = read_record(FoundFile(str(path), str(path), None, True), None)
    if record.metadata_remark:
        yield LintFinding("error", path.parent / "agents" / "openai.yaml", record.metadata_remark)
    messages = (*_about_frontmatter(text, skill), *_about_name(skill.name, path), *_about_description(skill))
    yield from (LintFinding("advice", path, message) for message in messages)
    if not record.ours:
        yield LintFinding("advice", path, "`policy.products` does not name `codex`: the skill is not loaded here")
    yield from _about_body(path, text)
    yield from _about_scripts(path.parent)


def _about_frontmatter(text: str, skill: SkillText) -> Iterator[str]:
    block = split_frontmatter(text)
    try:
        parse_yaml(f"\n{block.yaml}" if block else "")
    except YamlRefused as error:
        yield f"the frontmatter is read only because it could be repaired: {error}; put the value in quotes"
    if skill.remark:
        yield skill.remark


def _about_name(name: str, path: Path) -> Iterator[str]:
    if not _MENTIONABLE.fullmatch(name):
        yield f"`{name}` cannot be mentioned as `$name`: use letters, digits, `-` and `_`"
    elif find_mentions(f"${name}", {name}).plain != (name,):
        yield f"`${name}` is read as an environment variable and mentions nothing: choose another name"
    elif name != name.lower():
        yield f"`{name}` has capitals: a mention must have them too"
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
    body = text[block.body_start :] if block else ""
    size = path.stat().st_size
    if not body.strip():
        yield LintFinding("advice", path, "there is no text below the frontmatter")
    if size > _MAX_BODY_BYTES:
        yield LintFinding("advice", path, f"{size} bytes: the model is given the first {_MAX_BODY_BYTES // 1024} KiB")
    elif (lines := body.count("\n")) > _LONG_BODY_LINES:
        message = f"{lines} lines: move what is not always needed into `references/`"
        yield LintFinding("advice", path, message)
    for name in dict.fromkeys(_references(body)):
        if not (path.parent / name).exists():
            yield LintFinding("advice", path, f"names `{name}`, which is not there", "missing-file")


def _references(body: str) -> Iterator[str]:
    prose = _FENCE.sub("", body)
    for number, found in enumerate(_REFERENCE.finditer(prose)):
        if number == _MAX_REFERENCES:
            return
        name = (found[1] or found[2]).partition("#")[0].partition("?")[0].rstrip("/")
        if name and not name.startswith(("/", "~", "$")) and "\0" not in name:
            yield name


def _about_scripts(directory: Path) -> Iterator[LintFinding]:
    for script in sorted(islice((directory / "scripts").rglob("*"), _MAX_FILES)):
        if script.is_file() and not os.access(script, os.X_OK) and _has_interpreter(script):
            yield LintFinding("advice", script, "begins with `#!` and is not executable: `chmod +x` it")


def _has_interpreter(script: Path) -> bool:
    try:
        with script.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False
