"""The items of a stored session as entries: what was said and done before, for who goes on with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from rich.text import Text

from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.events import CommandFinished, PlanStep, PlanUpdated, ToolCallFinished, WebSearched
from codex_py.protocol.items import CallOutput, ItemView, Message, Reasoning, ResponseItem, ToolCall, WebSearchCall
from codex_py.protocol.readable import (
    arguments_of,
    command_of,
    is_host_text,
    output_of,
    without_pictures,
    without_plan_tags,
)
from codex_py.protocol.reports import SHELL_TOOLS, exit_code_in, patch_succeeded, report_of, was_answered
from codex_py.render.agent_calls import AgentStory
from codex_py.render.command import call_line, render_command
from codex_py.render.entry import Entry, OneLine, line_of
from codex_py.render.message import render_message, render_prompt
from codex_py.render.notice import (
    render_answer,
    render_notice,
    render_refused_patch,
    render_search,
    render_stored_skill,
)
from codex_py.render.patch import render_patch_text
from codex_py.render.plan import render_plan, render_told_plan
from codex_py.render.reasoning import render_reasoning
from codex_py.render.tool_call import render_tool_call

_ABORTED: Final = "<turn_aborted>"
_SKILL: Final = "<skill>"
_NOT_TRIED: Final = ("patch rejected: ", "apply_patch verification failed: ")
_STATUSES: Final = ("pending", "in_progress", "completed")


def render_items(
    items: Iterable[ResponseItem], *, cwd: Path, expanded: bool = False, at_work: bool = False
) -> Iterator[Entry]:
    """An entry for whatever a person saw of these items; a call stands where it was made, with what came of it.

    Calls without an answer were stopped, unless the session is `at_work`. Of the plan, which is drawn anew as it
    changes, a turn leaves what it was in the end; `expanded` tells each.
    """
    given = list(items)
    outputs = {
        view.call_id: output_of(item)
        for item in given
        if item.type.endswith("_call_output") and isinstance(view := item.view(), CallOutput)
    }
    agents = AgentStory()
    # They stand before the message that names them, and were seen below it.
    skills: list[Entry] = []
    plan: PlanUpdated | None = None
    for item in given:
        view = item.view()
        if at_work and isinstance(view, ToolCall) and view.call_id not in outputs:
            yield _under_way(view)
            continue
        if (answered := _answered(view, outputs)) is not None:
            yield from answered
            continue
        if (seen := agents.told(view, outputs)) is not None:
            yield from seen
            continue
        if isinstance(view, Message) and view.text.startswith(_ABORTED):
            yield from agents.interrupted()
        if not expanded and (changed := _plan_of(view, outputs)) is not None:
            plan = changed
            continue
        entry = _entry(view, outputs, cwd, expanded=expanded)
        if entry is None:
            continue
        if isinstance(view, Message) and view.text.startswith(_SKILL):
            skills.append(entry)
            continue
        if isinstance(view, Message) and view.role == "user":
            if plan is not None:
                yield render_told_plan(plan)
                plan = None
            yield from (entry, *skills)
        else:
            yield from (*skills, entry)
        skills.clear()
    yield from skills
    if plan is not None:
        yield render_told_plan(plan)


def _entry(view: ItemView, outputs: Mapping[str, str], cwd: Path, *, expanded: bool) -> Entry | None:
    match view:
        case Message(role="assistant", text=text):
            return render_message(without_plan_tags(text))
        case Message(role="user", text=text):
            return _said(text, cwd)
        case Reasoning(summary=summary):
            return render_reasoning(summary, expanded=expanded)
        case ToolCall() as call:
            return _called(call, outputs.get(call.call_id), cwd, expanded=expanded)
        case WebSearchCall(id=name, query=query, action=action):
            return render_search(WebSearched(name, query, action))
        case _:
            return None


def _said(text: str, cwd: Path) -> Entry | None:
    if text.startswith(_ABORTED):
        return render_notice("interrupted", "warning")
    if text.startswith(_SKILL):
        name, path = _between(text, "name"), _between(text, "path")
        return render_stored_skill(name, Path(path), cwd=cwd)
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
        if output is not None and output.startswith(_NOT_TRIED):
            return render_refused_patch(output, expanded=expanded)
        reason = (output or "").partition("\nOutput:\n")[2]
        return render_patch_text(patch, ok=output is None or patch_succeeded(output), output=reason, expanded=expanded)
    if (plan := _plan_of(call, {} if output is None else {call.call_id: output})) is not None:
        return render_plan(plan)
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


def _answered(view: ItemView, outputs: Mapping[str, str]) -> list[Entry] | None:
    """What the model asked by a call, with the answers; None for another call, and for one that asked nobody."""
    if not (isinstance(view, ToolCall) and view.name == "request_user_input"):
        return None
    try:
        answers = as_object(as_object(decode_json(outputs.get(view.call_id, ""))).get("answers"))
    except ValueError:
        return None
    asked = [as_object(one) for one in as_list(arguments_of(view).get("questions"))]
    said = [as_list(as_object(answers.get(str(one.get("id")))).get("answers")) for one in asked]
    return [
        render_answer(str(one.get("question", "")), [str(text) for text in texts])
        for one, texts in zip(asked, said, strict=True)
    ]


def _plan_of(view: ItemView, outputs: Mapping[str, str]) -> PlanUpdated | None:
    """What a call has made of the plan; None for another call, and for one that was refused."""
    if not (isinstance(view, ToolCall) and view.name == "update_plan" and was_answered(outputs.get(view.call_id))):
        return None
    arguments = arguments_of(view)
    steps = [as_object(step) for step in as_list(arguments.get("plan"))]
    told = [
        PlanStep(str(step.get("step", "")), status) for step in steps if (status := step.get("status")) in _STATUSES
    ]
    return PlanUpdated(tuple(told), str(arguments.get("explanation") or ""))


def _between(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()
