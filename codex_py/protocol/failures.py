"""The codes of failed runs, and the exit status of each: what a script reads to decide what to do next."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from codex_py.protocol.value import Value

FailureCode: TypeAlias = Literal[
    "auth",
    "quota",
    "rate_limit",
    "overloaded",
    "network",
    "context_length",
    "refused",
    "budget",
    "timeout",
    "approval_needed",
    "schema",
    "sandbox",
    "busy",
    "interrupted",
    "config",
    "internal",
]


class Failure(Value):
    """`retry` says what a scheduler should do: the same command again now, later, or only after something changed."""

    status: int
    meaning: str
    retry: Literal["now", "later", "after a change"]


FAILURES: Final[dict[FailureCode, Failure]] = {
    "auth": Failure(77, "no key or login, or the provider refuses it (401, 403)", "after a change"),
    "quota": Failure(72, "the account has no credit or its plan is used up", "after a change"),
    "rate_limit": Failure(71, "the provider still limits the rate after all retries (429)", "later"),
    "overloaded": Failure(69, "the provider fails or is overloaded after all retries (5xx)", "later"),
    "network": Failure(68, "no connection to the provider, or it breaks off every time", "later"),
    "context_length": Failure(65, "the conversation, even compacted, or the answer is too long", "after a change"),
    "refused": Failure(76, "the model, a content filter or a prompt hook refuses the task", "after a change"),
    "budget": Failure(75, "a budget is used up; the answer so far is printed", "after a change"),
    "timeout": Failure(74, "the provider accepts requests and does not answer in time", "later"),
    "approval_needed": Failure(73, "a call lacked an approval, and none after it did anything", "after a change"),
    "schema": Failure(66, "the answer does not fit `--output-schema`, asked twice", "now"),
    "sandbox": Failure(70, "no command could run because the sandbox is missing", "after a change"),
    "busy": Failure(79, "another process uses the session of `--session-id`", "later"),
    "interrupted": Failure(130, "stopped by a signal: 130 SIGINT, 143 SIGTERM, 129 SIGHUP", "now"),
    "config": Failure(2, "a wrong command line or setting, or one that names what does not exist", "after a change"),
    "internal": Failure(1, "anything else: a request the provider calls invalid, no answer, a bug", "after a change"),
}  # fmt: skip


def failure_code(text: str) -> FailureCode | None:
    """A text as a code; None for any other."""
    return next((code for code in FAILURES if code == text), None)


def exit_status(code: FailureCode) -> int:
    """The exit status of `exec` for a failure."""
    return FAILURES[code].status
