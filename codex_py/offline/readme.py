"""What a README says: its title, its first real paragraph, and the commands it shows."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from codex_py.offline.commands import looks_like_command
from codex_py.offline.fences import SHELL_LANGUAGES, fences, shell_text
from codex_py.offline.pattern import Pattern
from codex_py.offline.text import clip

_FRONT_MATTER: Final = Pattern(r"\A---\n(?:(?!---\n)[^\n]*\n)*---\n")
_COMMENT: Final = Pattern(r"<!--(?:(?!-->|<!--).)*-->", re.DOTALL)
_MARKDOWN_HEADING: Final = Pattern(r" {0,3}#{1,6}\s+(.*?)\s*#*\s*\Z")
_HTML_HEADING: Final = Pattern(r"<h1[^>]{0,200}>((?:(?!</h1>|<h1).)*)</h1>", re.DOTALL | re.IGNORECASE)
_UNDERLINE: Final = Pattern(r"\s*([=\-~^\"'*+#])\1{2,}\s*\Z")
_IMAGE: Final = Pattern(
    r"!\[[^\]\n]{0,300}\](?:\([^)\n]{0,600}\)|\[[^\]\n]{0,300}\])|\|[\w .-]{1,80}\||:[\w-]{1,40}:`[^`\n]{0,300}`_?"
)
_LINK: Final = Pattern(
    r"\[([^\]\[\n]{0,300})\](?:\([^)\n]{0,600}\)|\[[^\]\n]{0,300}\])|`([^`<\n]{1,300}) <[^>\n]{1,600}>`__?"
)
_TAG: Final = Pattern(r"<[^<>\n]{1,300}>")
_EMPHASIS: Final = Pattern(r"(\*\*|__|\*|(?<!\w)_(?=\w))(?=\S)([^*\n]{1,300}?)(?<=\S)\1(?!\w)")
_NOT_PROSE: Final = Pattern(r"\s*(?:[-*+] |\d{1,3}[.)] |\||\.\. |:[\w-]+:|\[[^\]\n]+\]:|={3,}|-{3,}|\* \* \*|!!! )")
_RUN_HEADINGS: Final = Pattern(
    r"quick ?start|usage|getting started|run|how to|install|set ?up|try it|develop|build|test|start|example|contribut",
    re.IGNORECASE,
)
_LEAST_WORDS: Final = 4


class Readme(NamedTuple):
    """`opens`: the paragraph stands before the parts on installing and using, so that it can say what this is for."""

    title: str
    paragraph: str
    commands: tuple[str, ...]
    opens: bool = True


def read_readme(text: str) -> Readme:
    """Read Markdown, reStructuredText or plain text; what is not there is ''."""
    plain = text.replace("\r\n", "\n").lstrip("\ufeff")
    plain = _COMMENT.sub("", _FRONT_MATTER.sub("", plain, count=1))
    opening = _first_paragraph(_opening(plain))
    return Readme(_title(plain), opening or _first_paragraph(plain), _commands(plain), bool(opening))


def _title(text: str) -> str:
    lines = text.split("\n")[:120]
    for position, line in enumerate(lines):
        if heading := _MARKDOWN_HEADING.match(line):
            if title := _prose(heading[1]):
                return clip(title, 100)
        elif (
            position
            and _UNDERLINE.match(line)
            and lines[position - 1].strip()
            and not _UNDERLINE.match(lines[position - 1])
        ):
            return clip(_prose(lines[position - 1]), 100)
    found = _HTML_HEADING.search(text[:8000])
    return clip(_prose(found[1]), 100) if found else ""


def _opening(text: str) -> str:
    """What comes before the first part on installing, using or developing."""
    lines = text.split("\n")
    for position, line in enumerate(lines):
        if line.startswith("##") and (heading := _MARKDOWN_HEADING.match(line)) and _RUN_HEADINGS.match(heading[1]):
            return "\n".join(lines[:position])
    return text


def _first_paragraph(text: str) -> str:
    """The first block of prose: no heading, badge, list, table, code, directive or row of links."""
    short = ""
    for block in _blocks(text):
        prose = _prose(" ".join(line.strip().removeprefix("> ").removeprefix(">") for line in block))
        words = prose.split()
        if len(words) >= _LEAST_WORDS and any(len(word) > 3 for word in words):
            return _sentences(prose)
        short = short or (prose if len(words) > 1 else "")
    return _sentences(short)


def _blocks(text: str) -> list[list[str]]:
    blocks: list[list[str]] = []
    current: list[str] = []
    fence = ""
    lines = text.split("\n")
    for position, line in enumerate(lines):
        stripped = line.strip()
        if fence:
            fence = "" if stripped.startswith(fence) else fence
            continue
        if stripped.startswith(("```", "~~~")):
            fence, stripped = stripped[:3], ""
        underlined = position + 1 < len(lines) and _UNDERLINE.match(lines[position + 1]) is not None
        starts_code = not current and line.startswith(("    ", "\t"))
        if (
            not stripped
            or starts_code
            or underlined
            or _MARKDOWN_HEADING.match(line)
            or _UNDERLINE.match(line)
            or (not current and _NOT_PROSE.match(line))
        ):
            blocks += [current] if current else []
            current = []
        elif not (_HTML_HEADING.search(line)):
            current.append(line)
    return [*blocks, current] if current else blocks


def _prose(text: str) -> str:
    """A text without its markup; '' where only images and links between separators are left."""
    without = _IMAGE.sub("", text)
    # A linked badge leaves an empty link.
    bare = re.sub(r"\[ *\]\([^)\n]{0,600}\)", "", without)
    if not re.sub(r"[|•·\s/,–—-]", "", _TAG.sub("", _LINK.sub("", bare))):
        return ""
    linked = _LINK.sub(lambda found: found[1] or found[2] or "", bare)
    plain = _EMPHASIS.sub(r"\2", _TAG.sub("", linked))
    return " ".join(plain.replace("``", "`").split())


def _sentences(text: str, limit: int = 420) -> str:
    if len(text) <= limit:
        return text
    end = max(text.rfind(mark, 0, limit) for mark in (". ", "! ", "? "))
    return text[: end + 1] if end > 80 else clip(text, limit)


def _commands(text: str) -> tuple[str, ...]:
    """The first commands shown in shell blocks, and in plain blocks under headings about installing and running."""
    found: list[str] = []
    for fence in fences(text):
        is_shell = fence.language in SHELL_LANGUAGES
        is_plain = fence.language in ("", "text", "txt") and _RUN_HEADINGS.search(fence.heading) is not None
        if not is_shell and not is_plain:
            continue
        for line in shell_text(fence).replace("\\\n", " ").split("\n"):
            command = line.split("  #", 1)[0].strip()
            if (
                command
                and not command.startswith(("#", "export ", "cd "))
                and (is_shell or _looks_like_run_line(command))
            ):
                found.append(clip(command, 120))
    return tuple(dict.fromkeys(found))[:5]


def _looks_like_run_line(line: str) -> bool:
    """Whether a line of a block without a language is a command, a script of the project included."""
    program = line.split()[0]
    return looks_like_command(line) or (
        "/" in program and not program.startswith(("http", "<", "|")) and program[-1] != "/"
    )
