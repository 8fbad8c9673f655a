"""Skills used by the way: a command that reads a `SKILL.md`, or runs a file in a skill's `scripts` directory.

Only noticed and counted. Nothing is allowed, refused or sent to the model because of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal

from codex_py.paths import real_path
from codex_py.protocol.value import Value
from codex_py.shell.command_line import CommandLine, ShellCommand, Word
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.skills.paths import expand_braces

_READERS: Final = frozenset(("cat", "sed", "head", "tail", "less", "more", "bat", "awk", "rg"))
_RUNNERS: Final = r"(?:python(?:3(?:\.\d+)?)?|bash|zsh|sh|node|deno|ruby|perl|pwsh|source|\.)"
_SCRIPT: Final = r"(?is).*\.(?:py|sh|js|ts|rb|pl|ps1)"
# Without a trace a command names no skill: a file, a directory, or a pattern that could match a file for a reader.
_TRACE: Final = r"SKILL|scripts|skill\.md"
_PATTERN: Final = r"[*?\[{]"
_READER: Final = r"\b(?:cat|sed|head|tail|less|more|bat|awk|rg)\b"

_MAX_PATH: Final = 4096
_MAX_PATHS: Final = 512
# Each is held against every skill.
_MAX_PATTERNS: Final = 32


class SkillUse(Value):
    """A skill, and whether a command read its `SKILL.md` or ran one of its scripts."""

    skill: Skill
    kind: Literal["read", "script"]


class _Pattern(Value):
    """An absolute pattern of the shell."""

    path: str


class SkillIndex:
    """The skills of a catalogue by the files that give them away: enabled ones the model may use on its own.

    Made once for a catalogue; the file system is looked at only when a command first asks for it.
    """

    def __init__(self, catalog: SkillCatalog) -> None:
        self._skills = [skill for skill in catalog.enabled() if skill.allow_implicit]
        self._documents = {str(skill.canonical_path): skill for skill in self._skills}
        self._scripts: dict[str, Skill] | None = None

    def may_name(self, command: str, workdir: Path) -> bool:
        """Whether a command is worth reading: without a trace of a skill in it or in its directory it is not."""
        if not self._skills:
            return False
        if re.search(_TRACE, command) or "scripts" in workdir.parts:
            return True
        return re.search(_PATTERN, command) is not None and re.search(_READER, command) is not None

    def document(self, path: str) -> Skill | None:
        """The skill whose `SKILL.md` is at an absolute path, links followed."""
        return self._documents.get(real_path(path))

    def documents_matching(self, pattern: str) -> Iterator[Skill]:
        """The skills whose `SKILL.md`, as reached or canonical, an absolute pattern of the shell matches."""
        segments = pattern.split("/")
        if not fnmatchcase("SKILL.md", segments[-1]):
            return
        for skill in self._skills:
            if any(_matches(path.parts, segments) for path in (skill.path, skill.canonical_path)):
                yield skill

    def owner(self, path: str) -> Skill | None:
        """The skill whose `scripts` directory holds an absolute path, links followed; the innermost of nested ones."""
        directories = self._script_directories()
        real = real_path(path)
        while (cut := real.rfind("/")) > 0:
            real = real[:cut]
            if skill := directories.get(real):
                return skill
        return None

    def _script_directories(self) -> dict[str, Skill]:
        if self._scripts is None:
            self._scripts = {}
            for skill in self._skills:
                directory = skill.directory / "scripts"
                real = real_path(str(directory)) if directory.is_symlink() else str(directory)
                self._scripts.setdefault(real, skill)
        return self._scripts


def detect_skill_use(line: CommandLine, index: SkillIndex) -> tuple[SkillUse, ...]:
    """The skills that a command line uses, each kind of use once, in the order of the commands.

    Reading is `cat sed head tail less more bat awk rg` with a `SKILL.md` as an argument or as input; running is a
    script runner whose first file, with the ending of a script, lies in a skill's `scripts` directory, or a file there
    that is run itself. Patterns of the shell stand for the files of known skills; nothing is looked up for them.
    """
    found: dict[tuple[Path, str], SkillUse] = {}
    paths = patterns = 0
    for command in line.commands:
        if command.is_guess or command.in_file:
            continue
        if skill := _script_owner(command, index):
            found.setdefault((skill.canonical_path, "script"), SkillUse(skill, "script"))
            continue
        for file in _files_read(command):
            paths, patterns = paths + 1, patterns + (not isinstance(file, str))
            if paths > _MAX_PATHS or patterns > _MAX_PATTERNS:
                return tuple(found.values())
            for skill in _documents(file, index):
                found.setdefault((skill.canonical_path, "read"), SkillUse(skill, "read"))
    return tuple(found.values())


def _script_owner(command: ShellCommand, index: SkillIndex) -> Skill | None:
    if "/" in (command.words[0].text or ""):
        path = _absolute(command.words[0], command.directory)
        if path and (skill := index.owner(path)):
            return skill
    name = command.program.removesuffix(".exe")
    if not re.fullmatch(_RUNNERS, name):
        return None
    files = [word for word in command.words[1:] if word.text is None or not word.text.startswith("-")]
    if name == "deno" and files and files[0].text == "run":
        files = files[1:]
    if not files or files[0].text is None or not re.fullmatch(_SCRIPT, files[0].text):
        return None
    path = _absolute(files[0], command.directory)
    return index.owner(path) if path else None


def _documents(read: str | _Pattern, index: SkillIndex) -> Iterator[Skill]:
    if isinstance(read, _Pattern):
        yield from index.documents_matching(read.path)
    elif skill := index.document(read):
        yield skill


def _files_read(command: ShellCommand) -> Iterator[str | _Pattern]:
    """What a command that shows files has among its arguments: absolute paths, and patterns of them."""
    name = command.program
    if name not in _READERS or (name == "rg" and any(word.text == "--files" for word in command.words)):
        return
    arguments = [word for word in command.words[1:] if not (word.text or "-").startswith("-")]
    for argument in [*arguments, *([command.input.file] if command.input.file else [])]:
        for word in _alternatives(argument):
            if path := _absolute(word, command.directory):
                yield _Pattern(path) if word.is_pattern else path


def _alternatives(word: Word) -> list[Word]:
    """The words a word with `{a,b}` stands for; a word without stands for itself."""
    if not word.is_pattern or not word.text or len(word.text) > _MAX_PATH:
        return [word]
    return [
        word.replace(text=text, is_pattern=any(char in "*?[" for char in text)) for text in expand_braces(word.text)
    ]


def _absolute(word: Word, directory: str | None) -> str | None:
    text = word.text
    if not text or len(text) > _MAX_PATH or "\0" in text or (directory is None and not text.startswith("/")):
        return None
    # Links are followed later, so `..` must stay where it is; in a pattern nothing can be looked up.
    path = text if text.startswith("/") else f"{directory}/{text}"
    return os.path.normpath(path) if word.is_pattern else path


def _matches(path: tuple[str, ...], pattern: list[str]) -> bool:
    """Whether an absolute pattern stands for a path; a `*` matches no slash and no hidden name."""
    return len(path) == len(pattern) and all(
        fnmatchcase(name, pattern_part) and (not name.startswith(".") or pattern_part.startswith("."))
        for name, pattern_part in zip(reversed(path[1:]), reversed(pattern[1:]), strict=True)
    )
