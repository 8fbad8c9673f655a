"""The rules: which one answers a prompt; finding a text, running commands, replacing a text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator
from typing import Final

from codex_py.offline.conversation import Conversation
from codex_py.offline.project_tests import run_tests
from codex_py.offline.prompts import FindText, PlainRequest, ReplaceText, RunCommands, RunTests, read_prompt
from codex_py.offline.repository import describe_repository
from codex_py.offline.skills import command_report, follow_skills
from codex_py.offline.steps import Call, Command, Impossible, OfflinePatch, Result, Rule, next_step, text_rule
from codex_py.offline.wording import ABOUT, GREETING, clip, code, excerpt, needs_model
from codex_py.text.display import counted

_MAX_ANSWER: Final = 24_000
_RUN_MS: Final = 30_000
_SHOWN: Final = 40
_CONTEXT: Final = 3
_NOT_FOUND: Final = 127
# How the host asks for a summary of a conversation that has grown too long.
_SUMMARY_PROMPT: Final = "The conversation above is about to be replaced by a summary"
_SUMMARY: Final = (
    "The rules keep nothing of a conversation, so there is nothing to sum up. The files are as they are now."
)
_MATCH: Final = re.compile(r"(?:\./)?([^\n]+?):(\d{1,9}):(.*)\Z")
_END_OF_LINE: Final = re.compile(r"\r\n|\n|\r")


def answer(conversation: Conversation) -> Call | str:
    """The next tool call, or the text that ends the turn; the same conversation always gets the same one."""
    rule = follow_skills(conversation) if conversation.skills else _rule_for(conversation)
    step = next_step(rule, conversation)
    if isinstance(step, Call) or len(step) <= _MAX_ANSWER:
        return step
    return f"{step[: _MAX_ANSWER // 2]}\n…\n{step[-_MAX_ANSWER // 2 :]}"


def _rule_for(conversation: Conversation) -> Rule:
    if conversation.prompt.startswith(_SUMMARY_PROMPT):
        return text_rule(_SUMMARY)
    match request := read_prompt(conversation.prompt):
        case PlainRequest.DESCRIBE_REPOSITORY:
            return describe_repository()
        case FindText(text):
            return find_text(text)
        case RunTests(target):
            return run_tests(target, conversation.cwd)
        case RunCommands(commands):
            return run_commands(commands)
        case ReplaceText():
            return replace_text(request)
        case PlainRequest.DESCRIBE_SELF:
            return text_rule(ABOUT)
        case PlainRequest.GREET:
            return text_rule(GREETING)
        case PlainRequest.NEEDS_MODEL:
            return text_rule(needs_model(conversation.prompt))


def run_commands(commands: tuple[str, ...]) -> Rule:
    """Run each command in its turn; the first that fails ends the row."""
    reports: list[str] = []
    for position, command in enumerate(commands):
        result = yield Command(command, _RUN_MS)
        reports.append(command_report(command, result))
        if not result.is_ok and (left := commands[position + 1 :]):
            reports.append(f"Not run after that: {', '.join(map(code, left))}.")
            break
    return "\n\n".join(reports)


def find_text(text: str) -> Rule:
    """Search the contents of files as fixed text, without regard to case when the exact text is nowhere."""
    note = ""
    result = yield from _search(f"-n -F -e {shlex.quote(text)}")
    if not result.lines:
        result = yield from _search(f"-n -i -F -e {shlex.quote(text)}")
        note = " when upper and lower case are taken as the same"
    found = [match for line in result.lines if (match := _MATCH.match(line))]
    if not found:
        return f"{code(clip(text, 120))} is nowhere in the files here (hidden files included, ignored ones not)."
    files = {match[1] for match in found}
    prefix = "at least " if result.is_truncated else ""
    lines = [
        f"{code(clip(text, 120))} is on {prefix}{counted(len(found), 'line')} in {counted(len(files), 'file')}{note}:",
        "",
    ]
    lines += [f"- `{match[1]}:{match[2]}`: {code(clip(match[3], 160))}" for match in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"- … and {counted(len(found) - _SHOWN, 'more line')}")
    return "\n".join(lines)


def _search(options: str) -> Generator[Command | OfflinePatch, Result, Result]:
    result = yield Command(f"rg --no-heading --color=never --hidden --glob '!.git' --max-columns 300 {options} .")
    if result.exit_code == _NOT_FOUND:
        skipped = " ".join(f"--exclude-dir={name}" for name in (".git", "node_modules", ".venv"))
        result = yield Command(f"grep -rI {skipped} {options} .")
    if result.exit_code == _NOT_FOUND:
        raise Impossible("I could not search the files: neither `rg` nor `grep` is there.")
    return result


def replace_text(request: ReplaceText) -> Rule:
    """Replace a text in the file that is named, or in the only one that has it, by a patch."""
    old, new = request.old, request.new
    if len(_lines(old)) > 1:
        return "The rules replace a text within a line only. Replacing several lines at once needs a real model."
    file = request.file
    if not file:
        names = sorted(line.removeprefix("./") for line in (yield from _search(f"-l -F -e {shlex.quote(old)}")).lines)
        if not names:
            return f"{code(old)} is nowhere in the files here, so there is nothing to replace."
        if len(names) > 1:
            listed = "\n".join(f"- {code(name)}" for name in names[:20])
            head = f"{code(old)} is in {counted(len(names), 'file')}, and nothing was changed. Say in which file:"
            return f"{head}\n\n{listed}"
        file = names[0]
    read = yield Command(f"cat -- {shlex.quote(file)}")
    if not read.is_ok or read.is_truncated:
        why = "too long for these rules" if read.is_ok else clip(read.text, 160)
        return f"{code(file)} was not changed: {why}."
    lines = _lines(read.text.removeprefix("\ufeff"))
    changed = [index for index, line in enumerate(lines) if old in line]
    if not changed:
        done = f" ({code(new)} is there already)" if new and any(new in line for line in lines) else ""
        return f"{code(old)} is not in {code(file)}{done}, so it was not changed."
    patch = patch_for(file, lines, old, new)
    result = yield OfflinePatch(patch)
    number = sum(lines[index].count(old) for index in changed)
    if "Success. Updated the following files" not in result.text:
        why = "the sandbox does not allow writing there. Run again with `-s workspace-write`"
        why = why if result.is_denied else f"the patch was refused: {clip(result.text, 300)}"
        would = f"It would have replaced {counted(number, 'occurrence')} of {code(old)}:\n\n{excerpt(patch)}"
        return f"{code(file)} was not changed: {why}.\n\n{would}"
    again = yield Command(f"cat -- {shlex.quote(file)}")
    planned = _lines("\n".join(line.replace(old, new) for line in lines))
    is_as_planned = _lines(again.text.removeprefix("\ufeff")) == planned
    checked = "" if is_as_planned else " Reading it again shows something else, so look at it."
    line_numbers = ", ".join(str(index + 1) for index in changed[:12]) + (", …" if len(changed) > 12 else "")
    action = f"Replaced {code(old)} with {code(new)}" if new else f"Removed {code(old)}"
    return f"{action} in {code(file)}: {counted(number, 'occurrence')} (line {line_numbers}).{checked}"


def patch_for(file: str, lines: list[str], old: str, new: str) -> str:
    """The patch that replaces every `old` in the lines of a file.

    All lines that hold `old` change, in their order, so the first line that fits a hunk is always the one meant.
    """
    hunks: list[str] = []
    shown = 0
    for index, line in enumerate(lines):
        if old not in line:
            continue
        if not hunks or index - shown > _CONTEXT:
            # The lines behind the change before end its hunk.
            hunks += [f" {row}" for row in lines[shown : min(shown + _CONTEXT, index)]] if hunks else []
            shown = max(min(shown + _CONTEXT, index) if hunks else 0, index - _CONTEXT)
            hunks.append("@@")
        hunks += [f" {row}" for row in lines[shown:index]]
        hunks.append(f"-{line}")
        hunks += [f"+{row}" for row in _lines(line.replace(old, new))]
        shown = index + 1
    hunks += [f" {row}" for row in lines[shown : shown + _CONTEXT]]
    return "\n".join(["*** Begin Patch", f"*** Update File: {file}", *hunks, "*** End Patch"])


def _lines(text: str) -> list[str]:
    """The lines of a text the way a patch sees them; the last may lack its end."""
    lines = _END_OF_LINE.split(text)
    return lines[:-1] if lines[-1] == "" and len(lines) > 1 else lines
