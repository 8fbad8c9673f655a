"""Exception hierarchy.

* CodexError
  x UserError      one line on stderr plus a hint; exit status 1
    x UsageError   a wrong command line; exit status 2
    x ConfigError  a wrong setting, or a file of settings that cannot be read; exit status 2
    x LoginNeeded  a front end with somebody in front of it helps with that
  x NothingToDo    one line on stderr; exit status 0
  x ToolError      becomes the tool's output; the model reads it and goes on
  x ModelError     the request failed; `.retryable` says whether to try again
"""

from __future__ import annotations

from typing import Self


class CodexError(Exception):
    """Base of every error this program raises on purpose."""


class UserError(CodexError):
    """A fault that the user can fix: a flag, a file, a setting, a key.

    The message says what, which and why in one line, lower case, no full stop; the hint says what to do.
    `failure` is a code of `protocol.failures`, where it has one of its own.
    """

    def __init__(self, message: str, *, hint: str | None = None, status: int = 1, failure: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.status = status
        self.failure = failure


class LoginNeeded(UserError):
    """Nothing is set up that would let a model answer: no key and no login."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, failure="auth")


class UsageError(UserError):
    """The command line itself is wrong."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, status=2)


class ConfigError(UserError):
    """A setting is wrong, or a file that holds settings cannot be used."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, status=2)


class NothingToDo(CodexError):
    """There is nothing to do, which is not a failure."""


class ToolError(CodexError):
    """A failure the model should see and can act on."""


class ModelError(CodexError):
    """A model request failed.

    `retryable` says whether the same request may be sent again; `retry_after` is the server's own delay in
    seconds; `unreachable` is true when no connection was made at all, which has a time budget instead of a count;
    `streaming` is true when the failure came after a 2xx answer; `code` is the server's word for the failure, or empty:
    `context_length_exceeded` whenever the request was longer than the model can read. `failure` is a code of
    `protocol.failures`, or empty. `refused` are the indexes of the items of the request that the server does not take.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool,
        retry_after: float | None = None,
        unreachable: bool = False,
        streaming: bool = False,
        code: str = "",
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after
        self.unreachable = unreachable
        self.streaming = streaming
        self.code = code
        self.refused: tuple[int, ...] = ()
        # An answer that breaks off, unless whoever raises this knows better.
        self.failure = "network" if unreachable or (streaming and retryable) else ""

    def counted_as(self, failure: str) -> Self:
        """The same error with a code of `protocol.failures`."""
        self.failure = failure or self.failure
        return self
