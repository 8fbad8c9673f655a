"""Skills that do something when they are used: run as a subagent, or put the output of commands into their text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from codex_py.core import mentions
from codex_py.core.skill_options import SkillOptionsInForce
from codex_py.core.tool_runs import ToolRuns
from codex_py.errors import ToolError
from codex_py.protocol.encoding import encode_json, uuid7
from codex_py.protocol.items import ToolCall
from codex_py.protocol.ops import SkillInput, TextInput
from codex_py.protocol.value import Value
from codex_py.skills.inject import argument_values, body_start, capped, render_skill, skill_body
from codex_py.skills.model import Skill
from codex_py.text.files import FileRefused
from codex_py.text.placeholders import FilledText, PlaceholderValues, fill_placeholders
from codex_py.text.sanitize import sanitize_line
from codex_py.text.tokens import truncate_middle
from codex_py.tools.spec import SpawnRequest

__all__ = ["SkillRuns", "mentions"]

_SECONDS: Final = 3600.0
_COMMAND_MS: Final = 30_000
_MAX_ANSWER_TOKENS: Final = 10_000
# What Claude Code calls its roles, each with ours.
_ROLES: Final = {"explore": "explorer", "general-purpose": "", "general": "", "plan": "explorer", "default": ""}
_MAX_COMMANDS: Final = 16
_MAX_OUTPUT_BYTES: Final = 8 * 1024
_FENCE: Final = r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)"
_COMMAND: Final = r"(?:^|(?<=[ \t]))!`([^`\n]+)`"
# What a shell takes for one word, and no program for an option.
_PLAIN: Final = r"(?:[A-Za-z0-9_./:@%+=,][A-Za-z0-9_./:@%+=,-]*)?"


class SkillRuns(Value):
    """Runs what skills of one session bring. Everything goes the way of the model's own calls."""

    runs: ToolRuns
    options: SkillOptionsInForce
    warn: Callable[[str], None]

    async def answer_of(self, skill: Skill, task: str) -> str | None:
        """The last message of a subagent that has followed a skill; None where it has to be followed here.

        `task` is what the user wants of it. The subagent gets its settings from the skill as any session does.
        """
        role = skill.options.agent
        role = _ROLES.get(role.lower(), role)
        agents = self.runs.agents()
        request = SpawnRequest(
            (SkillInput(skill.name, skill.canonical_path), TextInput(task or "Do what the skill says.")), role
        )
        name = sanitize_line(skill.name)
        try:
            try:
                state = await agents.spawn(request)
            except ToolError as error:
                if not role or "agent_type" not in str(error):
                    raise
                self.warn(f"the skill `{name}`: `agent: {skill.options.agent}` is left out: {error}")
                role = ""
                state = await agents.spawn(request.replace(role=""))
        except ToolError as error:
            self.warn(f"the skill `{name}`: `context: fork` is left out: {error}")
            return None
        self.options.note_fork(skill, role)
        ended = await agents.wait([state.id], _SECONDS)
        while not ended:
            ended = await agents.wait([state.id], _SECONDS)
        answer = truncate_middle(ended[0].message or "(no answer)", _MAX_ANSWER_TOKENS)
        # A tag in what it says must not end the block.
        inner = re.sub(r"<(/?\s*skill-answer)", r"<\\\1", answer, flags=re.IGNORECASE)
        shown = name.replace('"', "'")
        note = f"The skill `{name}` ran as the subagent `{state.name}` ({ended[0].status}). Its answer:"
        return f'<skill-answer name="{shown}">\n{note}\n{inner}\n</skill-answer>'

    async def text_of(self, skill: Skill, arguments: str) -> str | None:
        """A skill as a message has it, with the output of its commands; None if its file cannot be read.

        The commands run in the sandbox, after the approvals and hooks of any call, under the limits of the skill.
        """
        try:
            text = skill_body(skill)
        except FileRefused:
            return None
        commands = _find_commands(skill, text, arguments)
        outputs: list[tuple[_SkillCommand, str]] = []
        for number, command in enumerate(commands):
            if number >= _MAX_COMMANDS:
                output = f"[not run: a skill may run {_MAX_COMMANDS} commands]"
            elif command.line is None:
                output = "[not run: its arguments are no plain words]"
            else:
                output = await self._run(command.line)
            outputs.append((command, output))
        body = _with_outputs(skill, text, arguments, outputs).text
        return render_skill(skill.name, str(skill.canonical_path), body)

    async def _run(self, line: str) -> str:
        """The output of a command line, which runs as a call of the model does."""
        turn = self.runs.turn
        if turn is None:
            return "[not run: there is no turn]"
        fields = {"command": line, "timeout_ms": _COMMAND_MS}
        call = ToolCall(uuid7(), "shell_command", encode_json(fields).decode())
        return (await self.runs.run(call, turn, lambda _: None)).text


class _SkillCommand(NamedTuple):
    """A command in the text of a skill, from `start` to `end`; `line` is None if an argument is not plain."""

    start: int
    end: int
    written: str
    line: str | None


def _find_commands(skill: Skill, text: str, arguments: str) -> list[_SkillCommand]:
    """The commands in the body of a skill, filled with its arguments; none in a fenced block, which is an example."""
    start = body_start(text)
    values = argument_values(skill, text, arguments)
    plain = values is None or all(re.fullmatch(_PLAIN, value) for value in (*values.words, *values.braced.values()))
    fences = [found.span() for found in re.finditer(_FENCE, text, re.MULTILINE | re.DOTALL)]
    commands: list[_SkillCommand] = []
    for found in re.finditer(_COMMAND, text, re.MULTILINE):
        if found.start() < start or any(begin <= found.start() < end for begin, end in fences):
            continue
        filled = _filled(found[1], values)
        is_safe = plain or not filled.has_placeholder
        commands.append(_SkillCommand(found.start(), found.end(), found[1], filled.text if is_safe else None))
    return commands


def _with_outputs(skill: Skill, text: str, arguments: str, outputs: Sequence[tuple[_SkillCommand, str]]) -> FilledText:
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


def _marked(command: _SkillCommand, output: str) -> str:
    line = sanitize_line(command.line or command.written).replace('"', "'").replace("<", "‹")
    raw = output.encode("utf-8", "replace")
    if len(raw) > _MAX_OUTPUT_BYTES:
        output = f"{raw[:_MAX_OUTPUT_BYTES].decode('utf-8', 'ignore')}\n[cut here: {len(raw)} bytes in all]"
    # A tag in what it printed must not end the block.
    inner = re.sub(r"<(/?\s*command-output)", r"<\\\1", output.strip("\n"), flags=re.IGNORECASE)
    return f'<command-output command="{line}">\n{inner}\n</command-output>'
