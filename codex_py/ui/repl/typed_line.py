"""What a typed line means by its signs, and what the menu offers for them: `$skill`, `/command`, `!shell`, `#note`."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from codex_py.core.mentions import invocable, skill_called
from codex_py.errors import UserError
from codex_py.protocol.value import Value
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.text.files import os_reason
from codex_py.text.nearest import nearest
from codex_py.ui.repl.chips import PickedSkill
from codex_py.ui.repl.menu import MAX_OFFERS, MenuOffer, MenuWord, best
from codex_py.ui.repl.panels.forms import GUTTER, Option, Sheet, TextLine
from codex_py.ui.repl.slash_command import (
    CommandContext,
    SlashCommand,
    SlashRequest,
    find_command,
    looks_like_command,
    split_command,
    words_unwanted,
)

SHELL: Final = "!"

# Scripts without spaces may have the sign right behind a character.
_SKILL: Final = re.compile(r"(?:^|(?<=[\s(\[\"'`\u3000-\u9fff\uac00-\ud7af\uff00-\uff0f]))\$([\w.:-]*)$")
_COMMAND: Final = re.compile(r"/([\w.:-]*)$")


class SkillSource:
    """Offers the skills that can be used; the one picked goes to the session as itself, not as a word."""

    title = "skills"
    empty = ""
    total = 0

    def __init__(self, catalog: Callable[[], SkillCatalog], look_again: Callable[[], None]) -> None:
        self._catalog = catalog
        self._look_again = look_again

    def opened(self) -> None:
        """The menu opens: what is offered is what there is now."""
        self._look_again()

    def word_at(self, before: str) -> MenuWord | None:
        # In a line for the shell that is a variable.
        found = None if before.startswith(SHELL) else _SKILL.search(before)
        return MenuWord(found.start(), found[1]) if found else None

    def offers(self, query: str) -> Sequence[MenuOffer]:
        found = _fitting(self._catalog(), query)
        self.total = len(found)
        return [_skill_offer(skill) for skill in found[:MAX_OFFERS]]


class CommandSource:
    """Offers commands, and skills by the same sign."""

    title = "commands"
    empty = ""
    total = 0

    def __init__(
        self,
        commands: Callable[[], Sequence[SlashCommand]],
        catalog: Callable[[], SkillCatalog],
        look_again: Callable[[], None],
    ) -> None:
        self._commands = commands
        self._catalog = catalog
        self._look_again = look_again

    def opened(self) -> None:
        """The menu opens: what is offered is what there is now."""
        self._look_again()

    def word_at(self, before: str) -> MenuWord | None:
        found = _COMMAND.fullmatch(before)
        return MenuWord(0, found[1]) if found else None

    def offers(self, query: str) -> Sequence[MenuOffer]:
        commands = best(query, self._commands(), key=lambda command: command.names, limit=None)
        skills = _fitting(self._catalog(), query) if query or not commands else []
        self.total = len(commands) + len(skills)
        skills = skills[:MAX_OFFERS]
        return [*map(_command_offer, commands), *(_skill_offer(skill, sign="/") for skill in skills)]


class ShellSource:
    """Offers the user's earlier shell commands; the line is run as it is typed, unless one of them is chosen."""

    title = "runs here as you, outside the sandbox; the model sees what it prints"
    empty = ""
    total = 0

    def opened(self) -> None:
        """The menu opens."""

    def __init__(self, messages: Callable[[], Sequence[str]]) -> None:
        self._messages = messages

    def word_at(self, before: str) -> MenuWord | None:
        is_shell = before.startswith(SHELL) and "\n" not in before
        return MenuWord(len(SHELL), before[len(SHELL) :], is_whole=True) if is_shell else None

    def offers(self, query: str) -> Sequence[MenuOffer]:
        lines = (text[len(SHELL) :].strip() for text in self._messages() if text.startswith(SHELL))
        earlier = [line for line in lines if line and "\n" not in line and line != query.strip()]
        found = best(query, earlier, key=lambda entry: (entry,), limit=None)
        self.total = len(found)
        return [MenuOffer(line, "", line, line) for line in found[:MAX_OFFERS]]


class ShellLine(Value):
    """`!command`: the user's own shell command."""

    command: str


class NoteLine(Value):
    """`#text`: a line for AGENTS.md."""

    note: str


class SkillLine(Value):
    """`/skill …`: a message that uses a skill."""

    skill: Skill
    text: str
    """The message with a mention of the skill."""


class MessageLine(Value):
    """Anything else: a message as it is."""


def read_line(
    text: str, commands: Sequence[SlashCommand], catalog: SkillCatalog
) -> ShellLine | NoteLine | SlashRequest | SkillLine | MessageLine:
    """The meaning of a text without space round it. Raises `UserError` for a sign with nothing right behind it."""
    if text.startswith(SHELL):
        if command := text[len(SHELL) :].strip():
            return ShellLine(command)
        raise UserError("there is no command behind the `!`", hint="`!git status` runs one")
    if note := note_in(text):
        return NoteLine(note)
    if (request := find_command(text, commands)) is not None:
        if complaint := words_unwanted(request):
            raise UserError(complaint)
        return request
    if not looks_like_command(text):
        return MessageLine()
    if found := skill_called(catalog, *split_command(text)):
        return SkillLine(*found)
    word = text.split()[0]
    names = [name for command in commands for name in command.names] + [skill.name for skill in invocable(catalog)]
    near = nearest(word.removeprefix("/"), names)
    raise UserError(f"no command or skill `{word}`", hint=f"did you mean `/{near}`?" if near else "`/help` lists them")


def _fitting(catalog: SkillCatalog, query: str) -> list[Skill]:
    return best(query, invocable(catalog), key=_texts_of, limit=None)


def _texts_of(skill: Skill) -> tuple[str, ...]:
    shown = skill.interface.display_name if skill.interface else None
    return (skill.name, shown) if shown else (skill.name,)


def _skill_offer(skill: Skill, *, sign: str = "$") -> MenuOffer:
    shown = skill.interface.display_name if skill.interface else None
    about = skill.short or skill.description
    hint = f"{skill.options.argument_hint}  " if skill.options.argument_hint else ""
    title = hint + (f"{shown} · {about}" if shown and shown != skill.name else about)
    chip = PickedSkill(skill.name, skill.path)
    mark, prompt = f"${skill.name} ", (skill.interface and skill.interface.default_prompt) or ""
    return MenuOffer(f"{sign}{skill.name}", f"{skill.scope:<6}  {title}", skill.description, mark, chip, prompt=prompt)


def _command_offer(command: SlashCommand) -> MenuOffer:
    hint = f" {command.hint}" if command.hint else ""
    preview = f"/{command.name}{hint}: {command.purpose}"
    insert = f"/{command.name} " if command.hint else f"/{command.name}"
    return MenuOffer(f"/{command.name}", command.purpose, preview, insert, runs=not command.needs_words)


NOTE: Final = "#"
_FILE: Final = "AGENTS.md"
_SEND: Final = "send"


def note_in(text: str) -> str:
    """The line behind the `#` that a message begins with; empty where it is none, as in Markdown of several lines."""
    text = text.strip()
    return text.lstrip(NOTE).strip() if text.startswith(NOTE) and "\n" not in text else ""


async def add_note(context: CommandContext, note: str) -> bool:
    """Ask where the line goes and add it; False when it is to be sent as a message."""
    chosen = await context.asker.choose(note_sheet(context, note))
    if chosen == _SEND:
        return False
    if isinstance(chosen, Path):
        await asyncio.to_thread(append_line, chosen, f"- {note}")
        context.output.note(f"added to {context.show_path(chosen)}; the model has it with your next message")
    return True


def note_sheet(context: CommandContext, note: str) -> Sheet[Path | str | None]:
    """Where the line can go; Enter adds it to the project's file."""
    project, own = _project_file(context), context.launch.home / _FILE

    def describe(path: Path) -> str:
        return f"{context.show_path(path)}, {'at its end' if path.exists() else 'a new file'}"

    return Sheet[Path | str | None](
        title="Add this line to AGENTS.md?",
        subject=(TextLine(f"- {note}", "strong", GUTTER),),
        options=(
            Option("p", "Yes, for this project", project, describe(project)),
            Option("u", "Yes, for all your projects", own, describe(own)),
            Option("m", "No, send it as a message", _SEND),
            Option("n", "No", None),
        ),
        refusal=None,
    )


def append_line(path: Path, line: str) -> None:
    """Add a line at the end of a file, which is made where there is none. Raises `UserError`."""
    # Whoever may write in the project could put a pipe there, which opens when somebody reads it.
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with os.fdopen(os.open(path, flags, 0o644), "rb+", buffering=0) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UserError(f"cannot write `{path}`: it is not a regular file")
            last = os.pread(file.fileno(), 1, max(0, status.st_size - 1))
            file.write((b"" if last in (b"", b"\n") else b"\n") + line.encode() + b"\n")
    except OSError as error:
        raise UserError(f"cannot write `{path}`: {os_reason(error)}") from error


def _project_file(context: CommandContext) -> Path:
    """The nearest file from the working directory up to the root of the project, else the one to make there."""
    root = context.launch.loaded.project_root or context.cwd
    directories = [directory for directory in (context.cwd, *context.cwd.parents) if directory.is_relative_to(root)]
    files = [directory / _FILE for directory in directories]
    return next((file for file in files if file.is_file()), root / _FILE)
