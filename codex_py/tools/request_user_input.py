"""The `request_user_input` tool: questions of the model to the user."""

from __future__ import annotations

from collections.abc import Sequence

from codex_py.errors import ToolError
from codex_py.protocol.encoding import encode_json, uuid7
from codex_py.protocol.items import ToolCall
from codex_py.protocol.questions import ChoiceQuestion, ModelAnswers, ModelAsks, ModelQuestion, QuestionOption
from codex_py.tools.spec import OtherFields, Tool, ToolContext, ToolOutput

_NOBODY = (
    "request_user_input is not available: nobody can answer in this session; "
    "decide yourself, and say in your answer what you assumed"
)


class RequestUserInput(Tool):
    name = "request_user_input"
    type = "asks"
    hook_view = OtherFields(("AskUserQuestion",))

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Ask all questions at once, or one after the other where the front end does not take them so.

        Gives back the answers as JSON by question id, an empty list for one left unanswered. Raises `ToolError` where
        nobody can be asked.
        """
        fields = self.read(call)["questions"]
        if context.ask is None:
            raise ToolError(_NOBODY)
        if len({field["id"] for field in fields}) < len(fields):
            raise ToolError("failed to parse function arguments: `questions` must each have an `id` of their own")
        questions = tuple(
            ModelQuestion(
                field["id"],
                field["header"],
                field["question"],
                tuple(QuestionOption(option["label"], option["description"]) for option in field["options"]),
            )
            for field in fields
        )
        answers: Sequence[Sequence[str]] = ()
        for number, item in enumerate(questions, 1):
            count = f"{number} of {len(questions)}" if len(questions) > 1 else ""
            asks = ModelAsks(call.call_id, questions) if number == 1 else None
            question = ChoiceQuestion(uuid7(), item.header, item.question, item.options, count=count, asks=asks)
            answer = await context.ask(question)
            if isinstance(answer, ModelAnswers):
                answers = answer.answers
                break
            answers = (*answers, [answer] if isinstance(answer, str) else [])
        payload = {item.id: {"answers": answer} for item, answer in zip(questions, answers, strict=True)}
        return ToolOutput(encode_json({"answers": payload}).decode())
