"""What a server asks of the user: the questions, and the answers in the form it wants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from codex_py.mcp.elicitation import ElicitationAnswer, answer_elicitation
from codex_py.protocol.questions import ChoiceQuestion, FormReply, McpForm, Question, QuestionAnswer


async def answered(
    request: dict[str, Any], *replies: QuestionAnswer | None
) -> tuple[ElicitationAnswer, Sequence[ChoiceQuestion]]:
    """What the server gets when the user answers so."""
    questions: list[ChoiceQuestion] = []

    async def ask(question: Question) -> QuestionAnswer | None:
        assert isinstance(question, ChoiceQuestion)
        questions.append(question)
        return replies[len(questions) - 1]

    return await answer_elicitation("srv", request, ask), questions


def form(required: Sequence[str] = (), **fields: Any) -> dict[str, Any]:
    return {
        "message": "Tell me",
        "requestedSchema": {"type": "object", "properties": fields, "required": list(required)},
    }


@pytest.mark.parametrize(
    ("field", "said", "value"),
    [
        ({"type": "string"}, "Ada", "Ada"),
        ({"type": "string", "minLength": [], "maxLength": "x", "format": 7}, "Ada", "Ada"),
        ({"type": "string", "format": "email"}, "ada@example.com", "ada@example.com"),
        ({"type": "string", "format": "uri"}, "https://x.example/a", "https://x.example/a"),
        ({"type": "string", "format": "date"}, "2026-11-22", "2026-11-22"),
        ({"type": "string", "format": "date-time"}, "2026-11-22T06:00:00Z", "2026-11-22T06:00:00Z"),
        ({"type": "integer", "minimum": 1, "maximum": 9}, "7", 7),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "no", False),
        ({"type": "string", "enum": ["a", "b"]}, "b", "b"),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]}, "Second", "b"),
        ({"type": "string", "oneOf": [{"const": "r", "title": "Red"}]}, "Red", "r"),
        ({"type": "array", "items": {"enum": ["a", "b", "c"]}}, "a, c", ["a", "c"]),
        ({"type": "array", "items": {"anyOf": [{"const": "x", "title": "X-ray"}]}}, "X-ray", ["x"]),
    ],
)
async def test_each_kind_of_field_is_read(field: dict[str, Any], said: str, value: Any) -> None:
    outcome, [question] = await answered(form(["f"], f=field), said)
    assert outcome == ElicitationAnswer("accept", {"f": value})
    assert question.header == "The MCP server srv asks"
    assert question.question.startswith("Tell me\nf")
    assert question.options[-1].label == "Decline"


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ({"type": "integer"}, "seven"),
        ({"type": "integer", "maximum": 5}, "6"),
        ({"type": "number"}, "nan"),
        ({"type": "string", "enum": ["a"]}, "z"),
        ({"type": "string", "minLength": 3}, "x"),
        ({"type": "string", "format": "email"}, "ada"),
        ({"type": "string", "format": "uri"}, "example.com"),
        ({"type": "string", "format": "date"}, "tomorrow"),
        ({"type": "string", "format": "date-time"}, "2026-13-01T00:00:00Z"),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1}, "a, b"),
    ],
)
async def test_a_wrong_value_is_asked_for_again_and_then_given_up(field: dict[str, Any], wrong: str) -> None:
    outcome, questions = await answered(form(["f"], f=field), wrong, wrong, wrong)
    assert (outcome, len(questions)) == (ElicitationAnswer("cancel"), 3)


async def test_what_may_be_left_out_is_or_takes_its_default() -> None:
    request = form(["a"], a={"type": "string"}, b={"type": "string"}, c={"type": "integer", "default": 30})
    outcome, _ = await answered(request, "x", "Leave out", "Leave out")
    assert outcome == ElicitationAnswer("accept", {"a": "x", "c": 30})


async def test_no_answer_cancels_and_a_no_declines() -> None:
    request = form(a={"type": "string"}, b={"type": "string"})
    assert (await answered(request, "x", None))[0] == ElicitationAnswer("cancel")
    assert (await answered(request, "Decline"))[0] == ElicitationAnswer("decline")
    assert (await answered({"message": "Sure?"}, "Yes"))[0] == ElicitationAnswer("accept", {})
    assert (await answered({"message": "Sure?"}, "Decline"))[0] == ElicitationAnswer("decline")


async def test_an_address_is_shown_and_only_one_of_the_web() -> None:
    request = {"mode": "url", "message": "Pay", "url": "https://pay.example/x", "elicitationId": "1"}
    outcome, [question] = await answered(request, "Done")
    assert outcome == ElicitationAnswer("accept")
    assert "https://pay.example/x" in question.question
    assert await answered({**request, "url": "file:///etc/passwd"}) == (ElicitationAnswer("decline"), [])


async def test_what_a_server_says_is_shown_harmless() -> None:
    _, [question] = await answered({"message": "a\x1b[2Jb\u202e"}, "Yes")
    assert question.question == "a␛[2Jb\\u{202e}"


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (
            FormReply("accept", {"n": 7, "s": "Ada", "l": ["a"]}),
            ElicitationAnswer("accept", {"n": 7, "s": "Ada", "l": ["a"]}),
        ),
        (FormReply("accept", {"n": 7, "b": None}), ElicitationAnswer("accept", {"n": 7})),
        (FormReply("accept", {"n": 7, "b": True}), ElicitationAnswer("accept", {"n": 7, "b": True})),
        (FormReply("accept", {"n": 10}), ElicitationAnswer("cancel")),
        (FormReply("accept", {"n": "7"}), ElicitationAnswer("cancel")),
        (FormReply("accept", {"n": 7, "l": ["z"]}), ElicitationAnswer("cancel")),
        (FormReply("accept", {"n": 7, "other": 1}), ElicitationAnswer("cancel")),
        (FormReply("accept", {"s": "Ada"}), ElicitationAnswer("cancel")),
        (FormReply("accept"), ElicitationAnswer("cancel")),
        (FormReply("decline", {"n": 7}), ElicitationAnswer("decline")),
        (FormReply("cancel"), ElicitationAnswer("cancel")),
    ],
)
async def test_a_form_may_be_answered_as_a_whole(reply: FormReply, outcome: ElicitationAnswer) -> None:
    fields: dict[str, Any] = {
        "n": {"type": "integer", "maximum": 9},
        "s": {"type": "string"},
        "b": {"type": "boolean"},
        "l": {"type": "array", "items": {"enum": ["a", "b"]}},
    }
    outcome_sent, [question] = await answered(form(["n"], **fields), reply)
    assert outcome_sent == outcome
    assert question.form == McpForm("srv", "Tell me", form(["n"], **fields)["requestedSchema"])


async def test_a_text_that_looks_like_a_whole_form_is_a_text() -> None:
    written = '{"action": "accept", "content": {"s": "Ada"}}'
    outcome_sent, _ = await answered(form(["s"], s={"type": "string"}), written)
    assert outcome_sent == ElicitationAnswer("accept", {"s": written})


async def test_consent_and_an_address_may_be_answered_in_the_same_way() -> None:
    agreed, _ = await answered(form(), FormReply("accept", {}))
    opened, [question] = await answered(
        {"mode": "url", "message": "m", "url": "https://x.example/a"}, FormReply("accept")
    )
    assert (agreed, opened) == (ElicitationAnswer("accept", {}), ElicitationAnswer("accept"))
    assert question.form == McpForm("srv", "m", url="https://x.example/a")
