"""What the SDK's errors mean, in one line for people and models. Imports the SDK."""

from __future__ import annotations

import asyncio
import re
from typing import Final, cast

import mcp_types as types
from httpx2 import ConnectError, ConnectTimeout
from mcp import MCPError
from pydantic import ValidationError

from codex_py.mcp.stdio import TOO_LONG
from codex_py.text.address import shown_url
from codex_py.text.reasons import system_error, system_reason
from codex_py.text.sanitize import sanitize_line

_MAX_REASON: Final = 500
# The SDK's words for an answer that is too long, and for one that cannot be read.
_TOO_LONG: Final = re.compile(rf"{TOO_LONG}|exceeded the \d+ byte limit")
# Its words for a connection that is gone: servers use the same code for errors of their own.
_LOST: Final = re.compile(r"Connection closed$|SSE stream (ended|failed)")
_UNREADABLE: Final = "Failed to parse"
_NUMBER: Final = re.compile(r"\[Errno -?\d+\] ")
_WRONG_ANSWER: Final = "its answer is not what the protocol says"


def first_of(error: BaseException) -> BaseException:
    """The first of a group that is a reason and not the consequence of one."""
    while isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        error = next((leaf for leaf in inner if not isinstance(leaf, asyncio.CancelledError)), inner[0])
    return error


def is_lost(error: BaseException) -> bool:
    """Whether nothing more will come after this error."""
    return has_code_of_lost(error) and _LOST.match(str(error)) is not None


def has_code_of_lost(error: BaseException) -> bool:
    """Whether an error has the code of a lost connection, whoever gave it."""
    return isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED


def says_too_long(text: str) -> bool:
    """Whether an error is about an answer that is too long."""
    return _TOO_LONG.search(text) is not None


def not_connected(error: BaseException, url: str) -> str | None:
    """What is wrong when nothing listens at the address of a server; None for any other error."""
    if isinstance(error, ConnectTimeout):
        return f"cannot connect to `{shown_url(url)}`: the connection timed out"
    cause = system_error(error)
    if not isinstance(error, ConnectError) or cause is None:
        return None
    hint = "; is it running?" if isinstance(cause, ConnectionRefusedError) else ""
    return f"cannot connect to `{shown_url(url)}`: {sanitize_line(system_reason(cause))}{hint}"


def describe_error(error: BaseException) -> str:
    """What an error says, in our words where we have some."""
    lines = str(error).splitlines()
    if not lines:
        return type(error).__name__
    if says_too_long(lines[0]):
        return TOO_LONG
    if isinstance(error, ValidationError) or lines[0].startswith(_UNREADABLE):
        return _WRONG_ANSWER
    if number := _NUMBER.match(lines[0]):
        words = lines[0][number.end() :]
        return sanitize_line(words[:1].lower() + words[1:])[:_MAX_REASON]
    return sanitize_line(lines[0])[:_MAX_REASON]
