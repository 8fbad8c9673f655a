"""A Markdown file as its lines: which stand in a fence and of which language, its inline code, links and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

SHELL_LANGUAGES: Final = frozenset(("sh", "bash", "shell", "zsh", "console", "shell-session"))
_MAX_LINES: Final = 20_000
_MAX_LINE: Final = 2_000
_FENCE: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])?[ \t]*(`{3,}|~{3,})[ \t]*([^`\n]*)\Z")
_CODE: Final = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK: Final = re.compile(r"(?<!!)\[[^\]\n]{0,300}\]\(([^()\s<>]{1,500})(?:\s+\"[^\"]*\")?\)")
_IMAGE: Final = re.compile(r"!\[[^\]\n]{0,300}\]\(([^()\s<>]{1,500})(?:\s+\"[^\"]*\")?\)")
_HEADING: Final = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+(.+?)[ \t#]*\Z")
_ANCHOR: Final = re.compile(r"<a\s+(?:name|id)=[\"']([^\"']+)[\"']", re.IGNORECASE)
# What stands for something else, or only shows how a text would look.
_PLACEHOLDER: Final = re.compile(
    r"[<>{}$*\[\]|]|\.\.\.|…|%[sd]|path/to|your[-_/]|/your|\b(?:example|foo|bar|baz|xxx|yyyy|x\.y\.z|name-here|my-?\w+)\b"
    r"|(?:^|/)[a-zA-Z]\.\w+$",
    re.IGNORECASE,
)


# What stands before a command in a sentence: "Run `make all`", "execute the command `…`".
_BEFORE_COMMAND: Final = re.compile(r"\b(?:run|running|execute|invoke)\s+(?:(?:the\s+)?command\s+)?\Z", re.IGNORECASE)
_SCRIPT_CALL: Final = re.compile(r"(?:(?:python3?|bash|sh|node)\s+)?(?:\./)?scripts/")


class DocumentLine(NamedTuple):
    """A line; `language` is None outside of a fence, "" in one that names no language."""

    number: int
    text: str
    language: str | None


class Document:
    """The text of one file of a skill; `first` is the number of its first line in the file."""

    def __init__(self, path: Path, text: str, first: int = 1) -> None:
        self.path = path
        self.text = text
        self._first = first

    @cached_property
    def lines(self) -> list[DocumentLine]:
        """The lines without those of the fences themselves."""
        return list(self._read_lines())

    @cached_property
    def prose(self) -> list[DocumentLine]:
        return [line for line in self.lines if line.language is None]

    @cached_property
    def anchors(self) -> frozenset[str]:
        """The possible targets of a `#anchor`, in letters and digits only."""
        found = {plain_anchor(match[1]) for line in self.prose if (match := _HEADING.match(line.text))}
        return frozenset(found | {plain_anchor(name) for name in _ANCHOR.findall(self.text)})

    def links(self) -> Iterator[tuple[int, str]]:
        """The targets of links and images in the prose, each with its line."""
        for line in self.prose:
            text = _CODE.sub("", line.text)
            for pattern in (_LINK, _IMAGE):
                for match in pattern.finditer(text):
                    yield line.number, match[1]

    def codes(self) -> Iterator[tuple[DocumentLine, str, str]]:
        """The inline code of the prose, each with its line and what stands before it there."""
        for line in self.prose:
            for match in _CODE.finditer(line.text):
                yield line, match[1].strip(), line.text[: match.start()]

    def commands_in_prose(self) -> Iterator[DocumentLine]:
        """The inline code with arguments that a sentence says to run, or that begins with a script of the skill."""
        for line, code, before in self.codes():
            if " " in code and (_BEFORE_COMMAND.search(before) or _SCRIPT_CALL.match(code)):
                yield line._replace(text=code.removeprefix("$ "))

    def commands(self) -> Iterator[DocumentLine]:
        """The lines of shell blocks, continued ones as one line, without prompts, comments and here-documents."""
        held, until = "", ""
        start = 0
        for line in self.lines:
            if line.language not in SHELL_LANGUAGES:
                held, until = "", ""
                continue
            if until:
                until = "" if line.text.strip() == until else until
                continue
            text = line.text.strip()
            typed = line.language in ("console", "shell-session") or text.startswith("$ ")
            if typed and not held and not text.startswith("$ "):
                # What a command has printed.
                continue
            start = start if held else line.number
            whole = held + text.removeprefix("$ ")
            if whole.endswith("\\"):
                held = whole[:-1]
                continue
            held = ""
            if found := re.search(r"<<-?\s*['\"]?(\w+)['\"]?", whole):
                until = found[1]
            if whole and not whole.startswith("#"):
                yield DocumentLine(start, whole, line.language)

    def _read_lines(self) -> Iterator[DocumentLine]:
        mark, language = "", ""
        for number, raw in enumerate(self.text.splitlines()[:_MAX_LINES], start=self._first):
            text = raw[:_MAX_LINE]
            stripped = text.strip()
            if mark and stripped.startswith(mark) and not stripped.strip(mark[0]):
                mark = ""
            elif mark:
                yield DocumentLine(number, text, language)
            elif opening := _FENCE.match(text):
                mark = opening[1]
                language = (opening[2].split() or [""])[0].strip("{}.").lower()
            else:
                yield DocumentLine(number, text, None)


def is_placeholder(text: str) -> bool:
    """Whether a path or a word stands for another one."""
    return _PLACEHOLDER.search(text) is not None


def plain_anchor(text: str) -> str:
    """A heading or an anchor as programs compare them that disagree about everything else."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return "".join(char for char in text.lower() if char.isalnum())
