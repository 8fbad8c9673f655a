"""Which model made an item that only that model may be sent again: its reasoning, and what a provider has compacted.

The origin is the last field of the stored item, so that taking it off gives back the bytes that the server sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from codex_py.protocol.encoding import as_object, encode_json
from codex_py.protocol.items import ResponseItem, without_error_mark
from codex_py.protocol.value import Value

_FIELD: Final = "made_by"
_REASONING: Final = b'{"type":"reasoning"'
_BOUND: Final = (_REASONING, b'{"type":"compaction"', b'{"type":"compaction_summary"', b'{"type":"context_compaction"')
_SUFFIX: Final = rb',"made_by":\{"provider":"[^"\\]*","model":"[^"\\]*","wire":"[a-z]*"\}\}\Z'
COMPACTIONS: Final = frozenset({"compaction", "compaction_summary", "context_compaction"})


class Origin(Value):
    """A model of a provider, as it is reached by one wire. `model` is empty where a stored session does not say it."""

    provider: str
    model: str
    wire: str

    @property
    def suffix(self) -> bytes:
        """The bytes at the end of an item of this origin."""
        fields = {"provider": self.provider, "model": self.model, "wire": self.wire}
        return b',"%b":%b}' % (_FIELD.encode(), encode_json(fields))


def with_origin(item: ResponseItem, origin: Origin) -> ResponseItem:
    """The item as it is stored. One that any model may be sent, and one that names its origin already, stay as is."""
    if not item.encoded.startswith(_BOUND) or re.search(_SUFFIX, item.encoded):
        return item
    encoded = item.encoded
    if b'"made_by"' in encoded:
        # Perhaps the server's own field: there must be one.
        encoded = encode_json({key: value for key, value in item.decode().items() if key != _FIELD})
    return ResponseItem(encoded[:-1] + origin.suffix)


def with_origins(items: Iterable[ResponseItem], provider: str) -> Iterator[ResponseItem]:
    """The items of a session that was stored with a provider; those without an origin have that one."""
    origin = Origin(provider, "", "responses")
    for item in items:
        # Sessions from before there was the field, and those of other programs.
        is_old = item.encoded.startswith(_BOUND) and b'"made_by"' not in item.encoded
        yield with_origin(item, origin) if is_old else item


def sendable(encoded: bytes, origin: Origin) -> bytes | None:
    """An item as the server of `origin` may be sent it, without the field; None for one that another model made.

    What a provider has compacted goes to each of its models. An item without an origin is sent as it is.
    """
    if not encoded.startswith(_BOUND):
        return without_error_mark(encoded)
    if encoded.endswith(own := origin.suffix):
        return encoded[: -len(own)] + b"}"
    if b'"made_by"' not in encoded:
        return encoded
    if encoded.endswith(old := Origin(origin.provider, "", origin.wire).suffix):
        return encoded[: -len(old)] + b"}"
    value = ResponseItem(encoded).decode()
    made_by = value.pop(_FIELD, None)
    if (
        made_by is None
        or is_made_by(made_by, origin)
        or (not encoded.startswith(_REASONING) and _is_near(made_by, origin))
    ):
        return encode_json(value)
    return None


def is_made_by(made_by: object, origin: Origin) -> bool:
    """Whether the stored field names this origin."""
    fields = as_object(made_by)
    return _is_near(fields, origin) and fields.get("model") == origin.model


def own_reasoning(value: dict[str, Any], origin: Origin) -> dict[str, Any] | None:
    """A decoded reasoning item without its field, None when it is not this origin's."""
    if not is_made_by(value.get(_FIELD), origin):
        return None
    return {key: field for key, field in value.items() if key != _FIELD}


def _is_near(made_by: object, origin: Origin) -> bool:
    fields = as_object(made_by)
    return fields.get("provider") == origin.provider and fields.get("wire") == origin.wire
