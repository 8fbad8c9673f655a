"""What a person can read in a history item: the command of a call, its output, how it ended, who wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.events import PlanStep
from codex_py.protocol.items import ResponseItem, ToolCall, ToolType
from codex_py.protocol.value import Value

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
    return re.sub(_PICTURE, "", text) if "<image name=" in text else text


def describe_options(applied: Iterable[tuple[str, str]]) -> str:
    """The fields of a skill's front matter that hold for the turn, in one line."""
    return ", ".join(f"{key} {value}" for key, value in applied)


def without_plan_tags(text: str) -> str:
    """A message of plan mode, as people read it."""
    return re.sub(_PLAN_TAG_LINE, "", text)


# What stored calls were of, other programs' included. A test holds it against what our tools say of themselves.
_TOOL_TYPES: Final[Mapping[str, ToolType]] = {
    **dict.fromkeys(("exec_command", "write_stdin", "shell", "shell_command"), "runs"),
    **dict.fromkeys(("local_shell", "container.exec"), "runs"),
    **dict.fromkeys(("apply_patch", "edit_file", "write_file"), "writes"),
    "update_plan": "plans",
    **dict.fromkeys(("request_user_input", "request_permissions"), "asks"),
    **dict.fromkeys(("view_image", "skill", "read_mcp_resource"), "reads"),
    **dict.fromkeys(("list_mcp_resources", "list_mcp_resource_templates"), "searches"),
    **dict.fromkeys(("spawn_agent", "send_input", "wait_agent", "close_agent", "list_agents"), "delegates"),
}


# The fields of the tools `edit_file` and `write_file`, each with the names that models have for it.
EDIT_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("path", "file_path"),
    "content": ("content", "file_text"),
    "old_text": ("old_text", "old_string", "old_str"),
    "new_text": ("new_text", "new_string", "new_str"),
    "all": ("all", "replace_all"),
}


def tool_type_of(name: str, namespace: str | None = None) -> ToolType:
    """The type of a stored or finished tool call; "other" for a tool in a namespace."""
    return "other" if namespace else _TOOL_TYPES.get(name, "other")


def arguments_of(call: ToolCall) -> Mapping[str, Any]:
    """The arguments of a call; empty for free text and for anything that is not a JSON object."""
    try:
        return {} if call.custom else as_object(decode_json(call.arguments))
    except ValueError:
        return {}


def patch_of(call: ToolCall) -> str:
    """The patch of an `apply_patch` call, which may be free text or an argument; that of a plain edit in its place."""
    if call.name in ("edit_file", "write_file") and not call.namespace:
        return _patch_of_edit(call.name, arguments_of(call))
    return call.arguments if call.custom else str(arguments_of(call).get("input", ""))


def _patch_of_edit(tool: str, arguments: Mapping[str, Any]) -> str:
    """A plain edit shown as a patch: the lines it replaces need not be whole ones."""
    if isinstance(arguments.get("command"), str):
        return arguments["command"]
    path, content, old, new = (
        str(next((arguments[key] for key in EDIT_FIELDS[name] if key in arguments), ""))
        for name in ("path", "content", "old_text", "new_text")
    )
    path = " ".join(path.split("\n"))
    if tool == "write_file":
        lines = [f"*** Add File: {path}", *_signed("+", content)]
    else:
        lines = [f"*** Update File: {path}", "@@", *_signed("-", old), *_signed("+", new)]
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def _signed(sign: str, text: str) -> list[str]:
    return [sign + line for line in text.removesuffix("\n").split("\n")] if text else []


def command_of(call: ToolCall) -> str | None:
    """The command that a call runs; None when it runs none."""
    arguments = arguments_of(call)
    command = arguments.get("cmd") or arguments.get("command")
    words = [word for word in as_list(command) if isinstance(word, str)]
    return command if isinstance(command, str) else " ".join(words) or None


def output_of(item: ResponseItem) -> str:
    """The text of a call's output; other parts are named."""
    return _output_text(item.decode().get("output"))


def _output_text(output: object) -> str:
    if isinstance(output, str):
        return output
    items = [as_object(fragment) for fragment in as_list(output)]
    return "\n".join(str(part.get("text", f"[{part.get('type', 'part')}]")) for part in items)


def outputs_by_call(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The text of each output among these decoded items, by the id of its call."""
    return {
        call_id: _output_text(item.get("output"))
        for item in items
        if item.get("type") in _OUTPUT_TYPES and isinstance(call_id := item.get("call_id"), str)
    }


_OUTPUT_TYPES: Final = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")


def plan_of(steps: object) -> tuple[PlanStep, ...]:
    """The steps in the arguments of an `update_plan` call or in a stored record, without those that make no sense."""
    plan: list[PlanStep] = []
    for step in map(as_object, as_list(steps)):
        text, status = step.get("step"), step.get("status")
        if isinstance(text, str) and (status == "pending" or status == "in_progress" or status == "completed"):
            plan.append(PlanStep(text, status))
    return tuple(plan)


_EXIT: Final = r"(?m)^(?:Process exited with code|Exit code:) (-?\d{1,9})$"
_TIME: Final = r"(?m)^Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds$"
_DECLINED: Final = (
    r"(\w+ )?(declined by|refused:) |escalated permissions are not available|blocked by a PreToolUse hook"
)
_RUNNING: Final = "Process running with session ID"
_REFUSALS: Final = ("aborted", "unsupported call: ", "unsupported custom tool call: ", "failed to parse ")


class CommandEnding(Value):
    """What the output of a command's call says of it: how it ended, if it did, and what it `printed`."""

    status: Literal["completed", "failed", "declined", "in_progress"]
    exit_code: int | None
    seconds: float
    printed: str


def report_of(output: str | None) -> CommandEnding:
    """How the command of a call ended, as its output says; None where there is no output."""
    report, _, printed = (output or "").partition("\nOutput:\n")
    code, took = exit_code_in(report), re.search(_TIME, report)
    seconds = float(took[1]) if took else 0.0
    if code is None and _RUNNING in report:
        return CommandEnding("in_progress", None, seconds, printed)
    if code is None and re.match(_DECLINED, report):
        return CommandEnding("declined", None, seconds, report)
    return CommandEnding("completed" if code == 0 else "failed", code, seconds, report if code is None else printed)


def exit_code_in(report: str) -> int | None:
    """The exit code that a report of a command or a patch names."""
    code = re.search(_EXIT, report)
    return int(code[1]) if code else None


def patch_succeeded(output: str) -> bool:
    """Whether a patch was written, as the output of its call says."""
    code = exit_code_in(output.partition("\nOutput:\n")[0])
    return output.startswith("Success") if code is None else code == 0


def patch_report(output: str | None) -> str:
    """The report in the output of a patch's call, without its status; empty when the call was stopped."""
    report, mark, printed = (output or "").partition("\nOutput:\n")
    return printed if mark else "" if report == "aborted" else report


def patch_was_declined(output: str) -> bool:
    """Whether it was the user who did not want a patch."""
    return output.startswith("patch rejected: declined by the user")


def was_answered(output: str | None) -> bool:
    """Whether a call was carried out, as far as its output alone tells."""
    return output is None or not output.startswith(_REFUSALS)
