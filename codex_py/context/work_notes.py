"""The note on the work so far that follows a compaction: facts the host knows, not left to the model's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from codex_py.context.markup import cut_to, quoted
from codex_py.protocol.events import PlanStep
from codex_py.protocol.items import ResponseItem, message
from codex_py.text.sanitize import sanitize_line

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
