"""The commands in the text of a skill that says `dynamic: true`, whose output stands in their place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from codex_py.skills.inject import argument_values, body_start, capped
from codex_py.skills.model import Skill
from codex_py.text.placeholders import FilledText, PlaceholderValues, fill_placeholders
from codex_py.text.sanitize import sanitize_line

MAX_COMMANDS: Final = 16
MAX_OUTPUT_BYTES: Final = 8 * 1024
_FENCE: Final = r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)"
_COMMAND: Final = r"(?:^|(?<=[ \t]))!`([^`\n]+)`"
# What a shell takes for one word, and no program for an option.
_PLAIN: Final = r"(?:[A-Za-z0-9_./:@%+=,][A-Za-z0-9_./:@%+=,-]*)?"


class SkillCommand(NamedTuple):
    """A command in the text of a skill, from `start` to `end`; `line` is None if an argument is not plain."""

    start: int
    end: int
    written: str
    line: str | None


def find_commands(skill: Skill, text: str, arguments: str) -> list[SkillCommand]:
    """The commands in the body of a skill, filled with its arguments; none in a fenced block, which is an example."""
    start = body_start(text)
    values = argument_values(skill, text, arguments)
    plain = values is None or all(re.fullmatch(_PLAIN, value) for value in (*values.words, *values.braced.values()))
    fences = [found.span() for found in re.finditer(_FENCE, text, re.MULTILINE | re.DOTALL)]
    commands: list[SkillCommand] = []
    for found in re.finditer(_COMMAND, text, re.MULTILINE):
        if found.start() < start or any(begin <= found.start() < end for begin, end in fences):
            continue
        filled = _filled(found[1], values)
        is_safe = plain or not filled.has_placeholder
        commands.append(SkillCommand(found.start(), found.end(), found[1], filled.text if is_safe else None))
    return commands


def with_outputs(skill: Skill, text: str, arguments: str, outputs: Sequence[tuple[SkillCommand, str]]) -> FilledText:
    """The text of a skill with outputs in the place of its commands, and arguments in their places between them.

    Nothing in an output or an argument is filled or run.
    """
    values = argument_values(skill, text, arguments)
    pieces = [text[: body_start(text)]]
    end, has_placeholder = body_start(text), False
    for command, output in outputs:
        filled = _filled(text[end : command.start], values)
        has_placeholder = has_placeholder or filled.has_placeholder
        pieces += (filled.text, _marked(command, output))
        end = command.end
    rest = _filled(text[end:], values)
    return FilledText(capped("".join((*pieces, rest.text))), has_placeholder or rest.has_placeholder)


def _filled(text: str, values: PlaceholderValues | None) -> FilledText:
    return FilledText(text, False) if values is None else fill_placeholders(text, values)


def _marked(command: SkillCommand, output: str) -> str:
    line = sanitize_line(command.line or command.written).replace('"', "'").replace("<", "‹")
    raw = output.encode("utf-8", "replace")
    if len(raw) > MAX_OUTPUT_BYTES:
        output = f"{raw[:MAX_OUTPUT_BYTES].decode('utf-8', 'ignore')}\n[cut here: {len(raw)} bytes in all]"
    # A tag in what it printed must not end the block.
    inner = re.sub(r"<(/?\s*command-output)", r"<\\\1", output.strip("\n"), flags=re.IGNORECASE)
    return f'<command-output command="{line}">\n{inner}\n</command-output>'
