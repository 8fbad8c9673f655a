"""The items of a stored session as entries: what was said and done before, for who goes on with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from rich.text import Text

from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.events import CommandFinished, PlanStep, PlanUpdated, SkillUsed, ToolCallFinished, WebSearched
from codex_py.protocol.items import CallOutput, Message, Reasoning, ResponseItem, ToolCall, WebSearchCall
from codex_py.protocol.readable import arguments_of, command_of, is_host_text, output_of, without_pictures
from codex_py.protocol.reports import SHELL_TOOLS, exit_code_in, patch_succeeded, report_of, was_answered
from codex_py.render.command import call_line, render_command
from codex_py.render.entry import Entry, OneLine, line_of
from codex_py.render.message import render_message, render_prompt
from codex_py.render.notice import render_notice, render_search, render_skill
from codex_py.render.patch import render_patch_text
from codex_py.render.plan import render_plan
from codex_py.render.reasoning import render_reasoning
from codex_py.render.tool_call import render_tool_call

_STATUSES: Final = ("pending", "in_progress", "completed")


def render_items(
    items: Iterable[ResponseItem], *, cwd: Path, expanded: bool = False, at_work: bool = False
) -> Iterator[Entry]:
    """An entry for whatever a person saw of these items; a call stands where it was made, with what came of it.

    Calls without an answer were stopped, unless the session is `at_work`.
    """
    given = list(items)
    outputs = {
        view.call_id: output_of(item)
        for item in given
        if item.type.endswith("_call_output") and isinstance(view := item.view(), CallOutput)
    }
    for item in given:
        call = item.view() if at_work and item.type.endswith("_call") else None
        if isinstance(call, ToolCall) and call.call_id not in outputs:
            yield _under_way(call)
            continue
        entry = _entry(item, outputs, cwd, expanded=expanded)
        if entry is not None:
            yield entry


def _entry(item: ResponseItem, outputs: Mapping[str, str], cwd: Path, *, expanded: bool) -> Entry | None:
    match item.view():
        case Message(role="assistant", text=text):
            return render_message(text)
        case Message(role="user", text=text):
            return _said(text)
        case Reasoning(summary=summary):
            return render_reasoning(summary, expanded=expanded)
        case ToolCall() as call:
            return _called(call, outputs.get(call.call_id), cwd, expanded=expanded)
        case WebSearchCall(id=name, query=query, action=action):
            return render_search(WebSearched(name, query, action))
        case _:
            return None


def _said(text: str) -> Entry | None:
    if text.startswith("<turn_aborted>"):
        return render_notice("interrupted", "warning")
    if text.startswith("<skill>"):
        name, path = _between(text, "name"), _between(text, "path")
        return render_skill(SkillUsed(name, "user", Path(path), "explicit"))
    if text.startswith("<user_shell_command>"):
        return _user_command(text)
    text = without_pictures(text)
    return None if is_host_text(text) or not text.strip() else render_prompt(text)


def _user_command(text: str) -> Entry:
    result = _between(text, "result")
    exit_code = exit_code_in(result)
    output = result.partition("Output:\n")[2]
    took = re.search(r"^Duration: (\d{1,9}(?:\.\d{1,9})?) seconds$", result, re.MULTILINE)
    seconds = float(took[1]) if took else 0.0
    status = "completed" if exit_code == 0 else "failed"
    done = CommandFinished("", _between(text, "command"), Path(), output, exit_code, seconds, status, by_user=True)
    return render_command(done, expanded=False)


def _called(call: ToolCall, output: str | None, cwd: Path, *, expanded: bool) -> Entry | None:
    arguments = arguments_of(call)
    if call.name == "apply_patch":
        patch = call.arguments if call.custom else str(arguments.get("input", ""))
        return render_patch_text(patch, ok=output is None or patch_succeeded(output), expanded=expanded)
    if call.name == "update_plan":
        return render_plan(_plan(arguments))
    command = command_of(call) if call.name in SHELL_TOOLS else None
    if command is None:
        done = ToolCallFinished(call.call_id, call.name, call.arguments, was_answered(output), -1, output or "")
        return render_tool_call(done, expanded=expanded, server=call.namespace or "")
    report = report_of(output)
    done = CommandFinished(call.call_id, command, cwd, report.printed, report.exit_code, report.seconds, report.status)
    return render_command(done, expanded=expanded)


def _under_way(call: ToolCall) -> Entry:
    command = command_of(call) if call.name in SHELL_TOOLS else None
    if command is not None:
        return Entry(call_line("▸", command, "under way", style="accent"), spacing="dense")
    return Entry(OneLine(line_of(f"▸ {call.name}", "accent"), Text(" · under way", "dim")), spacing="dense")


def _plan(arguments: Mapping[str, Any]) -> PlanUpdated:
    steps = [as_object(step) for step in as_list(arguments.get("plan"))]
    told = [
        PlanStep(str(step.get("step", "")), status) for step in steps if (status := step.get("status")) in _STATUSES
    ]
    return PlanUpdated(tuple(told), str(arguments.get("explanation") or ""))


def _between(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()
