"""JSON-RPC messages, one object a line, and the parameters of requests, each checked for its type as it is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

from codex_py.config.layers import MAX_DEPTH, is_too_deep
from codex_py.paths import is_directory
from codex_py.protocol.encoding import as_object, decode_json, encode_json
from codex_py.protocol.questions import FormReply
from codex_py.protocol.value import Value
from codex_py.server.pipes import MAX_LINE

RequestId: TypeAlias = str | int

PARSE_ERROR: Final = -32700
# Everything that is wrong with a request has this code: unknown methods and wrong parameters too.
INVALID_REQUEST: Final = -32600
INTERNAL_ERROR: Final = -32603

_SHOWN: Final = 200


class RpcError(Exception):
    """The error sent for a request that was refused."""

    def __init__(self, message: str, *, code: int = INVALID_REQUEST) -> None:
        super().__init__(message)
        self.code = code


class ClientCall(Value):
    """A request of the client."""

    id: RequestId
    method: str
    params: object = None


class Notice(Value):
    """A notification of the client, which gets no answer."""

    method: str
    params: object = None


class Reply(Value):
    """The client's answer to a request of the server; `result` is None for an error."""

    id: RequestId
    result: Mapping[str, Any] | None


class Unreadable(Value):
    """A line that is not a valid message. `id` is that of the request, if it has one."""

    error: RpcError
    id: RequestId | None = None


Message: TypeAlias = ClientCall | Notice | Reply | Unreadable


def read_message(line: bytes | None) -> Message:
    """Read one line of the client as a message; None is a line that was too long. Never raises."""
    if line is None:
        return Unreadable(RpcError(f"a line is over {MAX_LINE // 2**20} MiB", code=PARSE_ERROR))
    try:
        decoded = decode_json(line)
    except ValueError as error:
        return Unreadable(RpcError(f"not JSON: {str(error)[:_SHOWN]}", code=PARSE_ERROR))
    fields = as_object(decoded)
    request_id = fields.get("id")
    valid_id = request_id if isinstance(request_id, str | int) and not isinstance(request_id, bool) else None
    match fields.get("method"):
        case str(method) if "id" not in fields:
            return Notice(method, fields.get("params"))
        case str(method) if valid_id is not None:
            return ClientCall(valid_id, method, fields.get("params"))
        case None if valid_id is not None and ("result" in fields or "error" in fields):
            return Reply(valid_id, as_object(fields.get("result")) if "error" not in fields else None)
        case _:
            return Unreadable(
                RpcError("not a message: a request has a `method`, and a text or a number as `id`"), valid_id
            )


def encode_message(message: Mapping[str, Any]) -> bytes:
    """A message as one line. Characters that some readers take for line breaks are escaped."""
    encoded = encode_json(message)
    for separator in ("\u2028", "\u2029", "\x85"):
        if (found := separator.encode()) in encoded:
            encoded = encoded.replace(found, rf"\u{ord(separator):04x}".encode())
    return encoded + b"\n"


W = TypeVar("W", bound=str)

_MAX_SHOWN_LENGTH: Final = 80


class Params:
    """An object of parameters. Every method raises `RpcError` for a wrong type; null counts as left out."""

    def __init__(self, raw: object, where: str = "") -> None:
        if raw is not None and not isinstance(raw, dict):
            raise RpcError(f"invalid request: {where.rstrip('.') or 'params'} is not an object")
        self._values = cast("dict[str, Any]", raw or {})
        self._where = where

    def has(self, name: str) -> bool:
        """Whether it is there and not null."""
        return self._values.get(name) is not None

    def text(self, name: str) -> str:
        """A text that must be there."""
        if (text := self.text_or_none(name)) is None:
            raise self.missing(name)
        return text

    def text_or_none(self, name: str) -> str | None:
        return self._checked(name, _is_text, "a text")

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self._checked(name, lambda value: isinstance(value, bool), "true or false")
        return default if value is None else value

    def integer(self, name: str, *, maximum: int) -> int | None:
        """A number from 0 to `maximum`."""

        def is_valid(value: object) -> bool:
            return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= maximum

        return self._checked(name, is_valid, f"a whole number up to {maximum}")

    def choice(self, name: str, words: Sequence[W]) -> W | None:
        """One of these words."""
        expected = f"one of {', '.join(f'`{word}`' for word in words)}"
        return self._checked(name, lambda value: value in words, expected)

    def texts(self, name: str) -> tuple[str, ...] | None:
        """A list of texts."""
        if self._list(name) is None:
            return None
        return tuple(self._checked(name, lambda listed: all(map(_is_text, listed)), "a list of texts"))

    def absolute_paths(self, name: str) -> tuple[Path, ...]:
        """A list of absolute paths, which are not checked further; none if it is left out."""
        paths = tuple(map(Path, self.texts(name) or ()))
        if not all(path.is_absolute() for path in paths):
            raise RpcError(f"invalid request: `{self._where}{name}` has a path that is not absolute")
        return paths

    def table(self, name: str) -> dict[str, Any] | None:
        """An object as it is, nested at most 64 levels deep."""
        return self._checked(name, lambda value: not is_too_deep(value) and isinstance(value, dict), "an object")

    def raw(self, name: str) -> Any:
        """Whatever it is, nested at most 64 levels deep."""
        return self._checked(name, lambda value: not is_too_deep(value), f"less than {MAX_DEPTH} levels deep")

    def nested(self, name: str) -> Params | None:
        """An object, to be read in the same way."""
        return Params(self._values[name], f"{self._where}{name}.") if self.has(name) else None

    def nested_list(self, name: str) -> list[Params] | None:
        """A list of objects."""
        listed = self._list(name)
        return None if listed is None else [Params(item, f"{self._where}{name}.") for item in listed]

    def directory(self, name: str) -> Path | None:
        """The real path of an existing directory."""
        text = self.text_or_none(name)
        if text is None:
            return None
        real = Path(os.path.realpath(text))
        if not text or not is_directory(real):
            raise RpcError(f"`{self._where}{name}` is not a directory: `{text[:_MAX_SHOWN_LENGTH]}`")
        return real

    def missing(self, name: str) -> RpcError:
        """The error for a parameter that must be there."""
        return RpcError(f"invalid request: missing field `{self._where}{name}`")

    def _list(self, name: str) -> list[Any] | None:
        return self._checked(name, lambda value: isinstance(value, list), "a list")

    def _checked(self, name: str, is_valid: Callable[[Any], bool], expected: str) -> Any:
        """The value, None if it is left out. Raises `RpcError` for one that is not what is expected."""
        value = self._values.get(name)
        if value is None or is_valid(value):
            return value
        raise RpcError(f"invalid request: `{self._where}{name}` is not {expected}")


def _is_text(value: object) -> bool:
    """Whether it is text without NUL and without half of a surrogate pair."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def here() -> Path:
    """The directory the server was started in, for requests that name none. Raises `RpcError` when it is gone."""
    try:
        return Path.cwd()
    except OSError as error:
        raise RpcError("the directory this server was started in is gone: name one as `cwd`") from error


def here_or_root() -> Path:
    """The same, but `/` if it is gone, for requests that only a project's settings could affect."""
    try:
        return Path.cwd()
    except OSError:
        return Path("/")


def read_form_content(content: object) -> FormReply:
    """The reply with this content. Content that cannot be sent as JSON is declined."""
    values = as_object(content)
    return FormReply("accept", values) if _can_be_sent(values) else FormReply("decline")


def _can_be_sent(content: object) -> bool:
    if is_too_deep(content):
        return False
    try:
        encode_json(content)
    except ValueError:
        # JSON may write a number that is too large to be one.
        return False
    return True
