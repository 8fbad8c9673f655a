"""Following an injected skill: its shell blocks are run in order; its prose is only shown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from codex_py.offline.conversation import Conversation, Skill
from codex_py.offline.fences import SHELL_LANGUAGES, fences, shell_text
from codex_py.offline.pattern import Pattern
from codex_py.offline.placeholders import fill
from codex_py.offline.result import Result
from codex_py.offline.run import report_command
from codex_py.offline.script import Command, Outline, Request, Script, ask, look
from codex_py.offline.text import clip, count, ticked

_PATIENCE: Final = 30_000
_FRONT_MATTER: Final = Pattern(r"\A\ufeff?---[ \t]*\n(?:(?!---[ \t]*\n)[^\n]*\n)*---[ \t]*(?:\n|\Z)")
_NUMBERED: Final = Pattern(r"^ {0,3}\d{1,3}[.)] +(\S[^\n]*)$", re.MULTILINE)
_BULLET: Final = Pattern(r"^[-*+] +(\S[^\n]*)$", re.MULTILINE)
_TITLE: Final = Pattern(r"^#{2,4} +(\S[^\n]*)$", re.MULTILINE)
_TOKEN: Final = Pattern(r"[\w@%+./~-]+")
_INTERPRETED: Final = Pattern(r"\b(?:bash|sh|zsh|source|python3?|node|ruby|perl)\s+\Z")
_ASSIGNMENT: Final = Pattern(r"^[ \t]*(?:export[ \t]+)?[A-Za-z_]\w*=(?!=)[^\n]*$", re.MULTILINE)
_SKILL_FOLDER: Final = Pattern(
    r"\$\{?(?:SKILL_DIR|SKILL_ROOT|SKILL_PATH|CLAUDE_SKILL_DIR|CODEX_SKILL_DIR)\}?|\{\{? ?(?:baseDir|"
    r"skill_?[dD]ir)\ ?\}?\}|<skill[-_ ]dir>",
    re.IGNORECASE,
)


class _Block(NamedTuple):
    """A shell block ready to run, or the placeholders that could not be filled."""

    text: str
    unfilled: tuple[str, ...]


def follow(conversation: Conversation) -> Script:
    """Run the shell blocks of every injected skill; the first step that fails ends it."""
    reports: list[str] = []
    for skill in conversation.skills:
        report, went_well = yield from _follow_one(conversation, skill)
        reports.append(report)
        if not went_well:
            break
    return "\n\n".join(reports)


def _follow_one(
    conversation: Conversation, skill: Skill
) -> Generator[tuple[Request, ...], tuple[Result, ...], tuple[str, bool]]:
    body = _FRONT_MATTER.sub("", skill.body.replace("\r\n", "\n"))
    shell = [text for fence in fences(body) if fence.language in SHELL_LANGUAGES and (text := shell_text(fence))]
    if not shell:
        return (yield from _show_steps(conversation, skill, body)), True
    folder = str(PurePosixPath(skill.path).parent) if skill.path.startswith("/") else ""
    own_files = yield from _files_of(folder)
    blocks = _prepare(shell, conversation.prompt, folder, own_files)
    lines: list[str] = []
    ran = 0
    for number, block in enumerate(blocks, 1):
        label = f"**Step {number} of {len(blocks)}.**"
        if block.unfilled:
            names = ", ".join(map(ticked, block.unfilled))
            lines.append(f"{label} Skipped: {names} is not filled in, and your message does not say with what.")
            continue
        result = yield from ask(Command(_stopping(block.text), None, patience=_PATIENCE))
        ran += 1
        lines.append(f"{label} {report_command(block.text, result, conversation.cwd)}")
        if not result.ok:
            left = len(blocks) - number
            lines.append(
                f"I stopped at this step; {count(left, 'step')} after it not run."
                if left
                else "That was the last step."
            )
            return "\n\n".join([_head(skill, blocks, ran), *lines]), False
    lines.append("The text around the blocks was not read: following prose needs a real model.")
    return "\n\n".join([_head(skill, blocks, ran), *lines]), True


def _head(skill: Skill, blocks: list[_Block], ran: int) -> str:
    return f"Skill `{clip(skill.name, 80)}`: it has {count(len(blocks), 'shell block')}, of which {ran} ran."


def _stopping(block: str) -> str:
    """A block of several lines ends at its first failing line."""
    return f"set -e\n{block}" if "\n" in block else block


def _files_of(folder: str) -> Generator[tuple[Request, ...], tuple[Result, ...], frozenset[str]]:
    if not folder:
        return frozenset()
    listed = yield from look(
        f"find {shlex.quote(folder)} -maxdepth 5 -name .git -prune -o -type f -print | head -n 500"
    )
    return frozenset(line.removeprefix(f"{folder}/") for line in listed.lines)


def _prepare(shell: list[str], prompt: str, folder: str, own_files: frozenset[str]) -> list[_Block]:
    """Fill in what the prompt and the skill's place tell; variables of earlier blocks are set again in later ones."""
    blocks: list[_Block] = []
    earlier: list[str] = []
    for text in shell:
        placed = _SKILL_FOLDER.sub(lambda _: shlex.quote(folder), text) if folder else text
        placed = _with_own_paths(placed, folder, own_files) if own_files else placed
        filled = fill(placed, prompt, known="\n".join(earlier))
        blocks.append(_Block(filled.text, filled.unfilled))
        if not filled.unfilled:
            earlier += _ASSIGNMENT.findall(placed)
    return blocks


def _with_own_paths(text: str, folder: str, own_files: frozenset[str]) -> str:
    """Name the skill's own files by their full path: commands run in the working directory."""
    own_folders = {str(parent) for file in own_files for parent in PurePosixPath(file).parents} - {"."}

    def placed(found: re.Match[str]) -> str:
        token = found[0].removeprefix("./").rstrip("/")
        before = text[max(0, found.start() - 20) : found.start()]
        # A bare name more likely means a file of the project, unless it is handed to an interpreter.
        named_by_path = "/" in found[0] or _INTERPRETED.search(before) is not None
        if not named_by_path or (token not in own_files and token not in own_folders):
            return found[0]
        path = f"{folder}/{token}"
        return path if before[-1:] in ("'", '"') else shlex.quote(path)

    return _TOKEN.sub(placed, text)


def _show_steps(
    conversation: Conversation, skill: Skill, body: str
) -> Generator[tuple[Request, ...], tuple[Result, ...], str]:
    """A skill of prose alone: its steps as a plan, undone."""
    found = _NUMBERED.findall(body) or _BULLET.findall(body) or _TITLE.findall(body)
    steps = [clip(step, 160) for step in found[:20]]
    if steps and "update_plan" in conversation.tools:
        yield from ask(Outline(tuple(steps)))
    listed = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
    name = clip(skill.name, 80)
    head = f"Skill `{name}` has no shell block that these rules could run"
    told = f"{head}. Its steps, none of them done:\n\n{listed}" if steps else f"{head}, and no list of steps."
    return f"{told}\n\nFollowing a skill's prose needs a real model (ask me “how do I connect a model”)."
