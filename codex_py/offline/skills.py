"""Following an injected skill: its shell blocks run in their order; its prose is left to a real model."""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from codex_py.offline.conversation import Conversation, InjectedSkill
from codex_py.offline.steps import Command, OfflinePatch, Result, Rule
from codex_py.offline.wording import clip, code, excerpt
from codex_py.text.display import counted

SHELL_LANGUAGES: Final = frozenset(("sh", "bash", "shell", "zsh", "console", "shell-session", "terminal"))
_RUN_MS: Final = 30_000
_FENCE: Final = re.compile(r"((?:[-*+] {1,4}|\d{1,3}[.)] {1,4})?)(`{3,}|~{3,})[ \t]*([^`\n]*)\Z")
_FRONT_MATTER: Final = re.compile(r"\A\ufeff?---[ \t]*\n(?:(?!---[ \t]*\n)[^\n]*\n)*---[ \t]*(?:\n|\Z)")
_PLACEHOLDER: Final = re.compile(
    r"(?<!<)<[A-Za-z][\w.-]*(?:[ |][\w.-]+)*>(?!>)|\{\{ ?[A-Za-z][\w.-]* ?\}\}|\bYOUR_[A-Z_]+\b"
)
_SKILL_DIR: Final = re.compile(r"\$\{?(?:CLAUDE_|CODEX_)?SKILL_(?:DIR|ROOT|PATH)\}?|<skill[-_ ]dir>|\{baseDir\}")
_PATH: Final = re.compile(r"(?<![\w./~-])(?:\./)?[\w@%+.-]+(?:/[\w@%+.-]+)+")


class Fence(NamedTuple):
    """A fenced block: the first word behind its fence in lower case, and its text."""

    language: str
    text: str


def follow_skills(conversation: Conversation) -> Rule:
    """Run the shell blocks of every injected skill; the first that fails ends it."""
    reports: list[str] = []
    for skill in conversation.skills:
        report, is_ok = yield from _follow(skill)
        reports.append(report)
        if not is_ok:
            break
    return "\n\n".join(reports)


def fences(markdown: str) -> list[Fence]:
    """The top-level fenced blocks in order; a block inside a longer fence is text. An unclosed one runs to the end."""
    found: list[Fence] = []
    mark, language, indent = "", "", 0
    inside: list[str] = []
    for line in [*markdown.replace("\r\n", "\n").split("\n"), ""]:
        stripped = line.strip()
        if mark and stripped.startswith(mark) and not stripped.strip(mark[0]):
            found.append(Fence(language, "\n".join(inside)))
            mark = ""
        elif mark:
            inside.append(line[min(indent, len(line) - len(line.lstrip())) :])
        elif opening := _FENCE.match(line.lstrip(" \t")):
            indent, mark = len(line) - len(line.lstrip()) + len(opening[1]), opening[2]
            language = (opening[3].split() or [""])[0].strip("{}.").lower()
            inside = []
    if mark and any(inside):
        found.append(Fence(language, "\n".join(inside).rstrip()))
    return found


def shell_text(fence: Fence) -> str:
    """What to run: where a block shows prompts, the lines behind them; otherwise the whole block."""
    lines = fence.text.strip().split("\n")
    typed = [line.strip()[2:] for line in lines if line.strip().startswith("$ ")]
    return "\n".join(typed) if typed else "\n".join(lines)


def command_report(command: str, result: Result) -> str:
    """How a command ended, what it printed, and what to do about a failure whose cause is plain."""
    shown = "The block" if "\n" in command else code(command)
    output = excerpt(result.text)
    if result.session_id is not None:
        return f"{shown} is still running (session {result.session_id}). So far it printed:\n\n{output}"
    head = f"{shown} {'finished' if result.is_ok else 'failed'} with exit code {result.exit_code}"
    texts = [f"{head}:", output] if output else [f"{head} and printed nothing."]
    if not result.is_ok and result.is_denied:
        texts.append("The sandbox refused something; `-s workspace-write` allows writing in the working directory.")
    elif result.exit_code == 127:
        texts.append("The shell did not find the program: is it installed, and on `PATH`?")
    return "\n\n".join(texts)


def _follow(skill: InjectedSkill) -> Generator[Command | OfflinePatch, Result, tuple[str, bool]]:
    body = _FRONT_MATTER.sub("", skill.body.replace("\r\n", "\n"))
    blocks = [text for fence in fences(body) if fence.language in SHELL_LANGUAGES and (text := shell_text(fence))]
    name = clip(skill.name, 80)
    if not blocks:
        return f"Skill `{name}` has no shell block that I could run. Following its prose needs a real model.", True
    blocks = yield from _with_full_paths(blocks, skill)
    lines: list[str] = []
    for number, block in enumerate(blocks, 1):
        step = f"**Step {number} of {len(blocks)}.**"
        if missing := list(dict.fromkeys(_PLACEHOLDER.findall(block))):
            lines.append(f"{step} Skipped: filling in {', '.join(map(code, missing))} needs a real model.")
            continue
        # A block of several lines ends at its first failing line.
        result = yield Command(f"set -e\n{block}" if "\n" in block else block, _RUN_MS)
        lines.append(f"{step} {command_report(block, result)}")
        if not result.is_ok:
            lines.append(f"I stopped at this step. Steps left: {len(blocks) - number}.")
            return "\n\n".join([f"Skill `{name}`:", *lines]), False
    lines.append("I ran the shell blocks only: following the text around them needs a real model.")
    return "\n\n".join([f"Skill `{name}` has {counted(len(blocks), 'shell block')}:", *lines]), True


def _with_full_paths(blocks: list[str], skill: InjectedSkill) -> Generator[Command | OfflinePatch, Result, list[str]]:
    """Name the skill's own files by their full path, because commands run in the working directory."""
    if not skill.path.startswith("/"):
        return blocks
    directory = str(PurePosixPath(skill.path).parent)
    listed = yield Command(f"find {shlex.quote(directory)} -maxdepth 5 -type f -print | head -n 500")
    files = {line.removeprefix(f"{directory}/") for line in listed.lines}

    def full_path(found: re.Match[str]) -> str:
        path = found[0].removeprefix("./")
        return shlex.quote(f"{directory}/{path}") if path in files else found[0]

    return [_PATH.sub(full_path, _SKILL_DIR.sub(lambda _: shlex.quote(directory), block)) for block in blocks]
