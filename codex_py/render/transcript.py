"""Draws the items of a stored session: the transcript that is shown when it is resumed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from rich.text import Text

from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.events import CommandFinished, PatchFinished, PlanUpdated, ToolCallFinished
from codex_py.protocol.items import ResponseItem, ToolCall
from codex_py.protocol.readable import (
    arguments_of,
    command_of,
    exit_code_in,
    patch_of,
    tool_type_of,
)
from codex_py.render.agents import AgentCallRenderer
from codex_py.render.entry import OneLine, ScrollbackEntry, line_of
from codex_py.render.event import (
    render_answer,
    render_event,
    render_notice,
    render_refused_patch,
    render_stored_skill,
)
from codex_py.render.message import is_done, render_final_plan, render_prompt
from codex_py.render.patch import render_unreadable_patch
from codex_py.render.tool_call import call_line, render_command, render_tool_call
from codex_py.rollout.stored_turns import HostMessage, PastItem, PastUserMessage, past_items

_ABORTED: Final = "<turn_aborted>"
_SKILL: Final = "<skill>"
_NOT_TRIED: Final = r"patch rejected: |\w{1,40} verification failed: "


def render_items(
    items: Sequence[ResponseItem],
    *,
    cwd: Path,
    expanded: bool = False,
    at_work: bool = False,
    shown: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[ScrollbackEntry]:
    """An entry for whatever a person saw of these items; a call stands where it was made, with what came of it.

    Calls without an answer were stopped, unless the session is `at_work`. Of the plan, which is redrawn as it
    changes, a turn leaves what it was in the end; `expanded` shows each. `shown` says how messages were shown that are
    longer than that, by their text.
    """
    agents = AgentCallRenderer()
    # Skills are stored before the message that names them, but were shown below it.
    skills: list[ScrollbackEntry] = []
    plan: PlanUpdated | None = None
    for past in past_items(items, cwd):
        happened = past.happened
        if at_work and past.call is not None and past.output is None:
            yield _under_way(past.call)
            continue
        entries = _render_questions(past)
        if entries is None:
            entries = agents.render_item(past)
        if entries is not None:
            yield from entries
            continue
        if isinstance(happened, HostMessage) and happened.text.startswith(_ABORTED):
            yield from agents.interrupted()
        if isinstance(happened, PlanUpdated) and not expanded:
            # A finished plan is shown before the answer that follows.
            plan = None if is_done(happened) else happened
            if plan is None:
                yield render_final_plan(happened)
            continue
        if isinstance(happened, PastUserMessage):
            past = past.replace(happened=happened.replace(text=shown.get(happened.text, happened.text)))
        entry = _render_past_item(past, cwd, expanded=expanded)
        if entry is None:
            continue
        if isinstance(happened, HostMessage) and happened.text.startswith(_SKILL):
            skills.append(entry)
            continue
        if isinstance(happened, HostMessage | PastUserMessage):
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


class RecentTurns(NamedTuple):
    """The items of the last turns, the number of all turns, and how many were left out."""

    items: Sequence[ResponseItem]
    turns: int
    left_out: int


def recent_turns(items: Sequence[ResponseItem], *, cwd: Path, max_turns: int) -> RecentTurns:
    """The last turns of a session, beginning with a message of the user."""
    starts = [at for at, item in enumerate(items) if _begins_turn(item, cwd)]
    if len(starts) <= max_turns:
        return RecentTurns(items, len(starts), 0)
    return RecentTurns(items[starts[-max_turns] :], len(starts), len(starts) - max_turns)


def _begins_turn(item: ResponseItem, cwd: Path) -> bool:
    return any(isinstance(past.happened, PastUserMessage) for past in past_items([item], cwd))


def _render_past_item(past: PastItem, cwd: Path, *, expanded: bool) -> ScrollbackEntry | None:
    match past.happened:
        case HostMessage(text):
            return _render_host_message(text, cwd)
        case PastUserMessage(text):
            return render_prompt(text) if text.strip() else None
        case PatchFinished(output=reason) if re.match(_NOT_TRIED, reason):
            return render_refused_patch(reason, expanded=expanded)
        case PatchFinished(changes=()) if past.call is not None:
            return render_unreadable_patch(patch_of(past.call))
        case ToolCallFinished() as event if past.call is not None:
            server = past.call.namespace or ""
            return render_tool_call(event.replace(tool=past.call.name), expanded=expanded, server=server)
        case event:
            return render_event(event, expanded=expanded, cwd=cwd)


def _render_host_message(text: str, cwd: Path) -> ScrollbackEntry | None:
    if text.startswith(_ABORTED):
        return render_notice("interrupted", "warning")
    if text.startswith(_SKILL):
        return render_stored_skill(_between(text, "name"), Path(_between(text, "path")), cwd=cwd)
    return _user_command(text) if text.startswith("<user_shell_command>") else None


def _user_command(text: str) -> ScrollbackEntry:
    result = _between(text, "result")
    exit_code = exit_code_in(result)
    output = result.partition("Output:\n")[2]
    took = re.search(r"^Duration: (\d{1,9}(?:\.\d{1,9})?) seconds$", result, re.MULTILINE)
    seconds = float(took[1]) if took else 0.0
    status = "completed" if exit_code == 0 else "failed"
    done = CommandFinished("", _between(text, "command"), Path(), output, exit_code, seconds, status, by_user=True)
    return render_command(done, expanded=False)


def _under_way(call: ToolCall) -> ScrollbackEntry:
    command = command_of(call) if tool_type_of(call.name, call.namespace) == "runs" else None
    if command is not None:
        return ScrollbackEntry(call_line("▸", command, "under way", style="accent"), spacing="dense")
    return ScrollbackEntry(OneLine(line_of(f"▸ {call.name}", "accent"), Text(" · under way", "dim")), spacing="dense")


def _render_questions(past: PastItem) -> Sequence[ScrollbackEntry] | None:
    """The questions of a call with their answers; None for other calls, and for questions that nobody was asked."""
    call = past.call
    if call is None or tool_type_of(call.name, call.namespace) != "asks":
        return None
    try:
        answers = as_object(as_object(decode_json(past.output or "")).get("answers"))
    except ValueError:
        return None
    questions = [as_object(question) for question in as_list(arguments_of(call).get("questions"))]
    if not questions:
        return None
    replies = [as_list(as_object(answers.get(str(question.get("id")))).get("answers")) for question in questions]
    return [
        render_answer(str(question.get("question", "")), [str(text) for text in texts])
        for question, texts in zip(questions, replies, strict=True)
    ]


def _between(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()
