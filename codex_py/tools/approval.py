"""Whether a command may run, must be asked about, or is refused, and what the user has allowed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from codex_py.errors import UserError
from codex_py.paths import make_private_dir, open_private
from codex_py.protocol.policy import (
    ApprovalPolicy,
    DangerFullAccess,
    GranularApproval,
    QuestionType,
    SandboxPolicy,
    approval_name,
    asks_about,
)
from codex_py.protocol.questions import ApprovalQuestion, ApprovalReply, AskUser, approval_reply
from codex_py.protocol.value import Value
from codex_py.shell.command_line import Words
from codex_py.shell.dangerous import Danger
from codex_py.shell.known_safe import BUILTINS
from codex_py.shell.runners import RUNS_ARGUMENTS
from codex_py.tools.rules import PrefixRule, RuleBook, rule_line, strictest


class RuleStore(Value):
    """The files that store lasting approvals: for every project, and for `project` alone."""

    always: Path
    project_file: Path
    project: Path


class Approvals:
    """The rules that hold now, and what was allowed for the session; one of these belongs to one session.

    `lock` is held from a verdict to its answer, so that two calls do not ask the same question.
    """

    def __init__(
        self, rules: RuleBook | None = None, *, store: RuleStore | None = None, warnings: tuple[str, ...] = ()
    ) -> None:
        self.rules = rules or RuleBook()
        self.warnings = warnings
        self.lock = asyncio.Lock()
        self._store = store
        self._allowed: dict[Hashable, tuple[str, ...]] = {}

    @property
    def can_store(self) -> bool:
        """Whether an approval can be kept beyond the session."""
        return self._store is not None

    def is_allowed(self, key: Hashable) -> bool:
        """Whether the user has allowed exactly this for the session."""
        return key in self._allowed

    def allowed_files(self, key: Hashable) -> tuple[str, ...] | None:
        """The files that a session approval is bound to, as `bound_files` gives them; None if there is none."""
        return self._allowed.get(key)

    def allow(self, key: Hashable, files: tuple[str, ...] = ()) -> None:
        """Remember an approval until the session ends."""
        self._allowed[key] = files

    def allow_pattern(
        self,
        pattern: Words,
        scope: Literal["project", "always"],
        *,
        sandbox_off: bool,
        files: tuple[str, ...] | None = None,
    ) -> None:
        """Remember the approval of every command that begins with `pattern`, and store it.

        With `files` it holds while these stay the same. Raises `UserError` when it cannot be stored; then it holds for
        the session.
        """
        rule = PrefixRule(tuple((word,) for word in pattern), sandbox_off=sandbox_off, files=files)
        # One for the same words, kept for files that have changed since, is replaced.
        others = tuple(
            other_rule
            for other_rule in self.rules.rules
            if other_rule.files is None or other_rule.pattern != rule.pattern
        )
        self.rules = self.rules.replace(rules=(*others, rule))
        if self._store is None:
            return
        file = self._store.always if scope == "always" else self._store.project_file
        about = "" if scope == "always" else f" in `{self._store.project}`"
        try:
            _append(file, rule_line(pattern, sandbox_off=sandbox_off, files=files), about)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UserError(f"cannot keep the rule in `{file}`: {reason}; it holds for this session") from error


def _append(file: Path, line: str, about: str) -> None:
    make_private_dir(file.parent)
    descriptor = open_private(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW)
    try:
        size = os.fstat(descriptor).st_size
        if size == 0:
            shown = about.replace("\n", "\\n")
            line = f"# Commands you have allowed{shown}. Edit or delete lines as you like.\n{line}"
        elif os.pread(descriptor, 1, size - 1) != b"\n":
            # A person's editor may leave the last line open.
            line = f"\n{line}"
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


_SCRIPT_OPTIONS: Final = frozenset(("-c", "-lc", "-e", "-r", "-m", "-", "--eval", "-p", "--print", "-Command"))

_DECLINED: Final = "declined by the user"
_GO_ON: Final = "do not try it again in another way; go on without it, or ask what to do"
_LEAVE: Final = "it asks to run outside the sandbox"
_NOT_THE_WORD: Final = (
    "a rule lets it out of the sandbox by a bare name, which does not cover a program commands may write"
)
_ALLOWED_BY: Final = "the user can allow it with `-s danger-full-access`, or with a rule in `$CODEX_HOME/rules`"
_PARTIAL: Final = "the sandbox here cannot hold everything"
NO_SANDBOX: Final = (
    "refused: no command can run on this machine, because its sandbox is missing or incomplete; do not try other "
    "commands, report it"
)


class CommandFacts(Value):
    """The facts known about a command before it runs.

    `segments` are the words of each command of a plain script, None when it is not plain; `hidden` are all commands
    found in it anywhere. `safe` are the segments known to only read; `danger` is why it must not run unasked.
    `shortfall` is what the sandbox cannot enforce, None when there is none or the user has accepted it. `writable`
    are the full paths of its programs that sandboxed commands may write, `unagreed` those of them that no rule names.
    """

    segments: tuple[Words, ...] | None
    hidden: tuple[Words, ...] = ()
    safe: tuple[Words, ...] = ()
    danger: Danger | None = None
    escalated: bool = False
    justification: str = ""
    shortfall: str | None = None
    writable: tuple[str, ...] = ()
    unagreed: tuple[str, ...] = ()

    @property
    def only_reads(self) -> bool:
        """Whether the command is known to change nothing."""
        return bool(self.segments) and all(words in self.safe for words in self.segments)


class RunVerdict(Value):
    """Run it: `outside` the sandbox, or with the variables taken out that could change what a safe command does."""

    outside: bool = False
    clear_env: bool = False


class AskVerdict(Value):
    """Ask the user; if approved the command runs, with `outside` outside the sandbox.

    `patternable` says that a lasting approval is possible, `kind` is the type of the question.
    """

    reason: str
    outside: bool = False
    patternable: bool = True
    kind: QuestionType = "sandbox_approval"


class RefuseVerdict(Value):
    """Do not run it; the model reads why. `unasked` is the question that could not be asked.

    `lacks_sandbox` says that the only reason is a sandbox that is missing or incomplete.
    """

    reason: str
    unasked: AskVerdict | None = None
    lacks_sandbox: bool = False


ApprovalVerdict: TypeAlias = RunVerdict | AskVerdict | RefuseVerdict


def decide_command(
    facts: CommandFacts, rules: RuleBook, *, policy: ApprovalPolicy, sandbox: SandboxPolicy, can_ask: bool
) -> ApprovalVerdict:
    """The verdict on a command, `rules` first, then the guard against accidents, then the policy."""
    may_ask = can_ask and asks_about(policy, "sandbox_approval")
    verdict = _verdict(facts if may_ask else _without_answer(facts), rules, policy, sandbox)
    if isinstance(verdict, RunVerdict) and verdict.outside and facts.unagreed:
        # A rule is about a program. Where nobody can say whether this is it, it stays in the sandbox.
        verdict = (
            AskVerdict(_NOT_THE_WORD, outside=True, patternable=False) if may_ask or facts.escalated else RunVerdict()
        )
    if not isinstance(verdict, AskVerdict):
        return verdict
    if not can_ask or not asks_about(policy, verdict.kind):
        if verdict.reason.startswith(_PARTIAL):
            return RefuseVerdict(NO_SANDBOX, verdict, lacks_sandbox=True)
        reason = _no_escalation(policy) if verdict.reason == _LEAVE else _refused(verdict, policy)
        return RefuseVerdict(reason, verdict)
    if verdict.outside and facts.escalated and not facts.justification.strip():
        return RefuseVerdict("`require_escalated` needs a `justification`: one sentence that tells the user why")
    return verdict


def decide_patch(outside: str | None, *, policy: ApprovalPolicy, can_ask: bool) -> ApprovalVerdict:
    """The verdict on a patch. `outside` is why the sandbox would not let it be written, None when it would."""
    if outside is None and policy != "untrusted":
        return RunVerdict()
    if outside and not asks_about(policy, "sandbox_approval"):
        return RefuseVerdict(outside)
    reason = "the policy `untrusted` asks for every patch"
    if outside:
        reason = "the sandbox is read-only" if "read-only sandbox" in outside else "it writes outside of the workspace"
    verdict = AskVerdict(reason, outside=outside is not None, patternable=False)
    return verdict if can_ask else RefuseVerdict(outside or _refused(verdict, policy), verdict)


def decide_input(line: str, danger: Danger | None, *, policy: ApprovalPolicy, can_ask: bool) -> ApprovalVerdict:
    """The verdict on what is typed into the command `line`, which runs outside. `danger` is as for a command."""
    more = f"; it is dangerous: {danger.reason}" if danger else ""
    verdict = AskVerdict(
        f"it is typed into `{line}`, which runs outside the sandbox{more}", outside=True, patternable=False
    )
    if can_ask and asks_about(policy, verdict.kind):
        return verdict
    return RefuseVerdict(_refused(verdict, policy), verdict)


def decide_typed(facts: CommandFacts, rules: RuleBook, *, policy: ApprovalPolicy, can_ask: bool) -> ApprovalVerdict:
    """The verdict on what is typed into a shell, which runs it: `facts` of it as of any script.

    Inside the sandbox only a rule or a danger stands against it.
    """
    if not (can_ask and asks_about(policy, "sandbox_approval")):
        facts = _without_answer(facts)
    verdict = _by_rule(facts, rules)
    if verdict is None and facts.danger is not None:
        verdict = AskVerdict(f"what is typed is dangerous: {facts.danger.reason}", patternable=False)
    if not isinstance(verdict, AskVerdict):
        return verdict or RunVerdict()
    if can_ask and asks_about(policy, verdict.kind):
        return verdict
    return RefuseVerdict(_refused(verdict, policy), verdict)


def asks_after_denial(policy: ApprovalPolicy, *, can_ask: bool) -> bool:
    """Whether the user is asked to run a command outside that the sandbox seems to have stopped."""
    if isinstance(policy, GranularApproval):
        return can_ask and policy.sandbox_approval
    return can_ask and policy in ("on-failure", "untrusted")


def suggest_pattern(segments: Sequence[Words] | None, requested: Sequence[str], safe: Sequence[Words]) -> Words | None:
    """The first words that a lasting approval would allow: those the model wants if they fit, else the whole command.

    None when no pattern covers all of the script (what is `safe` needs none), or when it would allow far more.
    """
    if segments is None:
        return None
    unsafe = [words for words in segments if words not in safe]
    for pattern in (tuple(requested), unsafe[0] if len(unsafe) == 1 else ()):
        covers = bool(pattern) and bool(unsafe) and all(words[: len(pattern)] == pattern for words in unsafe)
        if covers and not _is_too_wide(pattern):
            return pattern
    return None


def _is_too_wide(pattern: Words) -> bool:
    name = pattern[0].rpartition("/")[2].rstrip("0123456789.")
    if name not in RUNS_ARGUMENTS and pattern[0].rpartition("/")[2] not in RUNS_ARGUMENTS:
        return False
    return len(pattern) == 1 or (len(pattern) == 2 and pattern[1] in _SCRIPT_OPTIONS)


def _verdict(facts: CommandFacts, rules: RuleBook, policy: ApprovalPolicy, sandbox: SandboxPolicy) -> ApprovalVerdict:
    ruled = _by_rule(facts, rules)
    if ruled is not None and not (isinstance(ruled, RunVerdict) and facts.escalated and not ruled.outside):
        return ruled
    if ruled is None and facts.danger is not None:
        reason = f"the command is dangerous: {facts.danger.reason}"
        return AskVerdict(reason, outside=facts.escalated, patternable=False)
    if facts.escalated and not isinstance(sandbox, DangerFullAccess):
        return AskVerdict(_LEAVE, outside=True)
    if ruled is not None:
        return ruled
    if facts.shortfall is not None:
        return AskVerdict(f"{_PARTIAL}: {facts.shortfall}")
    if policy != "untrusted":
        return RunVerdict()
    return RunVerdict(clear_env=True) if facts.only_reads else AskVerdict("it is not known to only read")


def _without_answer(facts: CommandFacts) -> CommandFacts:
    """The facts where nobody can be asked about a danger: there is none if the sandbox stops it anyway."""
    danger = facts.danger
    if danger is not None:
        danger = None if danger.is_stopped else danger._replace(reason=f"{danger.reason}; {_ALLOWED_BY}")
    return facts.replace(danger=danger)


def _by_rule(facts: CommandFacts, rules: RuleBook) -> ApprovalVerdict | None:
    """The verdict of the rules, None when they do not decide the whole command."""
    if rules.faults:
        return RefuseVerdict(f"command refused: {rules.faults[0]}")
    strict = [rule for words in (*facts.hidden, *(facts.segments or ())) for rule in rules.matching(words)]
    worst = strictest([rule for rule in strict if rule.decision != "allow"])
    if worst is not None:
        why = (
            worst.justification
            or f"a rule about `{' '.join('|'.join(alternatives) for alternatives in worst.pattern)}`"
        )
        if worst.decision == "forbidden":
            return RefuseVerdict(f"command refused: forbidden by a rule of the user: {why}")
        reason = f"a rule of the user wants to be asked: {why}"
        return AskVerdict(reason, outside=facts.escalated, patternable=False, kind="rules")
    segments = facts.segments or ()
    allowing = [rules.matching(words) for words in segments]
    covered = zip(segments, allowing, strict=True)
    if not any(allowing) or not all(found or words in facts.safe for words, found in covered):
        return None
    # What reads may stay inside next to it, but takes nobody out: a reader sees more files outside.
    return RunVerdict(
        outside=all(
            any(rule.sandbox_off for rule in found) if found else words[0] in BUILTINS
            for words, found in zip(segments, allowing, strict=True)
        )
    )


def _refused(verdict: AskVerdict, policy: ApprovalPolicy) -> str:
    how = (
        "in this session"
        if asks_about(policy, verdict.kind)
        else f"under the approval policy `{approval_name(policy)}`"
    )
    what = "reach the goal in another way, or report what is needed"
    return f"refused: {verdict.reason}; nobody can be asked {how}: {what}"


def _no_escalation(policy: ApprovalPolicy) -> str:
    return (
        f"escalated permissions are not available: the approval policy `{approval_name(policy)}` does not let you ask "
        "for them here; run the command without `sandbox_permissions`, or find a way inside the sandbox"
    )


async def put_question(question: ApprovalQuestion, ask: AskUser | None) -> ApprovalReply:
    """The user's answer; anything except an offered scope is a refusal."""
    assert ask is not None  # there is no question where nobody can be asked
    return approval_reply(await ask(question), question.scopes)


def declined_because(reply: ApprovalReply) -> str:
    """The text for the model after a refusal."""
    if reply.refusal:
        return reply.refusal
    return f"{_DECLINED}, who says: {reply.message}" if reply.message else f"{_DECLINED}: {_GO_ON}"
