"""What `exec_command` and `write_stdin` are asked for, read without pydantic when nothing about it is unusual."""

from __future__ import annotations

from typing import Any, Final

from codex_py.protocol.items import ToolCall
from codex_py.protocol.value import Value
from codex_py.tools.arguments import parse_arguments, plain_arguments


class CommandArguments(Value):
    """The fields of a call of `exec_command`; what they mean stands in its spec."""

    cmd: str
    workdir: str | None = None
    shell: str | None = None
    login: bool = True
    tty: bool = False
    yield_time_ms: int = 10_000
    max_output_tokens: int = 10_000
    sandbox_permissions: str = "use_default"
    justification: str | None = None
    prefix_rule: tuple[str, ...] = ()


class StdinArguments(Value):
    """The fields of a call of `write_stdin`."""

    session_id: int
    chars: str = ""
    yield_time_ms: int | None = None
    max_output_tokens: int = 10_000


# What most calls consist of. Any other field, and any other type, is for pydantic to judge.
_PLAIN_COMMAND: Final[dict[str, type]] = {
    "cmd": str,
    "workdir": str,
    "shell": str,
    "login": bool,
    "tty": bool,
    "yield_time_ms": int,
    "max_output_tokens": int,
}
_PLAIN_TEXT: Final[dict[str, type]] = {"session_id": int, "chars": str, "yield_time_ms": int, "max_output_tokens": int}


def read_command(call: ToolCall) -> CommandArguments:
    """The command line a call asks for. Raises `ToolError` with one line for arguments that are none."""
    plain = plain_arguments(call, _PLAIN_COMMAND, needed="cmd")
    if plain is not None:
        return CommandArguments(**plain)
    from codex_py.tools.exec_command_arguments import ExecCommandArguments  # the seam: pydantic loads here

    return command_of(parse_arguments(call, ExecCommandArguments).model_dump())


def read_text(call: ToolCall) -> StdinArguments:
    """The text a call types. Raises `ToolError` with one line for arguments that are none."""
    plain = plain_arguments(call, _PLAIN_TEXT, needed="session_id")
    if plain is not None:
        return StdinArguments(**plain)
    from codex_py.tools.exec_command_arguments import WriteStdinArguments  # the seam: pydantic loads here

    return StdinArguments(**parse_arguments(call, WriteStdinArguments).model_dump())


def command_of(fields: dict[str, Any]) -> CommandArguments:
    """The command line of fields that a pydantic model has judged."""
    judged: dict[str, Any] = {**fields, "prefix_rule": tuple(fields.get("prefix_rule", ()))}
    return CommandArguments(**judged)
