"""A selected skill as the message that puts it before the model."""

from __future__ import annotations

import re
import shlex
from typing import Final, NamedTuple

from codex_py.protocol.items import ResponseItem, message
from codex_py.skills.model import Skill
from codex_py.text.files import FileHead, FileRefused, read_inside
from codex_py.text.frontmatter import split_frontmatter
from codex_py.text.placeholders import FilledText, PlaceholderValues, fill_placeholders, split_words
from codex_py.text.sanitize import sanitize_line

MAX_BODY_BYTES: Final = 256 * 1024
# How far back from the limit the end of a line is looked for.
_LINE_BYTES: Final = 4096
_ALL_ARGUMENTS: Final = r"\$ARGUMENTS\b"
_END: Final = re.compile(r"<(/\s*skill(?:-loaded)?\s*>)", re.IGNORECASE)


class Injected(NamedTuple):
    """The message, or one line that says why there is none."""

    item: ResponseItem | None
    warning: str | None = None


def skill_item(skill: Skill, arguments: str = "") -> Injected:
    """Read a skill's file, now, and wrap the whole of it, frontmatter and line ends as they are.

    Only a regular file is read, a repo skill's only inside its project. Of a file over 256 KiB the beginning is given,
    with a note that says where the rest is. A file that cannot be read or is not UTF-8 gives a warning.
    """
    try:
        body = fill_body(skill, skill_body(skill), arguments).text
    except FileRefused as error:
        name, shown = sanitize_line(skill.name), sanitize_line(str(skill.canonical_path))
        return Injected(None, f"skill `{name}` is left out: cannot read `{shown}`: {error}")
    return Injected(message("user", render_skill(skill.name, str(skill.canonical_path), body)))


def skill_body(skill: Skill) -> str:
    """The text of a skill's file that `skill_item` gives the model, read now. Raises `FileRefused`."""
    path = skill.canonical_path
    # Without links: one that was put in the file's place since the search could lead anywhere.
    head = read_inside(skill.root.inside or path.parent, path, MAX_BODY_BYTES + 1)
    if head is None:
        raise FileRefused("no such file")
    return _text(head, str(path))


def fill_body(skill: Skill, text: str, arguments: str) -> FilledText:
    """The text of a skill with the arguments in the places of its body; its front matter stays as it is.

    Places are `$ARGUMENTS`, `$1` to `$9` outside of single quotes, and `${name}` for the names that the skill declares.
    """
    values = argument_values(skill, text, arguments)
    if values is None:
        return FilledText(text, False)
    start = body_start(text)
    filled = fill_placeholders(text[start:], values, max_chars=2 * MAX_BODY_BYTES)
    return FilledText(capped(text[:start] + filled.text), True) if filled.has_placeholder else FilledText(text, False)


def argument_values(skill: Skill, text: str, arguments: str) -> PlaceholderValues | None:
    """The values for the places in a skill's text; None if the skill takes no arguments, so that its text stays exact.

    A skill takes arguments if its front matter has `arguments` or `argument-hint`, or its body says `$ARGUMENTS`.
    """
    options = skill.options
    if not (options.arguments or options.argument_hint or re.search(_ALL_ARGUMENTS, text[body_start(text) :])):
        return None
    names, words = skill.options.arguments, split_words(arguments)
    padded = [*words, *("" for _ in names)]
    braced = {name: padded[position] for position, name in enumerate(names) if name}
    return PlaceholderValues(arguments, words, {}, braced, keeps_quoted_numbers=True)


def body_start(text: str) -> int:
    """Where in the text of a `SKILL.md` the front matter is over."""
    front = split_frontmatter(text)
    return front.body_start if front else 0


def capped(text: str) -> str:
    """The text of a skill, cut where what was put into it has made it too long."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= MAX_BODY_BYTES + _LINE_BYTES:
        return text
    return f"{raw[:MAX_BODY_BYTES].decode('utf-8', 'ignore')}\n[cut here: with its arguments the skill is too long]"


def render_skill(name: str, path: str, body: str) -> str:
    """The text of a skill's message; other programs know it by these tags.

    A closing tag inside is written `<\\/skill>`, so that the message ends where the skill does; all else is as it was.
    """
    inner = f"<name>{sanitize_line(name)}</name>\n<path>{sanitize_line(path)}</path>\n{body}"
    return f"<skill>\n{_without_end(inner)}\n</skill>"


def render_loaded(name: str, path: str, body: str) -> str:
    """A skill as the output of a tool: the prefix of the conversation stays as it was."""
    shown = sanitize_line(name).replace('"', "'")
    inner = _without_end(f"<path>{sanitize_line(path)}</path>\n{body}")
    return f'<skill-loaded name="{_without_end(shown)}">\n{inner}\n</skill-loaded>'


def _without_end(text: str) -> str:
    return _END.sub(r"<\\\1", text)


def _text(head: FileHead, path: str) -> str:
    """The body that is shown; raises `FileRefused`."""
    if len(head.raw) <= MAX_BODY_BYTES:
        return _decoded(head.raw)
    cut = _end_of_head(head.raw)
    rest = f"tail -c +{cut + 1} {shlex.quote(path)}"
    note = (
        f"[cut here: these are the first {cut} of {head.size} bytes; the rest is in the file: `{sanitize_line(rest)}`]"
    )
    return f"{_decoded(head.raw[:cut])}\n{note}"


def _end_of_head(raw: bytes) -> int:
    """Where to cut: behind the last line that fits, or between two characters of a very long one."""
    line_end = raw.rfind(b"\n", MAX_BODY_BYTES - _LINE_BYTES, MAX_BODY_BYTES)
    if line_end >= 0:
        return line_end + 1
    cut = MAX_BODY_BYTES
    while cut > MAX_BODY_BYTES - 3 and raw[cut] & 0xC0 == 0x80:
        cut -= 1
    return cut


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise FileRefused(f"not UTF-8 at byte {error.start}") from None
