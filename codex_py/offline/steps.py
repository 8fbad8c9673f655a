"""The steps of an answer: the tool calls that a rule asks for, their results, and the text at the end.

A rule is a generator that yields tool calls and receives their results. It runs again from the start for every request,
with the results found in that request, so nothing is kept between two requests.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from codex_py.offline.conversation import Conversation, PastCall
from codex_py.offline.wording import NOTICE, clip
from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json

_MAX_POLLS: Final = 20
_POLL_MS: Final = 30_000
_MAX_HEADER: Final = 800
_MAX_OUTPUT_TOKENS: Final = 50_000
_OUTPUT: Final = re.compile(r"^Output:(?:\n|\Z)", re.MULTILINE)
_EXIT: Final = re.compile(r"(?:Process exited with code|Exit code:)\s*(-?\d{1,10})\b")
_RUNNING: Final = re.compile(r"Process running with session ID\s+(\d{1,10})\b")
_TRUNCATED: Final = re.compile(r"\AWarning: truncated output|…\d+ (?:tokens|chars) truncated…")
_DENIED: Final = re.compile(
    r"read-only|\bEROFS\b|permission denied|operation not permitted|no usable temporary directory|not writable"
    r"|blocked by|writing outside|rejected",
    re.IGNORECASE,
)


class Command(NamedTuple):
    """A shell command. `wait_ms` is how long the tool waits before it reports a running process."""

    cmd: str
    wait_ms: int = 10_000


class OfflinePatch(NamedTuple):
    """A patch in the apply_patch format."""

    text: str


class Result(NamedTuple):
    """The result of a tool call. `exit_code` is None when nothing ran or while `session_id` still runs."""

    exit_code: int | None
    text: str
    session_id: int | None = None
    is_truncated: bool = False

    @property
    def is_ok(self) -> bool:
        return self.exit_code == 0

    @property
    def is_denied(self) -> bool:
        """Whether the text reads as if the sandbox refused something."""
        return _DENIED.search(self.text) is not None

    @property
    def lines(self) -> list[str]:
        return self.text.rstrip("\n").split("\n") if self.text.strip("\n") else []


class Call(NamedTuple):
    """A tool call to make. A custom call carries free text, the others a JSON object."""

    tool: str
    payload: str
    is_custom: bool = False


class Impossible(Exception):
    """The rule cannot go on; the text tells the user why."""


Rule: TypeAlias = Generator[Command | OfflinePatch, Result, str]


def text_rule(text: str) -> Rule:
    """A rule that needs no tool."""
    yield from ()
    return text


def next_step(rule: Rule, conversation: Conversation) -> Call | str:
    """The first call of the rule that has no result yet, else the text it ends with."""
    past = iter(conversation.calls)
    try:
        request = next(rule)
        while True:
            result = _result_of(request, conversation.tools, past)
            if isinstance(result, Call):
                return result
            request = rule.send(result)
    except StopIteration as end:
        return _final(str(end.value))
    except Impossible as reason:
        return _final(str(reason))
    finally:
        rule.close()


def read_result(output: str) -> Result:
    """Read the output of an exec tool; a text without the usual header is a failure to start."""
    found = _OUTPUT.search(output, 0, _MAX_HEADER)
    header, text = (output[: found.start()], output[found.end() :]) if found else (output[:_MAX_HEADER], output)
    exit_code, running = _EXIT.search(header), _RUNNING.search(header) if found else None
    return Result(
        int(exit_code[1]) if exit_code else None,
        text,
        int(running[1]) if running else None,
        _TRUNCATED.search(text) is not None,
    )


def _final(text: str) -> str:
    return f"{text.rstrip()}\n\n{NOTICE}"


def _result_of(
    request: Command | OfflinePatch, tools: Mapping[str, dict[str, Any]], past: Iterator[PastCall]
) -> Result | Call:
    """The result of a request, waiting for a running process within bounds; else the call that has to be made."""
    call = _call_for(request, tools)
    output = _take_output(call, past)
    if output is None:
        return call
    result = read_result(output)
    for _ in range(_MAX_POLLS if "write_stdin" in tools else 0):
        if result.session_id is None:
            break
        poll = {"session_id": result.session_id, "chars": "", "yield_time_ms": _POLL_MS}
        call = Call("write_stdin", encode_json(poll).decode())
        if (output := _take_output(call, past)) is None:
            return call
        more = read_result(output)
        result = more._replace(text=result.text + more.text, is_truncated=result.is_truncated or more.is_truncated)
    if isinstance(request, Command) and result.exit_code is None and result.session_id is None:
        raise Impossible(f"`{clip(request.cmd, 120)}` was not run:\n\n```\n{result.text[:2000].strip()}\n```")
    return result


def _take_output(call: Call, past: Iterator[PastCall]) -> str | None:
    """The output of the next past call that is this one; others are passed over."""
    return next((step.output for step in past if step.tool == call.tool and _is_same(step.payload, call.payload)), None)


def _is_same(first: str, second: str) -> bool:
    try:
        return first == second or decode_json(first) == decode_json(second)
    except ValueError:
        return False


def _call_for(request: Command | OfflinePatch, tools: Mapping[str, dict[str, Any]]) -> Call:
    if isinstance(request, Command):
        return _exec_call(request, tools)
    spec = tools.get("apply_patch")
    if spec is None:
        # Models without the tool patch through the shell; no line of a patch can be a bare EOF.
        return _exec_call(Command(f"apply_patch <<'EOF'\n{request.text}\nEOF"), tools)
    if spec.get("type") == "custom":
        return Call("apply_patch", request.text, is_custom=True)
    parameters = as_object(spec.get("parameters"))
    names = [*as_list(parameters.get("required")), *as_object(parameters.get("properties")), "input"]
    return Call("apply_patch", encode_json({str(names[0]): request.text}).decode())


def _exec_call(command: Command, tools: Mapping[str, dict[str, Any]]) -> Call:
    if "exec_command" not in tools:
        wanted = clip(command.cmd, 120)
        raise Impossible(f"I wanted to run `{wanted}`, but this request offers no `exec_command`. Nothing was run.")
    arguments: dict[str, Any] = {"cmd": command.cmd, "login": False, "max_output_tokens": _MAX_OUTPUT_TOKENS}
    if command.wait_ms != Command("").wait_ms:
        arguments["yield_time_ms"] = command.wait_ms
    return Call("exec_command", encode_json(arguments).decode())
