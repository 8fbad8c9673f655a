"""The way every command and every patch goes: verdict, question, attempt, and when the sandbox stopped it, once more.

Imported at the first call; what it decides by is in `tools.approval`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.errors import ToolError, UserError
from codex_py.process.env import find_executable
from codex_py.process.shells import join_words
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.events import CommandFinished, Warned
from codex_py.protocol.policy import DangerFullAccess
from codex_py.protocol.questions import ApprovalMissing, ApprovalQuestion, ApprovalReply, ApprovalScope
from codex_py.protocol.value import Value
from codex_py.shell.command_line import Words
from codex_py.shell.known_safe import BUILTINS, is_known_safe
from codex_py.text.sanitize import sanitize_command, sanitize_line
from codex_py.tools.approval import (
    Approvals,
    ApprovalVerdict,
    AskVerdict,
    CommandFacts,
    RefuseVerdict,
    RunVerdict,
    asks_after_denial,
    decide_command,
    declined_because,
    put_question,
    suggest_pattern,
)
from codex_py.tools.escalation import (
    RulesInForce,
    bound_files,
    changed_files,
    explain_owner,
    explain_protected,
    find_danger_here,
    finder_of,
    looks_denied,
    outside_context,
    rules_in_force,
    unagreed,
    writable_programs,
)
from codex_py.tools.git_refusals import explain_git
from codex_py.tools.spec import PLANNING, CallFailed, ToolContext, ToolOutput

_LONG_SCRIPT: Final = 4096
# So often a question is put again because a file changed meanwhile.
_MAX_QUESTIONS: Final = 3
# What could make a command that only reads start a program of somebody's choice.
_STEERING: Final = re.compile(
    r"(GIT_|LD_|DYLD_|PYTHON|BASH_FUNC_)|(PAGER|BASH_ENV|ENV|ZDOTDIR|RIPGREP_CONFIG_PATH|CDPATH|SHELLOPTS|BASHOPTS)\Z"
)
_TRUSTED_SHELLS: Final = frozenset(
    f"{directory}/{name}" for directory in ("/bin", "/usr/bin") for name in ("bash", "sh", "zsh")
)


class CommandToRun(Value):
    """A command as it would run: `shell` is the path or the name of the shell that reads `script`.

    `line` is the exact command line, shell-quoted.
    """

    script: str
    shell: str
    workdir: Path
    line: str
    escalated: bool = False
    justification: str = ""
    requested_pattern: tuple[str, ...] = ()


class AttemptResult(NamedTuple):
    """The result of one attempt; `exit_code` is that of a sandboxed command that has ended."""

    output: ToolOutput
    exit_code: int | None = None

    @property
    def denied(self) -> bool:
        """Whether the sandbox seems to have stopped it."""
        return self.exit_code is not None and looks_denied(self.exit_code, self.output.text)


Attempt = Callable[[ToolContext], Awaitable[AttemptResult]]


async def orchestrate_command(command: CommandToRun, context: ToolContext, attempt: Attempt) -> ToolOutput:
    """Run `attempt` if the command may run, in the context it may run in; raise `ToolError` if it may not."""
    orchestrator = _Orchestrator(command, context)
    run = await orchestrator.permit()
    if not orchestrator.only_reads:
        await context.expect_write()
    first = await attempt(orchestrator.context_for(run))
    if orchestrator.only_reads and isinstance(first.output.ended, CommandFinished):
        ended = first.output.ended.replace(only_reads=True)
        first = first._replace(output=first.output.replace(ended=ended))
    if not run.outside:
        await orchestrator.keep_own_changes()
    if first.exit_code is not None:
        text = first.output.text
        reason = explain_protected(text, context.sandbox.protected) if first.exit_code else ""
        reason += explain_git(text, first.exit_code, orchestrator.commands, context) + explain_owner(text, context)
        first = first._replace(output=first.output.replace(text=text + reason))
    if not first.denied or not asks_after_denial(context.approval, can_ask=context.ask is not None):
        return first.output
    if first.output.ended is not None:
        context.emit(first.output.ended)
    if not await orchestrator.permit_outside():
        return first.output
    return (await attempt(orchestrator.context_for(RunVerdict(outside=True)))).output


class _Orchestrator:
    """One command on its way."""

    def __init__(self, command: CommandToRun, context: ToolContext) -> None:
        self._command = command
        self._context = context
        self._approvals = context.approvals or Approvals()
        self._facts = CommandFacts(None)
        self._rules = RulesInForce(self._approvals.rules)

    @property
    def only_reads(self) -> bool:
        """Whether it is known to change nothing."""
        return self._facts.only_reads

    @property
    def commands(self) -> Sequence[Words]:
        """The commands of the script, as far as they are known."""
        return self._facts.segments or self._facts.hidden

    async def permit(self) -> RunVerdict:
        """How it may run, the user asked where that is needed. Raises `ToolError`."""
        self._facts = await self._find_facts()
        async with self._approvals.lock:
            self._rules = await self._rules_now()
            if self._may_leave():
                self._facts = await self._with_programs()
            verdict = _within_plan(self._decide()) if self._context.plan else self._decide()
            match verdict:
                case RunVerdict():
                    return verdict
                case RefuseVerdict(reason, unasked, lacks_sandbox=lacks):
                    if unasked is not None and not lacks:
                        self._context.emit(ApprovalMissing(self._context.call_id, unasked.reason))
                    if lacks:
                        advice = self._context.sandbox.advice(self._facts.shortfall or "")
                        self._context.emit(Warned(advice, code="sandbox_missing"))
                    raise self._refused(reason)
                case AskVerdict():
                    reply = await self._ask_user(verdict)
                    if reply.scope is not None:
                        return RunVerdict(outside=verdict.outside)
                    raise self._refused(f"command {declined_because(reply)}")

    async def permit_outside(self) -> bool:
        """After the sandbox has stopped it: whether it may run once more, outside."""
        if self._context.plan:
            return False
        async with self._approvals.lock:
            verdict = AskVerdict("the sandbox seems to have stopped it; run it again outside?", outside=True)
            return (await self._ask_user(verdict)).scope is not None

    def context_for(self, run: RunVerdict) -> ToolContext:
        """The context that the command runs in."""
        context = self._context
        if run.outside:
            return outside_context(context, self._facts.writable)
        return context.replace(env=_without_steering(context.env)) if run.clear_env else context

    def _is_saved(self, verdict: AskVerdict) -> bool:
        """Whether a hook's yes answers it: not what leads outside, nor what a rule or a danger makes a question."""
        return not verdict.outside and verdict.kind != "rules" and self._facts.danger is None

    def _decide(self) -> ApprovalVerdict:
        context = self._context
        # A hook's yes stands for an answer, also where nobody could give one.
        if_allowed = self._decide_if(can_ask=True) if context.allowed else None
        if isinstance(if_allowed, AskVerdict) and self._is_saved(if_allowed):
            return RunVerdict()
        return self._decide_if(can_ask=context.ask is not None)

    def _decide_if(self, *, can_ask: bool) -> ApprovalVerdict:
        context = self._context
        return decide_command(
            self._facts,
            self._rules.rules,
            policy=context.approval,
            sandbox=context.sandbox_policy,
            can_ask=can_ask,
        )

    async def _find_facts(self) -> CommandFacts:
        if len(self._command.script) < _LONG_SCRIPT:
            return find_facts(self._command, self._context)
        return await asyncio.to_thread(find_facts, self._command, self._context)

    def _may_leave(self) -> bool:
        """Whether an answer or a rule could take it out of the sandbox."""
        context = self._context
        asks_again = asks_after_denial(context.approval, can_ask=context.ask is not None)
        return self._facts.escalated or asks_again or any(rule.sandbox_off for rule in self._rules.rules.rules)

    async def _with_programs(self) -> CommandFacts:
        """The facts with the programs that commands may write, which count where it leaves the sandbox."""
        facts = self._facts
        commands = (*(facts.segments or ()), *facts.hidden)
        writable = await asyncio.to_thread(writable_programs, commands, self._command.shell, self._context)
        return facts.replace(writable=writable, unagreed=unagreed(writable, self._approvals.rules.executables))

    async def keep_own_changes(self) -> None:
        """Keep an approval for the session valid after the command, sandboxed, has changed files that it names."""
        key = self._key(outside=False)
        if self._approvals.is_allowed(key) and not isinstance(self._context.sandbox_policy, DangerFullAccess):
            self._approvals.allow(key, await self._files([self._command.script]))

    async def _ask_user(self, verdict: AskVerdict) -> ApprovalReply:
        """The answer of the user, now or earlier in the session, about the files as they are when it is given."""
        files = await self._files([self._command.script])
        allowed = self._approvals.allowed_files(self._key(outside=verdict.outside))
        if allowed == files:
            return ApprovalReply("session")
        since = "since you allowed it for this session"
        changed = self._rules.changed if allowed is None else changed_files(allowed, files)
        if allowed is None:
            since = "since you made a rule for it"
        for _ in range(_MAX_QUESTIONS):
            reply = await self._put(verdict, f"{changed} changed {since}: " if changed else "")
            now = await self._files([self._command.script])
            if reply.scope is None or now == files:
                return await self._remember(reply, verdict, files)
            changed, since, files = changed_files(files, now), "while you were asked", now
        return ApprovalReply(refusal=f"refused: {changed} changed each time the user was asked about it")

    async def _put(self, verdict: AskVerdict, change_note: str) -> ApprovalReply:
        command, approvals = self._command, self._approvals
        pattern = self._pattern(verdict)
        scopes: tuple[ApprovalScope, ...] = ("once", "session")
        if pattern and approvals.can_store:
            scopes = ("once", "session", "project", "always")
        question = ApprovalQuestion(
            id=uuid7(),
            call_id=self._context.call_id,
            command=sanitize_command(command.line),
            cwd=command.workdir,
            reason=change_note + "; ".join([verdict.reason, *map(_where, self._writable(outside=verdict.outside))]),
            justification=command.justification,
            outside=verdict.outside,
            pattern=pattern if len(scopes) > 2 else (),
            scopes=scopes,
        )
        return await put_question(question, self._context.ask)

    async def _remember(self, reply: ApprovalReply, verdict: AskVerdict, files: tuple[str, ...]) -> ApprovalReply:
        """Remember an approval for as long as the user chose."""
        match reply.scope:
            case "session":
                self._approvals.allow(self._key(outside=verdict.outside), files)
            case "project" | "always" as scope:
                await self._store_rule(
                    self._edited_pattern(reply, self._pattern(verdict), verdict), scope, sandbox_off=verdict.outside
                )
            case "once" | None:
                pass
        return reply

    def _key(self, *, outside: bool) -> tuple[str, Path, bool, Words]:
        return (self._command.line, self._command.workdir, outside, self._writable(outside=outside))

    def _writable(self, *, outside: bool) -> Words:
        # What is agreed to are programs, not their names: another one in the place of the first is another question.
        return self._facts.writable if outside else ()

    async def _files(self, words: Sequence[str]) -> tuple[str, ...]:
        return await asyncio.to_thread(bound_files, words, self._command.workdir, self._context)

    async def _rules_now(self) -> RulesInForce:
        rules = self._approvals.rules
        if all(rule.files is None for rule in rules.rules):
            return RulesInForce(rules)
        return await asyncio.to_thread(
            rules_in_force, rules, self._facts.segments, self._command.workdir, self._context
        )

    def _edited_pattern(self, reply: ApprovalReply, offered: Words, verdict: AskVerdict) -> Words:
        """The pattern as the user has edited it, unless it does not cover this command or allows far more."""
        if not reply.pattern or reply.pattern == offered:
            return offered
        if suggest_pattern(self._facts.segments, reply.pattern, self._free(verdict)) == reply.pattern:
            return reply.pattern
        shown = sanitize_line(join_words(reply.pattern))
        self._context.emit(Warned(f"`{shown}` is not kept: it does not fit this command, or allows far more than it"))
        return ()

    async def _store_rule(self, pattern: Words, scope: ApprovalScope, *, sandbox_off: bool) -> None:
        if not pattern:
            return
        stored_scope = "always" if scope == "always" else "project"
        # Inside a sandbox that holds, the sandbox is what counts.
        context = self._context
        is_held = not (sandbox_off or context.shortfall or isinstance(context.sandbox_policy, DangerFullAccess))
        files = None if is_held else await self._files(pattern)
        try:
            self._approvals.allow_pattern(pattern, stored_scope, sandbox_off=sandbox_off, files=files)
        except UserError as error:
            self._context.emit(Warned(str(error)))

    def _pattern(self, verdict: AskVerdict) -> Words:
        facts = self._facts
        if not verdict.patternable or facts.danger is not None or (verdict.outside and facts.writable):
            return ()
        return suggest_pattern(facts.segments, self._command.requested_pattern, self._free(verdict)) or ()

    def _free(self, verdict: AskVerdict) -> Sequence[Words]:
        """The commands of the script that need no pattern."""
        segments = self._facts.segments or ()
        return [words for words in segments if words[0] in BUILTINS] if verdict.outside else self._facts.safe

    def _refused(self, reason: str) -> ToolError:
        command, context = self._command, self._context
        ended = CommandFinished(context.call_id, command.line, command.workdir, reason, None, 0.0, "declined")
        return CallFailed(reason, ended)


def find_facts(command: CommandToRun, context: ToolContext) -> CommandFacts:
    """Read the command's script; what a shell that is not known would make of it is not guessed at."""
    line = context.read_command_line(command.script, command.workdir)
    hidden = line.every_reading()
    reading = list(filter(is_known_safe, line.segments or ()))
    is_trusted = _is_trusted(command.shell, context)
    segments = line.segments if is_trusted else None
    safe = [words for words in reading if is_trusted and _is_standard_program(words[0], context)]
    return CommandFacts(
        segments=segments,
        hidden=hidden,
        safe=tuple(safe),
        danger=find_danger_here(line, context),
        escalated=command.escalated and not isinstance(context.sandbox_policy, DangerFullAccess),
        justification=command.justification,
        shortfall=context.shortfall,
    )


def _where(program: str) -> str:
    name = program.rpartition("/")[2]
    return sanitize_line(f"`{name}` is `{program}`, which commands in the sandbox may write")


def _is_trusted(shell: str, context: ToolContext) -> bool:
    """Whether it is a shell whose words we read as it does: the model may name any file as its shell."""
    path = shell if "/" in shell else find_executable(shell, context.env.get("PATH", ""))
    return path is not None and (path in _TRUSTED_SHELLS or path == context.env.get("SHELL"))


def _is_standard_program(name: str, context: ToolContext) -> bool:
    """Whether a program's name leads to no file that this session, or its repository, may have put there."""
    if name in BUILTINS:
        return True
    path = context.env.get("PATH", "")
    if any(not directory.startswith("/") for directory in path.split(":")):
        return False
    return finder_of(context).find_untrusted(name) is None


def _within_plan(verdict: ApprovalVerdict) -> ApprovalVerdict:
    """In plan mode no rule and no answer takes a command out of the sandbox that holds everything back."""
    match verdict:
        case RunVerdict(outside=True):
            return RunVerdict()
        case AskVerdict(outside=True) | RefuseVerdict(unasked=AskVerdict(outside=True)):
            return RefuseVerdict(f"command refused: {PLANNING}, so that no command may leave the sandbox")
        case RefuseVerdict(unasked=AskVerdict(reason=reason, patternable=False)):
            # A rule that wants a question.
            return RefuseVerdict(f"command refused: {reason}; in plan mode nobody is asked: put it into the plan")
        case _:
            return verdict


def _without_steering(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if not _STEERING.match(name)}
