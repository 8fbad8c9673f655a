"""What `exec_command` and `write_stdin` are asked for: typed values, decoded and checked once, without pydantic.

The rules are those by which pydantic reads the arguments of the other tools, so that a model learns one set of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from math import isfinite
from typing import Any, Final, TypeAlias, cast

from codex_py.errors import ToolError
from codex_py.protocol.items import ToolCall
from codex_py.protocol.value import Value
from codex_py.tools.arguments import PARSE_FAILED, decode_arguments, show_value

_PERMISSIONS: Final = ("use_default", "require_escalated")
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}


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


def read_command(call: ToolCall) -> CommandArguments:
    """The command line a call asks for. Raises `ToolError` with one line for arguments that are none."""
    return CommandArguments(**_checked(call, _COMMAND, required="cmd"))


def read_text(call: ToolCall) -> StdinArguments:
    """The text a call types. Raises `ToolError` with one line for arguments that are none."""
    return StdinArguments(**_checked(call, _STDIN, required="session_id"))


class _Mismatch(Exception):
    """The message says which values are expected; `found` is the value, `suffix` its position inside the field."""

    def __init__(self, expected: str, found: object, suffix: str = "") -> None:
        super().__init__(expected)
        self.found = found
        self.suffix = suffix


_Check: TypeAlias = Callable[[object], object]


def _checked(call: ToolCall, checks: Mapping[str, _Check], *, required: str) -> dict[str, Any]:
    """The known fields that are there, each checked; unknown ones are ignored."""
    arguments = decode_arguments(call)
    faults: list[str] = []
    checked: dict[str, Any] = {}
    for name, check in checks.items():
        if name not in arguments:
            if name == required:
                faults.append(f"missing field `{name}`")
            continue
        try:
            checked[name] = check(arguments[name])
        except _Mismatch as fault:
            faults.append(f"`{name}{fault.suffix}` must be {fault}, found `{show_value(fault.found)}`")
    if faults:
        raise ToolError(f"{PARSE_FAILED}: {'; '.join(faults)}")
    return checked


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Mismatch("a string", value)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _Mismatch("valid Unicode", value) from None
    return value


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    known = _BOOLEANS.get(str(value).lower()) if isinstance(value, str) else None
    if isinstance(value, int | float) and value in (0, 1):
        known = value == 1
    if known is None:
        raise _Mismatch("true or false", value)
    return known


def _whole(value: object) -> int:
    """Half a millisecond matters to nobody, and models write `500.0` and `"500"`."""
    if isinstance(value, float) and not isfinite(value):
        raise _Mismatch("a finite number", value)
    if isinstance(value, int) or (isinstance(value, float) and abs(value) < 2**53):
        return int(value)
    digits, _, fraction = value.partition(".") if isinstance(value, str) else ("", "", "")
    with suppress(ValueError):
        if not fraction.strip("0"):
            return int(digits)
    raise _Mismatch("a whole number", value)


def _permissions(value: object) -> str:
    if value not in _PERMISSIONS:
        raise _Mismatch("one of `use_default` or `require_escalated`", value)
    return str(value)


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _Mismatch("an array", value)
    checked: list[str] = []
    for index, text in enumerate(cast("list[object]", value)):
        try:
            checked.append(_text(text))
        except _Mismatch as fault:
            raise _Mismatch(str(fault), fault.found, f".{index}") from None
    return tuple(checked)


_COMMAND: Final[Mapping[str, _Check]] = {
    "cmd": _text,
    "workdir": _text,
    "shell": _text,
    "login": _truth,
    "tty": _truth,
    "yield_time_ms": _whole,
    "max_output_tokens": _whole,
    "sandbox_permissions": _permissions,
    "justification": _text,
    "prefix_rule": _texts,
}
_STDIN: Final[Mapping[str, _Check]] = {
    "session_id": _whole,
    "chars": _text,
    "yield_time_ms": _whole,
    "max_output_tokens": _whole,
}


def command_of(fields: dict[str, Any]) -> CommandArguments:
    """The command line of fields that a pydantic model has judged."""
    judged: dict[str, Any] = {**fields, "prefix_rule": tuple(fields.get("prefix_rule", ()))}
    return CommandArguments(**judged)
