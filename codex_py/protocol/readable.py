"""What a person can read in an item of a history: the command of a call, its output, and whose words a message has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.events import PlanStep
from codex_py.protocol.items import CallOutput, ResponseItem, ToolCall

# What the host says in the user's place begins like this.
_CONTEXT: Final = r"<[a-z_ ]+>|# AGENTS\.md instructions"

_PICTURE: Final = r'<image name=\[Image #\d{1,9}\](?: path="[^"\n]{0,4096}")?></image>'

# The lines between which a model puts its plan in plan mode.
_PLAN_TAG_LINE: Final = r"(?m)^[ \t]*</?proposed_plan>[ \t]*(?:\n|\Z)"


def is_host_text(text: str) -> bool:
    """Whether a message in the user's role is not the user's: context, skills, notes about an interrupt."""
    return re.match(_CONTEXT, text) is not None


def without_pictures(text: str) -> str:
    """The user's own words of a message that has pictures: without the tags that the host has put round them."""
    return re.sub(_PICTURE, "", text)


def without_plan_tags(text: str) -> str:
    """What a model said in plan mode, as people read it."""
    return re.sub(_PLAN_TAG_LINE, "", text)


def arguments_of(call: ToolCall) -> Mapping[str, Any]:
    """The arguments of a call; none for one with free text, and for what is no JSON object."""
    try:
        return {} if call.custom else as_object(decode_json(call.arguments))
    except ValueError:
        return {}


def patch_of(call: ToolCall) -> str:
    """The patch of an `apply_patch` call, which may be free text or an argument."""
    return call.arguments if call.custom else str(arguments_of(call).get("input", ""))


def command_of(call: ToolCall) -> str | None:
    """The command that a call runs; None when it runs none."""
    arguments = arguments_of(call)
    command = arguments.get("cmd") or arguments.get("command")
    words = [word for word in as_list(command) if isinstance(word, str)]
    return command if isinstance(command, str) else " ".join(words) or None


def output_of(item: ResponseItem) -> str:
    """The text of a call's output; other parts are named."""
    output = item.decode().get("output")
    if isinstance(output, str):
        return output
    items = [as_object(fragment) for fragment in as_list(output)]
    return "\n".join(str(part.get("text", f"[{part.get('type', 'part')}]")) for part in items)


def outputs_by_call(items: Iterable[ResponseItem]) -> dict[str, str]:
    """The text of each output among these items, by the id of its call."""
    return {
        view.call_id: output_of(item)
        for item in items
        if item.type.endswith("_call_output") and isinstance(view := item.view(), CallOutput)
    }


def plan_of(steps: object) -> tuple[PlanStep, ...]:
    """The steps in the arguments of an `update_plan` call or in a stored record, without those that make no sense."""
    plan: list[PlanStep] = []
    for step in map(as_object, as_list(steps)):
        text, status = step.get("step"), step.get("status")
        if isinstance(text, str) and (status == "pending" or status == "in_progress" or status == "completed"):
            plan.append(PlanStep(text, status))
    return tuple(plan)
