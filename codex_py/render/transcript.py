"""The items of a stored session as entries: the transcript that is shown when it is resumed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from rich.text import Text

from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.events import CommandFinished, PatchFinished, PlanUpdated, ToolCallFinished, WebSearched
from codex_py.protocol.items import ItemView, Message, Reasoning, ResponseItem, ToolCall, WebSearchCall
from codex_py.protocol.readable import (
    arguments_of,
    command_of,
    exit_code_in,
    is_host_text,
    outputs_by_call,
    patch_of,
    tool_type_of,
    without_pictures,
    without_plan_tags,
)
from codex_py.render.agent_calls import AgentCallRenderer
from codex_py.render.entry import OneLine, ScrollbackEntry, line_of
from codex_py.render.event import (
    render_answer,
    render_event,
    render_notice,
    render_refused_patch,
    render_search,
    render_stored_skill,
)
from codex_py.render.message import render_final_plan, render_message, render_prompt, render_reasoning
from codex_py.render.patch import render_unreadable_patch
from codex_py.render.tool_call import call_line, render_command, render_tool_call
from codex_py.rollout.stored_turns import call_event

_ABORTED: Final = "<turn_aborted>"
_SKILL: Final = "<skill>"
_NOT_TRIED: Final = ("patch rejected: ", "apply_patch verification failed: ")


def render_items(
    items: Iterable[ResponseItem], *, cwd: Path, expanded: bool = False, at_work: bool = False
) -> Iterator[ScrollbackEntry]:
    """An entry for whatever a person saw of these items; a call stands where it was made, with what came of it.

    Calls without an answer were stopped, unless the session is `at_work`. Of the plan, which is redrawn as it
    changes, a turn leaves what it was in the end; `expanded` shows each.
    """
    all_items = list(items)
    outputs = outputs_by_call(all_items)
    agents = AgentCallRenderer()
    # They stand before the message that names them, and were seen below it.
    skills: list[ScrollbackEntry] = []
    plan: PlanUpdated | None = None
    for item in all_items:
        view = item.view()
        if at_work and isinstance(view, ToolCall) and view.call_id not in outputs:
            yield _under_way(view)
            continue
        if (answered := _render_questions(view, outputs)) is not None:
            yield from answered
            continue
        if (entries := agents.render_item(view, outputs)) is not None:
            yield from entries
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
                yield render_final_plan(plan)
                plan = None
            yield from (entry, *skills)
        else:
            yield from (*skills, entry)
        skills.clear()
    yield from skills
    if plan is not None:
        yield render_final_plan(plan)


def _entry(view: ItemView, outputs: Mapping[str, str], cwd: Path, *, expanded: bool) -> ScrollbackEntry | None:
    match view:
        case Message(role="assistant", text=text):
            return render_message(without_plan_tags(text))
        case Message(role="user", text=text):
            return _render_user_message(text, cwd)
        case Reasoning(summary=summary):
            return render_reasoning(summary, expanded=expanded)
        case ToolCall() as call:
            return _render_call(call, outputs.get(call.call_id), cwd, expanded=expanded)
        case WebSearchCall(id=name, query=query, action=action):
            return render_search(WebSearched(name, query, action))
        case _:
            return None


def _render_user_message(text: str, cwd: Path) -> ScrollbackEntry | None:
    if text.startswith(_ABORTED):
        return render_notice("interrupted", "warning")
    if text.startswith(_SKILL):
        name, path = _between(text, "name"), _between(text, "path")
        return render_stored_skill(name, Path(path), cwd=cwd)
    if text.startswith("<user_shell_command>"):
        return _user_command(text)
    text = without_pictures(text)
    return None if is_host_text(text) or not text.strip() else render_prompt(text)


def _user_command(text: str) -> ScrollbackEntry:
    result = _between(text, "result")
    exit_code = exit_code_in(result)
    output = result.partition("Output:\n")[2]
    took = re.search(r"^Duration: (\d{1,9}(?:\.\d{1,9})?) seconds$", result, re.MULTILINE)
    seconds = float(took[1]) if took else 0.0
    status = "completed" if exit_code == 0 else "failed"
    done = CommandFinished("", _between(text, "command"), Path(), output, exit_code, seconds, status, by_user=True)
    return render_command(done, expanded=False)


def _render_call(call: ToolCall, output: str | None, cwd: Path, *, expanded: bool) -> ScrollbackEntry | None:
    event = call_event(call, output, cwd)
    match event:
        case PatchFinished(output=reason) if reason.startswith(_NOT_TRIED):
            return render_refused_patch(reason, expanded=expanded)
        case PatchFinished(changes=()):
            return render_unreadable_patch(patch_of(call))
        case ToolCallFinished():
            return render_tool_call(event.replace(tool=call.name), expanded=expanded, server=call.namespace or "")
        case _:
            return render_event(event, expanded=expanded, cwd=cwd)


def _under_way(call: ToolCall) -> ScrollbackEntry:
    command = command_of(call) if tool_type_of(call.name, call.namespace) == "runs" else None
    if command is not None:
        return ScrollbackEntry(call_line("▸", command, "under way", style="accent"), spacing="dense")
    return ScrollbackEntry(OneLine(line_of(f"▸ {call.name}", "accent"), Text(" · under way", "dim")), spacing="dense")


def _render_questions(view: ItemView, outputs: Mapping[str, str]) -> list[ScrollbackEntry] | None:
    """What the model asked by a call, with the answers; None for another call, and for one that asked nobody."""
    if not (isinstance(view, ToolCall) and tool_type_of(view.name, view.namespace) == "asks"):
        return None
    try:
        answers = as_object(as_object(decode_json(outputs.get(view.call_id, ""))).get("answers"))
    except ValueError:
        return None
    questions = [as_object(question) for question in as_list(arguments_of(view).get("questions"))]
    if not questions:
        return None
    replies = [as_list(as_object(answers.get(str(question.get("id")))).get("answers")) for question in questions]
    return [
        render_answer(str(question.get("question", "")), [str(text) for text in texts])
        for question, texts in zip(questions, replies, strict=True)
    ]


def _plan_of(view: ItemView, outputs: Mapping[str, str]) -> PlanUpdated | None:
    """What a call has made of the plan; None for another call, and for one that was refused."""
    if not (isinstance(view, ToolCall) and tool_type_of(view.name, view.namespace) == "plans"):
        return None
    event = call_event(view, outputs.get(view.call_id), Path())
    return event if isinstance(event, PlanUpdated) else None


def _between(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()
