"""The tools `request_user_input` and `request_permissions`: questions of the model to the user.

Permissions never make protected paths writable or denied paths readable.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.errors import ToolError
from codex_py.protocol.encoding import encode_json, uuid7
from codex_py.protocol.items import ToolCall
from codex_py.protocol.policy import DangerFullAccess, ReadOnly, WorkspaceWrite, approval_name, asks_about
from codex_py.protocol.questions import (
    ChoiceQuestion,
    ModelAnswers,
    ModelAsks,
    ModelQuestion,
    PermissionsQuestion,
    QuestionOption,
)
from codex_py.sandbox.policy import PROTECTED_NAMES, is_writable
from codex_py.tools.spec import PLANNING, OtherFields, Tool, ToolContext, ToolOutput

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


_UNAVAILABLE: Final = "request_permissions is not available"
_WITHIN: Final = "find a way inside the sandbox, or say in your answer what you could not do"


class RequestPermissions(Tool):
    name = "request_permissions"
    type = "asks"

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Ask for what is not open yet, and widen the policy of later calls; the answer is JSON of what is granted.

        Reading is never asked for: what the sandbox lets be read is not up for a question. Raises `ToolError`
        for directories that stay closed, and where nobody can be asked.
        """
        arguments = self.read(call)
        if context.plan:
            raise ToolError(f"{_UNAVAILABLE}: {PLANNING}; say in the plan what it takes to carry it out")
        if not asks_about(context.approval, "request_permissions"):
            raise ToolError(f"{_UNAVAILABLE} under the approval policy `{approval_name(context.approval)}`; {_WITHIN}")
        if context.ask is None or context.widen is None:
            raise ToolError(f"{_UNAVAILABLE}: nobody can answer in this session; {_WITHIN}")
        requested = arguments["permissions"]
        network = requested.get("network", {}).get("enabled", False)
        directories = _directories(requested.get("file_system", {}).get("write", ()), context)
        match context.sandbox_policy:
            case ReadOnly():
                raise ToolError(f"{_UNAVAILABLE} in a read-only sandbox, which only the user can change; {_WITHIN}")
            case DangerFullAccess():
                return _granted(network, directories)
            case WorkspaceWrite() as policy:
                online = network and policy.network_access is not True
                # What can be written already could be replaced by a link to somewhere else while the user reads.
                own = context.sandbox.roots(policy, context.cwd)
                closed = tuple(directory for directory in directories if not is_writable(directory, own))
                if not online and not closed:
                    return _granted(network, directories)
                question = PermissionsQuestion(uuid7(), online, closed, arguments.get("reason", ""))
                if await context.ask(question) != "yes":
                    return ToolOutput("the user did not grant it; " + _WITHIN, ok=False)
                roots = tuple(dict.fromkeys([*policy.writable_roots, *closed]))
                access = True if online else policy.network_access
                context.widen(policy.replace(writable_roots=roots, network_access=access))
                return _granted(network, directories)


def _directories(named: Sequence[str], context: ToolContext) -> tuple[Path, ...]:
    """Real paths, so that what the user sees is what is opened."""
    return tuple(dict.fromkeys(_directory(name, context) for name in named))


def _directory(name: str, context: ToolContext) -> Path:
    try:
        real = Path(os.path.realpath(context.cwd / name))
        is_directory = real.is_dir()
    except (OSError, ValueError):
        raise ToolError(f"cannot ask for `{name}`: no such directory") from None
    if not is_directory:
        raise ToolError(f"cannot ask for `{name}`: not a directory; name the one it is in")
    if any(part.lower() in PROTECTED_NAMES for part in real.parts):
        protected_names = ", ".join(f"`{protected}`" for protected in PROTECTED_NAMES)
        raise ToolError(f"cannot ask for `{name}`: {protected_names} are kept read-only")
    if not context.sandbox.may_read(real, context.sandbox_policy, context.cwd):
        raise ToolError(f"cannot ask for `{name}`: it must not even be read")
    return real


def _granted(network: bool, directories: Sequence[Path]) -> ToolOutput:
    permissions: dict[str, Any] = {}
    if network:
        permissions["network"] = {"enabled": True}
    if directories:
        permissions["file_system"] = {"write": [str(directory) for directory in directories]}
    return ToolOutput(encode_json({"permissions": permissions, "scope": "turn"}).decode())
