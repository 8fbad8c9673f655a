"""What stands in a history after a compaction: the request for a summary, the summary, and notes on the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.context.markup import cut_to, quoted
from codex_py.protocol.events import PlanStep
from codex_py.protocol.items import Message, ResponseItem, message
from codex_py.text.sanitize import sanitize_line

MAX_SUMMARY_BYTES: Final = 128 * 1024
_MAX_FOCUS_BYTES: Final = 8 * 1024
_OPENING: Final = "<conversation_summary>"
_LEAD: Final = (
    "The conversation before this point was replaced by this summary, which the model working on it then wrote. Build"
    " on it instead of doing the work again; read files again where details matter."
)
# How the summaries of Codex CLI begin.
_FOREIGN: Final = "Another language model started to solve this problem and produced a summary"
# What programs put before the model as a user's message, by how it begins.
HOST_TEXTS: Final = (
    "# AGENTS.md instructions",
    "<environment_context>",
    "<skill>",
    "<skill_references>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<user_instructions>",
    "<subagent_notification>",
    "<hook_prompt>",
    "<content_filter_guidance>",
    _OPENING,
    _FOREIGN,
)


def handoff_request(prompt: str | None, focus: str) -> ResponseItem:
    """The message that asks for a summary; `prompt` is the user's own wording, `focus` what to dwell on."""
    text = prompt or Path(__file__).with_name("prompts").joinpath("compact.md").read_text("utf-8").strip()
    focus_text = cut_to(focus.strip(), _MAX_FOCUS_BYTES)
    return message("user", f"{text}\n\nThe user asks you to dwell on this: {focus_text}" if focus_text else text)


def summary_item(summary: str) -> ResponseItem:
    """The message that carries a summary on."""
    text = cut_to(summary.strip(), MAX_SUMMARY_BYTES)
    return message("user", f"{_OPENING}\n{_LEAD}\n\n{text}\n</conversation_summary>")


def is_summary(item: ResponseItem) -> bool:
    """Whether an item is the summary of an earlier compaction, by this program or by Codex CLI."""
    view = item.view()
    return isinstance(view, Message) and view.text.startswith((_OPENING, _FOREIGN))


def is_users_own(item: ResponseItem) -> bool:
    """Whether an item is a message the user wrote, and not one of the host, such as context, a skill or a summary."""
    if item.type != "message":
        return False
    view = item.view()
    return isinstance(view, Message) and view.role == "user" and not view.text.startswith(HOST_TEXTS)


_MAX_PLAN_BYTES: Final = 16 * 1024
_MAX_FILES: Final = 200
_MAX_SKILLS: Final = 50
_MAX_PATH: Final = 1024
_MARKS: Final = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}


def work_notes(plan: Sequence[PlanStep], files: Mapping[str, str], skills: Mapping[str, str]) -> list[ResponseItem]:
    """One developer message with the plan, the files edited so far and the skills used; none when there is nothing.

    `files` and `skills` are by path, the newest last; beyond 200 files and 50 skills only the newest are named.
    """
    blocks = [*_plan_block(plan), *_files_block(files), *_skills_block(skills)]
    if not blocks:
        return []
    return [message("developer", "\n".join(("<work_so_far>", *blocks, "</work_so_far>")))]


def _plan_block(plan: Sequence[PlanStep]) -> list[str]:
    if not plan:
        return []
    steps = "\n".join(f"{_MARKS[step.status]} {sanitize_line(step.text)}" for step in plan)
    return [f"The plan as it stands (`update_plan` replaces it):\n{cut_to(steps, _MAX_PLAN_BYTES)}"]


def _files_block(files: Mapping[str, str]) -> list[str]:
    lines = [f"- {_path(path)} ({change})" for path, change in files.items()]
    return _listed("Files edited in this session so far:", lines, _MAX_FILES)


def _skills_block(skills: Mapping[str, str]) -> list[str]:
    lines = [f"- {quoted(name[:_MAX_PATH])}: {_path(path)}" for path, name in skills.items()]
    return _listed("Skills used so far; read the file of one again before going on with it:", lines, _MAX_SKILLS)


def _listed(title: str, lines: Sequence[str], max_lines: int) -> list[str]:
    if not lines:
        return []
    left_out = [f"- ({len(lines) - max_lines} earlier ones are not named)"] if len(lines) > max_lines else []
    return [title, *left_out, *lines[-max_lines:]]


def _path(path: str) -> str:
    return quoted(path[:_MAX_PATH])
