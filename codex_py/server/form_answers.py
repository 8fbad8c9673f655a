"""What a client's user has filled into the form of an MCP server."""

from __future__ import annotations

from codex_py.config.layers import is_too_deep
from codex_py.protocol.encoding import as_object, encode_json
from codex_py.protocol.questions import FormReply


def read_form_content(content: object) -> FormReply:
    """The form with this content. One that holds what no server can be sent is declined."""
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
