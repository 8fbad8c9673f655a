"""The files and links that a skill's text names and that are not there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from codex_py.skills.lint_document import Document, is_placeholder
from codex_py.skills.lint_finding import LintFinding

# A path below one of the directories a skill has.
_OWN: Final = re.compile(r"(?:\./)?((?:scripts|references|assets)/[\w./-]*\w)")
# As the argument of an interpreter, or as the command itself.
_RUN: Final = re.compile(
    r"(?:(?:^|[;&|(]\s*|\s)(?:python3?|bash|sh|node|uv run(?: python)?)\s+(?:\./)?"
    r"((?:scripts|references|assets)/[\w./-]*\w)|(?:^|[;&|(]\s*)(?:\./)?(scripts/[\w./-]*\w\.\w{1,4}))(?=\s|$)"
)
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_WEB: Final = re.compile(r"https?:", re.IGNORECASE)
# A file of a repository as it is written in prose.
_REPOSITORY_FILE: Final = re.compile(r"(?:\./)?(?:[\w.-]+/)+[\w.-]+\.[A-Za-z][\w]{0,9}")
# What stands before the name of a file that is about to be made, or that only shows what one could be called.
_MAKES: Final = re.compile(
    r"(?:\b(?:creat|writ|generat|output|sav|add|produc|bundl|stor|put)\w*(?:\s+[\w-]+){0,3}(?<!\bas)(?<!\bper)(?<!from)(?<!with)(?<!\bby)\s*"
    r"|\b(?:such as|e\.g\.,?|like|examples?:?|for instance,?|\bif)\b[`\w\s/.,-]*)$",
    re.IGNORECASE,
)
_NAMES_MAKING: Final = re.compile(r"(?:^|[\s;&|])(?:>|>>|mkdir|touch|tee|-o|--out\w*|cp|mv)\s")


def check_references(document: Document, directory: Path, repository: Path | None) -> Iterator[LintFinding]:
    """The findings about the files and links of one document of the skill in a directory, each name once."""
    seen: set[str] = set()
    for finding, name in (
        *_check_links(document, directory),
        *_check_own_files(document, directory, repository),
        *_check_repository_files(document, directory, repository),
    ):
        if name not in seen:
            seen.add(name)
            yield finding


def _check_links(document: Document, directory: Path) -> Iterator[tuple[LintFinding, str]]:
    for number, target in document.links():
        if _SCHEME.match(target):
            if _WEB.match(target) and not _is_address(target) and not is_placeholder(target):
                message = f"the link `{target}` is no address"
                yield _finding(document, message, number, "correct the address", rule="missing-link"), target
            continue
        path, _, anchor = target.partition("#")
        name = unquote(path.partition("?")[0]).rstrip("/")
        if not name:
            if anchor not in ("", "top") and _plain(anchor) not in document.anchors and not is_placeholder(anchor):
                message = f"the link `#{anchor}` means no heading of this file"
                yield _finding(document, message, number, "name an existing heading", rule="missing-link"), target
            continue
        if name.startswith(("/", "~")) or "\0" in name or is_placeholder(name) or not re.search(r"[./]", name):
            continue
        found = next((top / name for top in (document.path.parent, directory) if os.path.lexists(top / name)), None)
        if found is None:
            yield _missing(document, directory, name, number), name
        elif (
            anchor not in ("", "top")
            and name.endswith(".md")
            and found.is_file()
            and _plain(anchor) not in _anchors_of(found)
        ):
            message = f"the link `{target}` means no heading of `{name}`"
            yield _finding(document, message, number, "name an existing heading", rule="missing-link"), target


def _check_own_files(document: Document, directory: Path, repository: Path | None) -> Iterator[tuple[LintFinding, str]]:
    """Paths in `scripts`, `references` and `assets`, in inline code and in commands that run them."""
    tops = [document.path.parent, directory, *([repository] if repository else [])]
    made = " ".join(line.text for line in document.lines if _NAMES_MAKING.search(line.text))
    for number, text in _own_mentions(document):
        name = text.rstrip(".")
        if is_placeholder(name) or name in made or any(os.path.lexists(top / name) for top in tops):
            continue
        yield _missing(document, directory, name, number), name


def _own_mentions(document: Document) -> Iterator[tuple[int, str]]:
    for line, code, before in document.codes():
        whole = _OWN.fullmatch(code.rstrip("/"))
        if whole and not _MAKES.search(before):
            yield line.number, whole[1]
        elif not whole and (run := _RUN.search(code)):
            yield line.number, run[1] or run[2]
    for line in document.commands():
        for run in _RUN.finditer(line.text):
            yield line.number, run[1] or run[2]


def _check_repository_files(
    document: Document, directory: Path, repository: Path | None
) -> Iterator[tuple[LintFinding, str]]:
    """Files of the repository that the skill belongs to, in inline code."""
    if repository is None:
        return
    tops = (document.path.parent, directory, repository)
    for line, code, before in document.codes():
        name = code.removeprefix("./")
        if not _REPOSITORY_FILE.fullmatch(name) or _OWN.match(name) or is_placeholder(name) or _MAKES.search(before):
            continue
        if ".." in name.split("/") or any(os.path.lexists(top / name) for top in tops):
            continue
        message = f"names `{name}`, which is not in the repository"
        yield _finding(document, message, line.number, "name the file that took its place, or remove the line"), name


def _missing(document: Document, directory: Path, name: str, number: int) -> LintFinding:
    same = [path for path in _files_called(directory, Path(name).name)]
    if len(same) == 1:
        remedy = f"write `{same[0].relative_to(directory).as_posix()}`"
    else:
        remedy = "add the file, or remove the reference"
    return _finding(document, f"names `{name}`, which is not there", number, remedy)


def _files_called(directory: Path, name: str) -> list[Path]:
    """The files of a skill with this name; none in a directory with very many."""
    found: list[Path] = []
    for count, path in enumerate(directory.rglob("*")):
        if count == 2000:
            return []
        if path.name == name and path.is_file():
            found.append(path)
    return found


def _finding(document: Document, message: str, line: int, remedy: str, *, rule: str = "missing-file") -> LintFinding:
    chosen = "missing-link" if rule == "missing-link" else "missing-file"
    return LintFinding("advice", document.path, message, chosen, line, remedy)


def _is_address(target: str) -> bool:
    try:
        parts = urlsplit(target)
        return bool(parts.hostname) and target[: len(parts.scheme) + 3].endswith("://") and parts.port != 0
    except ValueError:
        return False


def _plain(anchor: str) -> str:
    return "".join(char for char in unquote(anchor).lower() if char.isalnum())


def _anchors_of(path: Path) -> frozenset[str]:
    try:
        return Document(path, path.read_text("utf-8", "replace")).anchors
    except OSError:
        return frozenset()
