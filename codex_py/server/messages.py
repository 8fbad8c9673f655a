"""The messages of the protocols: JSON-RPC, one object a line, with or without a `jsonrpc` field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from codex_py.protocol.encoding import as_object, decode_json, encode_json
from codex_py.protocol.value import Value

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

    def to_message(self, request_id: RequestId | None) -> dict[str, Any]:
        """The answer to the request; to one whose id cannot be read it has none."""
        return {"error": {"code": self.code, "message": str(self)}, "id": request_id}


class ClientCall(Value):
    """A request of the client."""

    id: RequestId
    method: str
    params: object = None


class Notice(Value):
    """Something the client tells, and wants no answer to."""

    method: str
    params: object = None


class Reply(Value):
    """The client's answer to a request of ours; None when it is an error."""

    id: RequestId
    result: Mapping[str, Any] | None


class Unreadable(Value):
    """What is no message. `id` is that of the request it may have been."""

    error: RpcError
    id: RequestId | None = None


Message: TypeAlias = ClientCall | Notice | Reply | Unreadable


def read_message(line: bytes) -> Message:
    """What one line of the client says. Never raises."""
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
    """One line. What breaks lines in some readers beside the newline is escaped."""
    encoded = encode_json(message)
    for separator in ("\u2028", "\u2029", "\x85"):
        if (found := separator.encode()) in encoded:
            encoded = encoded.replace(found, rf"\u{ord(separator):04x}".encode())
    return encoded + b"\n"
