"""Choosing what commands may do: the sandbox, and when the user is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from codex_py.protocol.policy import ApprovalPolicy, ApprovalWord, SandboxMode, approval_name
from codex_py.ui.repl.panels.forms import FormAsker, ListEntry, ListForm, Option, Sheet, TextLine

W = TypeVar("W", bound=str)

_SANDBOXES: Final[tuple[tuple[SandboxMode, str, str], ...]] = (
    ("read-only", "look, but write nothing", "Commands read files. They write nothing and have no network."),
    (
        "workspace-write",
        "work in this folder",
        "Commands read files and write below the working directory and the temporary folders. No network, unless the "
        "configuration says so.",
    ),
    (
        "danger-full-access",
        "no sandbox at all",
        "Commands do whatever you could do yourself: write anywhere, use the network, read your keys.",
    ),
)
_APPROVALS: Final[tuple[tuple[ApprovalWord, str, str], ...]] = (
    ("untrusted", "ask about all but reading", "Only commands known to do no more than read run unasked."),
    (
        "on-request",
        "ask when the model wants out of the sandbox",
        "Commands run in the sandbox unasked. You are asked about what is beyond it, and about dangerous commands.",
    ),
    (
        "on-failure",
        "ask when the sandbox has stopped a command",
        "Commands run in the sandbox unasked; one that was stopped there may run again outside, if you say so.",
    ),
    (
        "never",
        "never ask",
        "Nobody is asked: what the sandbox does not let through fails, and the model is told.",
    ),
)


async def choose_sandbox(asker: FormAsker, current: SandboxMode, allowed: Sequence[SandboxMode]) -> SandboxMode | None:
    """Let the user choose among the modes that the administrator allows; having none is asked twice."""
    modes = [mode for mode, _, _ in _SANDBOXES]
    entries: tuple[ListEntry[SandboxMode], ...] = tuple(
        _entry(mode, note, about, is_current=mode == current, is_allowed=mode in allowed)
        for mode, note, about in _SANDBOXES
    )
    chosen = await asker.pick(
        ListForm(title="Sandbox: what commands may do", entries=entries, start=modes.index(current), searchable=False)
    )
    if chosen == "danger-full-access" and chosen != current and not await asker.choose(_WITHOUT_SANDBOX):
        return None
    return chosen


async def choose_approval(
    asker: FormAsker, current: ApprovalPolicy, allowed: Sequence[ApprovalWord]
) -> ApprovalWord | None:
    """Let the user choose among the policies that the administrator allows."""
    words = [word for word, _, _ in _APPROVALS]
    name = approval_name(current)
    entries: tuple[ListEntry[ApprovalWord], ...] = tuple(
        _entry(word, note, about, is_current=word == name, is_allowed=word in allowed)
        for word, note, about in _APPROVALS
    )
    about = () if name in words else (TextLine("now: a policy of your own, from the configuration", "menu.note"),)
    start = next((index for index, word in enumerate(words) if word == name), 0)
    return await asker.pick(
        ListForm(title="Approvals: when you are asked", entries=entries, about=about, start=start, searchable=False)
    )


def _entry(value: W, note: str, about: str, *, is_current: bool, is_allowed: bool) -> ListEntry[W]:
    return ListEntry(
        value,
        value,
        note,
        (TextLine(about, "menu.note"),),
        mark="●" if is_current else "○",
        blocked="" if is_allowed else "not allowed on this machine",
    )


_WITHOUT_SANDBOX: Final = Sheet(
    title="Run without a sandbox?",
    subject=(
        TextLine("Commands can then change or delete anything that you can, and send anything anywhere.", "warn"),
    ),
    options=(Option("y", "Yes, until the end of this session", True), Option("n", "No", False)),
    refusal=False,
    default=1,
)
