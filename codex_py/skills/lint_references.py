"""The files that a skill's Markdown names, and the headings that it links to, where they do not exist."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote

from markdown_it import MarkdownIt

from codex_py.text.frontmatter import split_frontmatter

LintRule: TypeAlias = Literal[
    "load",
    "held",
    "metadata",
    "name",
    "description",
    "text",
    "field",
    "overlap",
    "script",
    "missing-file",
    "missing-link",
    "spec",
]
_STALE: Final = ("script", "missing-file", "missing-link")
_MAX_DOCUMENTS: Final = 50
_MAX_BYTES: Final = 512 * 1024
_OWN: Final = r"(?:\./)?((?:scripts|references|assets)/[\w./-]*\w)"
# A command that runs a script: behind an interpreter, or at the start of a command.
_RUN: Final = re.compile(
    rf"(?:(?:^|[;&|(]\s*|\s)(?:python3?|bash|sh|node)\s+|(?:^|[;&|(]\s*)){_OWN}(?=\s|$)", re.MULTILINE
)
_SHELLS: Final = frozenset(("sh", "bash", "shell", "zsh", "console"))
_PLACEHOLDER: Final = re.compile(
    r"[<>{}$*\[\]|]|\.\.\.|…|path/to|your[-_/]|\b(?:example|foo|bar|baz|xxx|my-?\w+)\b|(?:^|/)[a-zA-Z]\.\w+$",
    re.IGNORECASE,
)
# Stands before the name of a file that is about to be made, or that is an example of a name.
_MAKES: Final = re.compile(
    r"\b(?:(?:creat|writ|generat|output|sav|add|produc|stor|put)\w*(?:\s+[\w-]+){0,3}(?<!\bas)(?<!from)(?<!with)"
    r"|(?:such as|like|e\.g\.,?|if)\b[`\w\s/.,-]*)\s*$",
    re.IGNORECASE,
)


class LintFinding(NamedTuple):
    """Something that a check has found in a file of a skill."""

    level: Literal["error", "advice"]
    """An error keeps the skill, or a part of it, from loading."""
    path: Path
    message: str
    rule: LintRule = "load"
    line: int = 1
    remedy: str = ""
    """What to do about it."""

    @property
    def is_stale(self) -> bool:
        """Whether something the skill refers to does not exist, or does not work."""
        return self.rule in _STALE


def check_references(skill: Path, text: str) -> Iterator[LintFinding]:
    """Check the text of a `SKILL.md` and the Markdown files in its `references`; each name is reported once."""
    block = split_frontmatter(text)
    start = block.body_start if block else 0
    directory = skill.parent
    seen: set[str] = set()
    for path, body, first in (
        (skill, text[start:], text[:start].count("\n") + 1),
        *((path, _read(path), 1) for path in sorted((directory / "references").rglob("*.md"))[:_MAX_DOCUMENTS]),
    ):
        for finding in (*_check_links(path, body, first, directory), *_check_files(path, body, first, directory)):
            if finding.message not in seen:
                seen.add(finding.message)
                yield finding


def _check_links(path: Path, body: str, first: int, directory: Path) -> Iterator[LintFinding]:
    for token, number in _inline_tokens(body, first):
        target = str(token.attrGet("href" if token.type == "link_open" else "src") or "")
        name, _, anchor = target.partition("#")
        name = unquote(name.partition("?")[0]).rstrip("/")
        is_elsewhere = re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|[/~]", target) or "\0" in name
        if token.type not in ("link_open", "image") or is_elsewhere or _PLACEHOLDER.search(unquote(target)):
            continue
        tops = (path.parent, directory)
        found = next((top / name for top in tops if os.path.lexists(top / name)), None) if name else path
        if found is None:
            if re.search(r"[./]", name):
                yield _missing(path, number, name, directory)
            continue
        if anchor in ("", "top") or (name and not name.endswith(".md")):
            continue
        if _letters(unquote(anchor)) not in _headings(_read(found) if name else body):
            message = f"the link `{target}` names no heading of the file"
            yield LintFinding("advice", path, message, "missing-link", number, "name an existing heading")


def _check_files(path: Path, body: str, first: int, directory: Path) -> Iterator[LintFinding]:
    """Files in `scripts`, `references` and `assets` that inline code names, and scripts that a command runs."""
    for token, number in _inline_tokens(body, first):
        names: list[tuple[str, int]] = []
        if token.type == "code_inline":
            whole = re.fullmatch(_OWN, token.content.rstrip("/"))
            if whole and not _MAKES.search(token.meta["before"]):
                names = [(whole[1], number)]
            elif not whole:
                names = [(run[1], number) for run in _RUN.finditer(token.content)]
        elif token.type == "fence" and token.info.split()[:1] and token.info.split()[0] in _SHELLS:
            names = [
                (run[1], number + 1 + token.content[: run.start(1)].count("\n")) for run in _RUN.finditer(token.content)
            ]
        for name, line in names:
            if not _PLACEHOLDER.search(name) and not any(
                os.path.lexists(top / name) for top in (path.parent, directory)
            ):
                yield _missing(path, line, name, directory)


def _inline_tokens(body: str, first: int) -> Iterator[tuple[Any, int]]:
    """The links, images, inline code and fences of a Markdown text, each with its line in the file.

    The text before inline code is in `meta["before"]`.
    """
    for block in MarkdownIt("commonmark").enable("table").parse(body):
        number = first + (block.map[0] if block.map else 0)
        if block.type == "fence":
            yield block, number
        before = ""
        for token in block.children or ():
            if token.type in ("softbreak", "hardbreak"):
                number, before = number + 1, ""
            token.meta["before"] = before
            before += token.content
            yield token, number


def _missing(path: Path, line: int, name: str, directory: Path) -> LintFinding:
    same = [found for found in sorted(directory.rglob("*"))[:2000] if found.name == Path(name).name and found.is_file()]
    only = same[0].relative_to(directory).as_posix() if len(same) == 1 else ""
    remedy = f"write `{only}`" if only else "add the file, or remove the reference"
    return LintFinding("advice", path, f"names `{name}`, which does not exist", "missing-file", line, remedy)


def _headings(body: str) -> set[str]:
    """The headings and named anchors of a Markdown text, as letters and digits alone: programs disagree on the rest."""
    titles = re.findall(r"(?m)^[ \t]{0,3}#{1,6}[ \t]+(.+)$", body)
    names = re.findall(r"<a\s+(?:name|id)=[\"']([^\"']+)", body)
    return {_letters(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)) for title in (*titles, *names)}


def _letters(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
