"""Typing into a command that was left running; the user is asked where that is needed."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import Any, Final

from codex_py.errors import ToolError
from codex_py.process.session import RunningCommand
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.events import CommandInput
from codex_py.protocol.policy import DangerFullAccess
from codex_py.protocol.questions import ApprovalMissing, ApprovalQuestion
from codex_py.protocol.value import Value
from codex_py.shell.command_line import ShellCommand
from codex_py.shell.runners import SHELLS, reads_script_from_input
from codex_py.text.sanitize import sanitize_command, sanitize_line
from codex_py.tools.approval import (
    Approvals,
    ApprovalVerdict,
    AskVerdict,
    CommandFacts,
    RefuseVerdict,
    decide_input,
    decide_typed,
    declined_because,
    put_question,
)
from codex_py.tools.command_output import MAX_YIELD_MS, MIN_YIELD_MS, compose_reply, standing_of
from codex_py.tools.escalation import find_danger_here
from codex_py.tools.spec import PLANNING, ToolContext, ToolOutput

# As much of the line of a running command as a question about its input shows: the user has seen all of it before.
_SHOWN_LINE: Final = 200
# Ctrl-C and Ctrl-D.
_ENDING_KEYS: Final = "\x03\x04"
# Keys that move or send are no part of what a shell reads, nor are the marks round a paste.
_KEYS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")
_PASTE: Final = re.compile(r"\x1b\[20[01]~")
_MAX_LINE_LENGTH: Final = 64 * 1024
_CTRL_C: Final = "\x03"
_FAILED: Final = "write_stdin failed"
# Programs that run a shell unless another program is named.
_SHELL_STARTERS: Final = frozenset(("screen", "script", "ssh", "su", "tmux"))


class StdinArguments(Value):
    """The fields of a call of `write_stdin`; what they mean stands in its spec."""

    session_id: int
    chars: str = ""
    yield_time_ms: int = 0
    max_output_tokens: int = 10_000


async def type_and_wait(fields: dict[str, Any], context: ToolContext, poll_ms: tuple[int, int]) -> ToolOutput:
    """Type, wait until the command ends or the time is over, and answer with the new output.

    `poll_ms` is the shortest and the longest time in milliseconds that a call without typing waits.
    """
    arguments = StdinArguments(**fields)
    chars = arguments.chars
    session = _live(arguments.session_id, context)
    _check_plan(chars, session, context)
    if chars and session.tty:
        await _permit_input(chars, session, context)
    await context.expect_write()
    context.emit(CommandInput(session.call_id, session.line, chars))
    began = time.monotonic()
    if chars:
        _type(session, chars)
        _note_typed(chars, session)
    least, most = (MIN_YIELD_MS, MAX_YIELD_MS) if chars else poll_ms
    await session.wait(max(least, min(arguments.yield_time_ms, most)) / 1000)
    captured = session.take()
    reply = compose_reply(
        captured,
        captured.text(),
        standing=standing_of(session.exit_code, session.id),
        seconds=time.monotonic() - began,
        max_tokens=arguments.max_output_tokens,
        cap=context.output_tokens,
    )
    if session.exit_code is not None:
        context.processes.forget(session)
    return ToolOutput(reply)


def _check_plan(text: str, session: RunningCommand, context: ToolContext) -> None:
    """In plan mode only a command that can write nothing may be typed into; raises `ToolError`."""
    if context.plan and not session.read_only and text.strip(_ENDING_KEYS):
        raise ToolError(f"{PLANNING}: session `{session.id}` was started before it, and what it does is not held back")


async def _permit_input(text: str, session: RunningCommand, context: ToolContext) -> None:
    """Ask where that is needed; `ToolError` after a refusal.

    For a command outside of the sandbox each input is asked about. Inside, and with full access, only input that a
    shell would run is checked, against the rules and the guard against accidents.
    Keys that only interrupt or end a command need no question anywhere.
    """
    outside = session.outside and not isinstance(context.sandbox_policy, DangerFullAccess)
    if not text.strip(_ENDING_KEYS) or not (outside or await asyncio.to_thread(_is_shell, session, context)):
        return
    # No piece of a line says what it comes to.
    text = session.typed + text
    facts = await asyncio.to_thread(_facts, text, session.cwd, context)
    approvals = context.approvals or Approvals()
    key = ("input", session.id, text)
    async with approvals.lock:
        verdict = _verdict(facts, session, context, approvals, outside=outside)
        if isinstance(verdict, RefuseVerdict):
            if verdict.unasked is not None:
                context.emit(ApprovalMissing(context.call_id, verdict.unasked.reason))
            raise ToolError(verdict.reason)
        if not isinstance(verdict, AskVerdict) or approvals.is_allowed(key):
            return
        question = ApprovalQuestion(
            id=uuid7(),
            call_id=context.call_id,
            command=sanitize_command(text),
            cwd=session.cwd,
            reason=verdict.reason,
            outside=verdict.outside,
        )
        reply = await put_question(question, context.ask)
        if reply.scope is None:
            raise ToolError(f"input {declined_because(reply)}")
        if reply.scope == "session":
            approvals.allow(key)


def _note_typed(text: str, session: RunningCommand) -> None:
    """Keep what was typed since the last end of a line, for the judgement on what follows."""
    whole = (session.typed + text).replace("\r", "\n")
    *ended, line = _edited(whole).split("\n")
    while ended and ended[-1].endswith("\\"):
        line = f"{ended.pop()}\n{line}"
    session.typed = line[:_MAX_LINE_LENGTH]


def _verdict(
    facts: CommandFacts, session: RunningCommand, context: ToolContext, approvals: Approvals, *, outside: bool
) -> ApprovalVerdict:
    can_ask = context.ask is not None
    typed = decide_typed(facts, approvals.rules, policy=context.approval, can_ask=can_ask)
    if not outside:
        return typed
    line = sanitize_line(session.line[:_SHOWN_LINE])
    verdict = decide_input(line, facts.danger, policy=context.approval, can_ask=can_ask)
    return typed if isinstance(typed, RefuseVerdict) and isinstance(verdict, AskVerdict) else verdict


def _facts(text: str, directory: Path, context: ToolContext) -> CommandFacts:
    line = context.read_command_line(_KEYS.sub("\n", _edited(text)), directory)
    return CommandFacts(None, hidden=line.every_reading(), danger=find_danger_here(line, context))


def _edited(text: str) -> str:
    """What is left of lines after the keys that delete in them: a character, a word, or all of the line."""
    text = _PASTE.sub("", text)
    if not any(key in text for key in "\x03\x08\x15\x17\x7f"):
        return text
    remaining: list[str] = []
    start = 0
    for key in text:
        if key in "\r\n":
            remaining.append(key)
            start = len(remaining)
        elif key in "\x08\x7f":
            del remaining[max(start, len(remaining) - 1) :]
        elif key == "\x17":
            while len(remaining) > start and remaining[-1] == " ":
                remaining.pop()
            while len(remaining) > start and remaining[-1] != " ":
                remaining.pop()
        elif key in "\x03\x15":
            del remaining[start:]
        else:
            remaining.append(key)
    return "".join(remaining)


def _is_shell(session: RunningCommand, context: ToolContext) -> bool:
    """Whether a command runs a shell that reads what is typed."""
    return any(map(_starts_shell, context.read_command_line(session.line, session.cwd).commands))


def _starts_shell(command: ShellCommand) -> bool:
    if command.program in SHELLS:
        return reads_script_from_input(command.words)
    return command.program in _SHELL_STARTERS


def _live(session_id: int, context: ToolContext) -> RunningCommand:
    try:
        return context.processes.get(session_id)
    except ToolError as error:
        raise ToolError(f"{_FAILED}: {error}") from error


def _type(session: RunningCommand, chars: str) -> None:
    if not chars.strip(_CTRL_C) and not session.tty:
        session.interrupt()
    elif session.exit_code is None:
        try:
            session.write(chars.encode("utf-8", "replace"))
        except ToolError as error:
            raise ToolError(f"{_FAILED}: {error}") from error
