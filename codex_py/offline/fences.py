"""The fenced code blocks of a Markdown text, and the shell commands in them."""

from __future__ import annotations

from typing import Final, NamedTuple

from codex_py.offline.pattern import Pattern

SHELL_LANGUAGES: Final = frozenset(
    ("sh", "bash", "shell", "zsh", "console", "shell-session", "sh-session", "shellsession", "terminal")
)
_FENCE: Final = Pattern(r"((?:[-*+] {1,4}|\d{1,3}[.)] {1,4})?)(`{3,}|~{3,})[ \t]*([^`\n]*)\Z")
_HEADING: Final = Pattern(r" {0,3}#{1,6}[ \t]+([^\n]*)\Z")


class Fence(NamedTuple):
    """One block: the first word after its fence in lower case, its text without the list's indentation, and the
    heading it stands under."""

    language: str
    text: str
    heading: str


def fences(markdown: str) -> list[Fence]:
    """The top-level blocks in order; a block inside a longer fence is text. An unclosed block runs to the end."""
    opens, titles = _FENCE.compiled(), _HEADING.compiled()
    found: list[Fence] = []
    heading = ""
    mark = language = ""
    indent = 0
    inside: list[str] = []
    for line in markdown.replace("\r\n", "\n").split("\n"):
        if mark:
            stripped = line.strip()
            if stripped.startswith(mark) and not stripped.strip(mark[0]):
                found.append(Fence(language, "\n".join(inside), heading))
                mark = ""
            else:
                inside.append(_without_indent(line, indent))
        elif opening := opens.match(line.lstrip(" \t")):
            indent, mark = len(line) - len(line.lstrip(" \t")) + len(opening[1]), opening[2]
            language = (opening[3].strip().split() or [""])[0].strip("{}.").lower()
            inside = []
        elif title := titles.match(line):
            heading = title[1].strip().rstrip("#").strip()
    if mark and inside:
        found.append(Fence(language, "\n".join(inside), heading))
    return found


def shell_text(fence: Fence) -> str:
    """What to type: where a block shows a session, the lines behind its prompts; otherwise the block itself."""
    lines = fence.text.split("\n")
    if not any(line.lstrip().startswith("$ ") for line in lines):
        return (
            ""
            if fence.language in ("console", "shell-session", "sh-session", "shellsession") and not _bare_session(lines)
            else fence.text.strip()
        )
    typed: list[str] = []
    continues = False
    for line in lines:
        stripped = line.strip()
        if stripped.startswith("$ "):
            typed.append(stripped[2:])
        elif continues:
            typed.append(stripped.removeprefix("> "))
        else:
            continue
        continues = typed[-1].endswith("\\")
    return "\n".join(typed)


def _bare_session(lines: list[str]) -> bool:
    """A session block without any prompt is taken for plain commands, unless it has root prompts."""
    return not any(line.lstrip().startswith("# ") for line in lines)


def _without_indent(line: str, width: int) -> str:
    spaces = len(line) - len(line.lstrip(" \t"))
    return line[min(width, spaces) :]
