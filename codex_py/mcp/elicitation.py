"""Turns an MCP elicitation into questions for the user, and the answers into the form the server asked for.

Form and rules: MCP 2025-11-25, a flat object of texts, numbers, booleans and choices; or an address to be opened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final, NamedTuple

from codex_py.mcp.schemas import parameters_for_model
from codex_py.protocol.encoding import as_list, as_object, decode_json, uuid7
from codex_py.protocol.questions import AskUser, ChoiceQuestion, FormReply, McpForm, QuestionOption
from codex_py.text.sanitize import sanitize

_MAX_FIELDS: Final = 32
_MAX_TRIES: Final = 3
_MAX_TEXT: Final = 4000
_DONE: Final = "Done"
_DECLINE: Final = "Decline"
_SKIP: Final = "Leave out"
# Each raises `ValueError` for a text of another form, or is false. Other forms are the server's to judge.
_FORMS: Final[Mapping[str, Callable[[str], object]]] = {
    "email": re.compile(r"[^@\s]+@[^@\s]+").fullmatch,
    "uri": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+").fullmatch,
    "date": date.fromisoformat,
    "date-time": datetime.fromisoformat,
}
_ADDRESS: Final = re.compile(r"https?://[^\s]+", re.I)


class ElicitationAnswer(NamedTuple):
    """`action` is `accept`, `decline` or `cancel`; `content` has the fields of an accepted form."""

    action: str
    content: dict[str, Any] | None = None


async def answer_elicitation(server: str, request: Mapping[str, Any], ask: AskUser) -> ElicitationAnswer:
    """Put what an `elicitation/create` asks to the user, a question for each field, or all at once.

    No answer to a question cancels the whole; `Decline`, which each offers, declines it.
    """
    message = _shown(request.get("message"))
    if request.get("mode") == "url":
        return await _open_address(server, message, str(request.get("url", "")), ask)
    form = McpForm(_shown(server), message, as_object(request.get("requestedSchema")))
    schema = as_object(request.get("requestedSchema"))
    fields = as_object(schema.get("properties"))
    if len(fields) > _MAX_FIELDS:
        return ElicitationAnswer("decline")
    required = set(map(str, as_list(schema.get("required"))))
    content: dict[str, Any] = {}
    if not fields:
        return await _consent(server, message, ask, form)
    form_fields = [_Field(name, as_object(field), name in required) for name, field in fields.items()]
    for index, field in enumerate(form_fields):
        value = await _ask_field(server, message, field, _WholeForm(ask, form_fields, None if index else form))
        if isinstance(value, ElicitationAnswer):
            return value
        if value is not None:
            content[field.name] = value
    return ElicitationAnswer("accept", content)


class _Field(NamedTuple):
    name: str
    schema: dict[str, Any]
    required: bool

    @property
    def labels(self) -> dict[str, Any]:
        """The values to choose from, by what the user reads; none for a field that is written."""
        schema = as_object(self.schema.get("items")) if self.schema.get("type") == "array" else self.schema
        if schema.get("type") == "boolean":
            return {"Yes": True, "No": False}
        titled = [as_object(option) for option in as_list(schema.get("oneOf")) or as_list(schema.get("anyOf"))]
        if titled:
            return {str(option.get("title") or option.get("const")): option.get("const") for option in titled}
        names = as_list(schema.get("enumNames"))
        values = as_list(schema.get("enum"))
        shown = names if len(names) == len(values) else values
        return {str(label): value for label, value in zip(shown, values, strict=True)}


class _WholeForm(NamedTuple):
    """The way to the user; with the first question goes the `form`, so that an answer may be one to all `fields`."""

    ask: AskUser
    fields: Sequence[_Field]
    form: McpForm | None


async def _ask_field(server: str, message: str, field: _Field, form: _WholeForm) -> Any:
    """The value of a field, None for one that is left out, or how the whole thing ends."""
    labels = field.labels
    note = ""
    for _ in range(_MAX_TRIES):
        answer = await form.ask(_question(server, message, field, note=note).replace(form=form.form))
        if isinstance(answer, FormReply):
            return _answer_form(answer, form.fields)
        if not isinstance(answer, str):
            return ElicitationAnswer("cancel")
        if answer == _DECLINE:
            return ElicitationAnswer("decline")
        if answer == _SKIP and not field.required:
            return field.schema.get("default")
        try:
            return _checked(_typed(answer, field, labels), field)
        except ValueError as error:
            note = f"{error}. "
    return ElicitationAnswer("cancel")


def _answer_form(reply: FormReply, fields: Sequence[_Field]) -> ElicitationAnswer:
    """An answer to all fields at once. One that is not what was asked for cancels the whole."""
    if reply.action != "accept":
        return ElicitationAnswer(reply.action)
    by_name = {field.name: field for field in fields}
    content = {name: value for name, value in (reply.content or {}).items() if value is not None}
    try:
        for name, value in content.items():
            _checked(value, by_name[name])
    except (KeyError, ValueError):
        return ElicitationAnswer("cancel")
    is_whole = all(field.name in content for field in fields if field.required)
    return ElicitationAnswer("accept", content) if is_whole else ElicitationAnswer("cancel")


def _question(server: str, message: str, field: _Field, *, note: str) -> ChoiceQuestion:
    schema = field.schema
    title = _shown(schema.get("title") or field.name)
    about = _shown(schema.get("description"))
    default = schema.get("default")
    more = [about, "(several, with commas between)" if schema.get("type") == "array" else ""]
    more.append(f"(default: {_shown(str(default))})" if default is not None else "")
    options = [QuestionOption(_shown(label), "") for label in field.labels]
    if not field.required:
        options.append(
            QuestionOption(_SKIP, "take the default" if default is not None else "send the answer without this")
        )
    options.append(QuestionOption(_DECLINE, "tell the server nothing"))
    text = f"{note}{message}\n{title}: {' '.join(filter(None, more))}".rstrip(": \n")
    return ChoiceQuestion(uuid7(), f"The MCP server {sanitize(server)} asks", text, tuple(options))


def _typed(answer: str, field: _Field, labels: Mapping[str, Any]) -> Any:
    match field.schema.get("type"):
        case "array":
            return [_find_choice(part.strip(), labels) for part in answer.split(",") if part.strip()]
        case _ if labels:
            return _find_choice(answer, labels)
        case "number" | "integer":
            return decode_json(answer)
        case _:
            return answer


def _checked(value: Any, field: _Field) -> Any:
    """The value of a field, if it is what the server asks for. Raises `ValueError`."""
    from jsonschema import Draft202012Validator  # third-party weight

    # Repaired, because servers write odd schemas.
    schema = parameters_for_model({"properties": {"value": {"type": "string", **field.schema}}})["properties"]["value"]
    validator: Any = Draft202012Validator(schema)
    for error in validator.iter_errors(value):
        raise ValueError(error.message)
    form = schema.get("format", "")
    if isinstance(value, str) and form in _FORMS and not _has_form(value, form):
        raise ValueError(f"That is no {form}")
    return value


def _has_form(text: str, form: str) -> bool:
    try:
        return bool(_FORMS[form](text))
    except ValueError:
        return False


def _find_choice(answer: str, labels: Mapping[str, Any]) -> Any:
    for label, value in labels.items():
        if answer.strip().lower() in (_shown(label).lower(), str(value).lower()):
            return value
    raise ValueError("That is none of the choices")


async def _consent(server: str, message: str, ask: AskUser, form: McpForm) -> ElicitationAnswer:
    options = (QuestionOption("Yes", "agree"), QuestionOption(_DECLINE, "tell the server no"))
    question = ChoiceQuestion(uuid7(), f"The MCP server {sanitize(server)} asks", message, options, form=form)
    answer = await ask(question)
    if isinstance(answer, FormReply):
        return ElicitationAnswer(answer.action, {} if answer.action == "accept" else None)
    return ElicitationAnswer("accept", {}) if answer == "Yes" else ElicitationAnswer("decline")


async def _open_address(server: str, message: str, url: str, ask: AskUser) -> ElicitationAnswer:
    if not _ADDRESS.fullmatch(url):
        return ElicitationAnswer("decline")
    options = (
        QuestionOption(_DONE, "you have opened it and done what it asks"),
        QuestionOption(_DECLINE, "tell the server no"),
    )
    text = f"{message}\nOpen this address in a browser: {_shown(url)}"
    form = McpForm(_shown(server), message, url=_shown(url))
    answer = await ask(ChoiceQuestion(uuid7(), f"The MCP server {sanitize(server)} asks", text, options, form=form))
    if isinstance(answer, FormReply):
        return ElicitationAnswer(answer.action)
    if answer is None:
        return ElicitationAnswer("cancel")
    return ElicitationAnswer("accept") if answer == _DONE else ElicitationAnswer("decline")


def _shown(text: object) -> str:
    return sanitize(text)[:_MAX_TEXT] if isinstance(text, str) else ""
