"""Playing a script against a conversation: up to the first call that has no result yet, or to its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from codex_py.offline.conversation import Conversation, Step
from codex_py.offline.result import Result, joined, read_result
from codex_py.offline.script import Command, Impossible, Outline, Patch, Request, Script
from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json

NOTICE: Final = "(offline model: fixed rules, no AI)"
_MOST_STEPS: Final = 120
_MOST_POLLS: Final = 20
_POLL_MILLISECONDS: Final = 30_000


class Call(NamedTuple):
    """A tool call to make. A custom call carries free text, the others a JSON object."""

    tool: str
    payload: str
    custom: bool = False


class Say(NamedTuple):
    """The answer that ends the turn."""

    text: str


class Make(NamedTuple):
    """Calls to make before going on."""

    calls: tuple[Call, ...]


Reply: TypeAlias = Say | Make


class _Unanswered(Exception):
    """The script needs these calls made first."""

    def __init__(self, calls: Sequence[Call]) -> None:
        super().__init__()
        self.calls = tuple(calls)


def play(script: Script, conversation: Conversation) -> Reply:
    """The next thing to do: calls whose results the script needs, or what it says in the end."""
    if len(conversation.steps) > _MOST_STEPS:
        return _final(f"I stopped after {_MOST_STEPS} tool calls in one turn: the rules do not end here by themselves.")
    replay = _Replay(conversation)
    try:
        requests = next(script)
        while True:
            requests = script.send(tuple(replay.results(requests)))
    except StopIteration as end:
        return _final(str(end.value))
    except _Unanswered as needed:
        return Make(needed.calls)
    except Impossible as reason:
        return _final(str(reason))
    finally:
        script.close()


def _final(text: str) -> Say:
    return Say(f"{text.rstrip()}\n\n{NOTICE}")


class _Replay:
    """The steps already taken, handed out in their order."""

    def __init__(self, conversation: Conversation) -> None:
        self._tools = conversation.tools
        self._steps = list(reversed(conversation.steps))

    def results(self, requests: Sequence[Request]) -> list[Result]:
        calls = [_call_for(request, self._tools) for request in requests]
        results: list[Result] = []
        for call in calls:
            step = self._take(call)
            if step is None:
                raise _Unanswered(calls[len(results) :])
            results.append(read_result(step.output))
        results = [self._finished(result) for result in results]
        for request, result in zip(requests, results, strict=True):
            if isinstance(request, Command) and result.exit_code is None and result.running is None:
                raise Impossible(f"`{_short(request.cmd)}` was not run:\n\n```\n{result.text[:2000].strip()}\n```")
        return results

    def _take(self, call: Call) -> Step | None:
        """The next step that is this call; steps of somebody else's making are passed over."""
        while self._steps:
            step = self._steps.pop()
            if step.tool == call.tool and _same(step.payload, call.payload):
                return step
        return None

    def _finished(self, result: Result) -> Result:
        """Wait for a running process, within bounds."""
        polls = 0
        while result.running is not None and polls < _MOST_POLLS and "write_stdin" in self._tools:
            polls += 1
            poll = {"session_id": result.running, "chars": "", "yield_time_ms": _POLL_MILLISECONDS}
            call = Call("write_stdin", encode_json(poll).decode())
            step = self._take(call)
            if step is None:
                raise _Unanswered([call])
            result = joined(result, read_result(step.output))
        return result


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return decode_json(one) == decode_json(other)
    except ValueError:
        return False


def _call_for(request: Request, tools: Mapping[str, dict[str, Any]]) -> Call:
    match request:
        case Command():
            return _exec_call(request, tools)
        case Patch(text):
            return _patch_call(text, tools)
        case Outline(steps):
            plan = [{"step": step, "status": "pending"} for step in steps]
            return Call("update_plan", encode_json({"plan": plan}).decode())


def _exec_call(command: Command, tools: Mapping[str, dict[str, Any]]) -> Call:
    if "exec_command" not in tools:
        raise Impossible(
            f"I wanted to run `{_short(command.cmd)}`, but this request offers no `exec_command` tool, so "
            f"nothing was run."
        )
    arguments: dict[str, Any] = {"cmd": command.cmd}
    if command.workdir is not None:
        arguments["workdir"] = command.workdir
    # The environment is the terminal's already; a profile would only add its own noise to the output.
    arguments["login"] = False
    if command.patience != Command("").patience:
        arguments["yield_time_ms"] = command.patience
    if command.room != Command("").room:
        arguments["max_output_tokens"] = command.room
    return Call("exec_command", encode_json(arguments).decode())


def _patch_call(patch: str, tools: Mapping[str, dict[str, Any]]) -> Call:
    spec = tools.get("apply_patch")
    if spec is None:
        # Models without the tool patch through the shell; no line of a patch can be a bare EOF.
        return _exec_call(Command(f"apply_patch <<'EOF'\n{patch}\nEOF"), tools)
    if spec.get("type") == "custom":
        return Call("apply_patch", patch, custom=True)
    parameters = as_object(spec.get("parameters"))
    names = [*as_list(parameters.get("required")), *as_object(parameters.get("properties")), "input"]
    return Call("apply_patch", encode_json({str(names[0]): patch}).decode())


def _short(cmd: str) -> str:
    line = cmd.strip().split("\n", 1)[0].replace("`", "'")
    return line if len(line) <= 120 else line[:119] + "…"
