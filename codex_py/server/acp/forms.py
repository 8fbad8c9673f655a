"""Questions that clients with forms put to their users as such, and what was filled in as our answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.questions import ChoiceQuestion, FormReply, McpForm
from codex_py.server.acp.content import Json
from codex_py.server.form_answers import read_form_content

_MAX_ANSWER_LENGTH: Final = 16 * 1024
_OF_SCHEMA: Final = ("title", "description", "required")


def answer_form(question: ChoiceQuestion) -> Json:
    """A form for an answer in words of the user's own."""
    field = {"type": "string", "title": question.header or "Answer", "maxLength": _MAX_ANSWER_LENGTH}
    schema = {"type": "object", "properties": {"answer": field}, "required": ["answer"]}
    return {"mode": "form", "message": question.question, "requestedSchema": schema}


def read_answer(result: Mapping[str, Any] | None) -> str | None:
    """What was written there; None where nothing was."""
    match result:
        case {"action": "accept", "content": content}:
            answer = as_object(content).get("answer")
            return answer[:_MAX_ANSWER_LENGTH].strip() or None if isinstance(answer, str) else None
        case _:
            return None


def server_form(form: McpForm) -> Json | None:
    """A form with all that an MCP server asks; None for what is none, such as an address to be opened."""
    form_schema = form.schema or {}
    fields = {name: _field(as_object(field)) for name, field in as_object(form_schema.get("properties")).items()}
    if not fields:
        return None
    schema = {name: form_schema[name] for name in _OF_SCHEMA if name in form_schema}
    message = f"The MCP server {form.server} asks: {form.message}"
    return {"mode": "form", "message": message, "requestedSchema": {**schema, "type": "object", "properties": fields}}


def _field(field: Json) -> Json:
    """A field as this protocol has it, which names choices in one way only."""
    values, names = as_list(field.get("enum")), as_list(field.get("enumNames"))
    if not names or len(names) != len(values):
        return field
    titled = [{"const": value, "title": str(name)} for value, name in zip(values, names, strict=True)]
    return {**{key: value for key, value in field.items() if key not in ("enum", "enumNames")}, "oneOf": titled}


def read_server_form(result: Mapping[str, Any] | None) -> FormReply:
    """What was filled in, as the answer to the question that had the form."""
    match result:
        case {"action": "accept", "content": content}:
            return read_form_content(content)
        case {"action": "decline"}:
            return FormReply("decline")
        case _:
            return FormReply("cancel")
