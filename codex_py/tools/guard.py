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
from codex_py.process.quoting import join_words
from codex_py.process.shells import shell_argv
from codex_py.protocol.events import CommandFinished, Warned
from codex_py.protocol.ids import uuid7
from codex_py.protocol.policy import DangerFullAccess
from codex_py.protocol.questions import ApprovalQuestion, ApprovalReply, ApprovalScope, read_reply
from codex_py.protocol.value import Value
from codex_py.sandbox.denial import looks_denied
from codex_py.text.sanitize import sanitize, sanitize_command, sanitize_line
from codex_py.tools.approval import (
    Ask,
    CommandFacts,
    Refuse,
    Run,
    Verdict,
    asks_after_denial,
    decide_command,
    decide_patch,
    suggest_pattern,
)
from codex_py.tools.danger import find_danger
from codex_py.tools.grants import Approvals
from codex_py.tools.hidden_commands import hidden_commands
from codex_py.tools.known_safe import BUILTINS, is_known_safe
from codex_py.tools.outside import finder_of, outside_context, unagreed, writable_programs
from codex_py.tools.plain_script import Words, plain_segments
from codex_py.tools.spec import ToolContext, ToolOutput

_LONG_SCRIPT: Final = 4096
_DECLINED: Final = "declined by the user"
_GO_ON: Final = "do not try it again in another way; go on without it, or ask what to do"
PLANNING: Final = "in plan mode nothing is written until the user has accepted the plan"
# What could make a command that only reads start a program of somebody's choice.
_STEERING: Final = re.compile(
    r"(GIT_|LD_|DYLD_|PYTHON|BASH_FUNC_)|(PAGER|BASH_ENV|ENV|ZDOTDIR|RIPGREP_CONFIG_PATH|CDPATH|SHELLOPTS|BASHOPTS)\Z"
)
_TRUSTED_SHELLS: Final = frozenset(
    f"{folder}/{name}" for folder in ("/bin", "/usr/bin") for name in ("bash", "sh", "zsh")
)


class GuardedCommand(Value):
    """A command as it would run: `shell` is the path or the name of the shell that reads `script`."""

    script: str
    shell: str
    login: bool
    workdir: Path
    escalated: bool = False
    justification: str = ""
    wanted_pattern: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The exact command line, shell-quoted."""
        return join_words(shell_argv(self.shell, self.script, login=self.login))


class Attempted(NamedTuple):
    """What one attempt gave; `exit_code` is that of a sandboxed command that has ended."""

    output: ToolOutput
    exit_code: int | None = None

    @property
    def denied(self) -> bool:
        """Whether the sandbox seems to have stopped it."""
        return self.exit_code is not None and looks_denied(self.exit_code, self.output.text)


Attempt = Callable[[ToolContext], Awaitable[Attempted]]


def warm_up() -> None:
    """Load the grammar of shell scripts, which takes longer than reading one."""
    plain_segments("true")


async def guard_command(command: GuardedCommand, context: ToolContext, attempt: Attempt) -> ToolOutput:
    """Run `attempt` if the command may run, in the context it may run in; raise `ToolError` if it may not."""
    guard = _CommandGuard(command, context)
    run = await guard.permit()
    first = await attempt(guard.context_for(run))
    if not first.denied or not asks_after_denial(context.approval, can_ask=context.ask is not None):
        return first.output
    if not await guard.permit_outside():
        return first.output
    return (await attempt(guard.context_for(Run(outside=True)))).output


class PatchToJudge(NamedTuple):
    """A patch as written, and the real paths of the files it names."""

    text: str
    files: tuple[Path, ...]


async def permit_patch(outside: str | None, patch: PatchToJudge, context: ToolContext) -> str | None:
    """Ask about a patch where that is needed; None when it may be written, else why not.

    `outside` is why the sandbox would refuse it, None when it would not.
    """
    if context.plan:
        return f"patch refused: {PLANNING}; put what you would change into the plan"
    approvals = context.approvals or Approvals()
    async with approvals.lock:
        if context.allowed and outside is None:
            return None
        verdict = decide_patch(outside, policy=context.approval, can_ask=context.ask is not None)
        match verdict:
            case Run():
                return None
            case Refuse(reason):
                return reason
            case Ask():
                pass
        keys = [("patch", file) for file in patch.files]
        if all(approvals.is_allowed(key) for key in keys):
            return None
        question = ApprovalQuestion(
            id=uuid7(),
            call_id=context.call_id,
            command=sanitize(patch.text),
            cwd=context.cwd,
            reason=verdict.reason,
            outside=verdict.outside,
            files=patch.files,
        )
        reply = await put_question(question, context)
        if reply.scope == "session":
            for key in keys:
                approvals.allow(key)
        return None if reply.scope else f"patch rejected: {declined_because(reply)}"


class _CommandGuard:
    """One command on its way."""

    def __init__(self, command: GuardedCommand, context: ToolContext) -> None:
        self._command = command
        self._context = context
        self._approvals = context.approvals or Approvals()
        self._facts = CommandFacts(None)

    async def permit(self) -> Run:
        """How it may run, the user asked where that is needed. Raises `ToolError`."""
        self._facts = await self._find_facts()
        async with self._approvals.lock:
            verdict = _within_plan(self._decide()) if self._context.plan else self._decide()
            match verdict:
                case Run():
                    return verdict
                case Refuse(reason):
                    raise self._refused(reason)
                case Ask():
                    reply = await self._asked(verdict)
                    if reply.scope is not None:
                        return Run(outside=verdict.outside)
                    raise self._refused(f"command {declined_because(reply)}")

    async def permit_outside(self) -> bool:
        """After the sandbox has stopped it: whether it may run once more, outside."""
        if self._context.plan:
            return False
        async with self._approvals.lock:
            ask = Ask("the sandbox seems to have stopped it; run it again outside?", outside=True)
            return (await self._asked(ask)).scope is not None

    def context_for(self, run: Run) -> ToolContext:
        """What it runs in."""
        context = self._context
        if run.outside:
            return outside_context(context, self._facts.writable)
        return context.replace(env=_without_steering(context.env)) if run.clear_env else context

    def _is_saved(self, ask: Ask) -> bool:
        """Whether a hook's yes answers it: not what leads outside, nor what a rule or a danger makes a question."""
        return not ask.outside and ask.kind != "rules" and self._facts.danger is None

    def _decide(self) -> Verdict:
        context = self._context
        # A hook's yes stands for an answer, also where nobody could give one.
        asked = self._decide_if(can_ask=True) if context.allowed else None
        if isinstance(asked, Ask) and self._is_saved(asked):
            return Run()
        return self._decide_if(can_ask=context.ask is not None)

    def _decide_if(self, *, can_ask: bool) -> Verdict:
        context = self._context
        return decide_command(
            self._facts,
            self._approvals.rules,
            policy=context.approval,
            sandbox=context.sandbox_policy,
            can_ask=can_ask,
        )

    async def _find_facts(self) -> CommandFacts:
        if len(self._command.script) < _LONG_SCRIPT:
            return find_facts(self._command, self._context)
        return await asyncio.to_thread(find_facts, self._command, self._context)

    async def _asked(self, ask: Ask) -> ApprovalReply:
        command, approvals = self._command, self._approvals
        # What is agreed to are programs, not their names: another one in the place of the first is another question.
        writable = self._facts.writable if ask.outside else ()
        key = (command.line, command.workdir, ask.outside, writable)
        if approvals.is_allowed(key):
            return ApprovalReply("session")
        pattern = self._pattern(ask)
        scopes: tuple[ApprovalScope, ...] = ("once", "session")
        if pattern and approvals.can_store:
            scopes = ("once", "session", "project", "always")
        question = ApprovalQuestion(
            id=uuid7(),
            call_id=self._context.call_id,
            command=sanitize_command(command.line),
            cwd=command.workdir,
            reason="; ".join([ask.reason, *map(_where, writable)]),
            justification=command.justification,
            outside=ask.outside,
            pattern=pattern if len(scopes) > 2 else (),
            scopes=scopes,
        )
        reply = await put_question(question, self._context)
        match reply.scope:
            case "session":
                approvals.allow(key)
            case "project" | "always" as scope:
                self._keep(self._wanted(reply, pattern, ask), scope, sandbox_off=ask.outside)
            case "once" | None:
                pass
        return reply

    def _wanted(self, reply: ApprovalReply, offered: Words, ask: Ask) -> Words:
        """The pattern as the user has edited it, unless it does not cover this command or allows far more."""
        if not reply.pattern or reply.pattern == offered:
            return offered
        if suggest_pattern(self._facts.segments, reply.pattern, self._free(ask)) == reply.pattern:
            return reply.pattern
        shown = sanitize_line(join_words(reply.pattern))
        self._context.emit(Warned(f"`{shown}` is not kept: it does not fit this command, or allows far more than it"))
        return ()

    def _keep(self, pattern: Words, scope: ApprovalScope, *, sandbox_off: bool) -> None:
        if not pattern:
            return
        try:
            kept = "always" if scope == "always" else "project"
            self._approvals.allow_pattern(pattern, kept, sandbox_off=sandbox_off)
        except UserError as error:
            self._context.emit(Warned(str(error)))

    def _pattern(self, ask: Ask) -> Words:
        facts = self._facts
        if not ask.patternable or facts.danger is not None or (ask.outside and facts.writable):
            return ()
        return suggest_pattern(facts.segments, self._command.wanted_pattern, self._free(ask)) or ()

    def _free(self, ask: Ask) -> Sequence[Words]:
        """The commands of the script that need no pattern."""
        segments = self._facts.segments or ()
        return [words for words in segments if words[0] in BUILTINS] if ask.outside else self._facts.safe

    def _refused(self, reason: str) -> ToolError:
        command, context = self._command, self._context
        context.emit(CommandFinished(context.call_id, command.line, command.workdir, reason, None, 0.0, "declined"))
        return ToolError(reason)


def find_facts(command: GuardedCommand, context: ToolContext) -> CommandFacts:
    """Read the command's script; what a shell that is not known would make of it is not guessed at."""
    variables = context.env
    hidden = hidden_commands(command.script, str(command.workdir), variables)
    segments = plain_segments(command.script) if _is_trusted(command.shell, context) else None
    safe = [words for words in segments or () if is_known_safe(words) and _is_the_known_one(words[0], context)]
    writable = writable_programs((*(segments or ()), *hidden), command.shell, context)
    return CommandFacts(
        segments=segments,
        hidden=hidden,
        safe=tuple(safe),
        danger=find_danger(command.script, str(command.workdir), variables) if context.guards_accidents else None,
        escalated=command.escalated and not isinstance(context.sandbox_policy, DangerFullAccess),
        justification=command.justification,
        shortfall=context.shortfall,
        writable=writable,
        unagreed=unagreed(writable, context.approvals.rules.executables if context.approvals else {}),
    )


def _where(program: str) -> str:
    name = program.rpartition("/")[2]
    return sanitize_line(f"`{name}` is `{program}`, which commands in the sandbox may write")


def _is_trusted(shell: str, context: ToolContext) -> bool:
    """Whether it is a shell whose words we read as it does: the model may name any file as its shell."""
    path = shell if "/" in shell else find_executable(shell, context.env.get("PATH", ""))
    return path is not None and (path in _TRUSTED_SHELLS or path == context.env.get("SHELL"))


def _is_the_known_one(name: str, context: ToolContext) -> bool:
    """Whether a program's name leads to no file that this session, or its repository, may have put there."""
    if name in BUILTINS:
        return True
    path = context.env.get("PATH", "")
    if any(not folder.startswith("/") for folder in path.split(":")):
        return False
    return finder_of(context).find_untrusted(name) is None


def _within_plan(verdict: Verdict) -> Verdict:
    """In plan mode no rule and no answer takes a command out of the sandbox that holds everything back."""
    match verdict:
        case Run(outside=True):
            return Run()
        case Ask(outside=True) | Refuse(unasked=Ask(outside=True)):
            return Refuse(f"command refused: {PLANNING}, so that no command may leave the sandbox")
        case Refuse(unasked=Ask(reason=reason, patternable=False)):
            # A danger, or a rule that wants a question.
            return Refuse(f"command refused: {reason}; in plan mode nobody is asked: put it into the plan")
        case _:
            return verdict


def _without_steering(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if not _STEERING.match(name)}


async def put_question(question: ApprovalQuestion, context: ToolContext) -> ApprovalReply:
    """What the user says; everything that is no offered scope is a no."""
    assert context.ask is not None  # a verdict is no `Ask` otherwise
    return read_reply(await context.ask(question), question.scopes)


def declined_because(reply: ApprovalReply) -> str:
    """What the model reads after a no."""
    if reply.refusal:
        return reply.refusal
    return f"{_DECLINED}, who says: {reply.message}" if reply.message else f"{_DECLINED}: {_GO_ON}"
