"""The items that a history begins with after a compaction, and the work state read back from a history."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.context.compaction import is_summary, is_users_own, work_notes
from codex_py.core.compact import Handover
from codex_py.core.session_skills import SkillUses
from codex_py.core.work_log import WorkState
from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.events import PlanStep
from codex_py.protocol.items import Message, ResponseItem, ToolCall, message
from codex_py.protocol.readable import output_of, plan_of
from codex_py.text.display import counted
from codex_py.text.tokens import PICTURE_BYTES, estimate_text_tokens, estimate_tokens, truncate_middle
from codex_py.tools.session_tools import UpdatePlan

USER_TOKENS: Final = 20_000
# In a small window the user's messages leave room for the work.
_USER_SHARE: Final = 4
_SKILL_BYTES: Final = 32 * 1024
_ALL_SKILLS_BYTES: Final = 64 * 1024
# A message cut shorter than this says nothing.
_MIN_TOKENS: Final = 16
_SKILL_END: Final = "\n</skill>"


def new_history(
    items: Sequence[ResponseItem],
    handover: Handover,
    state: WorkState,
    *,
    skills: Sequence[ResponseItem],
    window: int | None,
    tight: bool = False,
) -> list[ResponseItem]:
    """What follows the fresh context: the user's messages, a running turn's skills, the work so far, the handover.

    `items` are the old history. `tight` keeps as little as can be, for a window that even the rest has overflowed.
    """
    budget = user_budget(window)
    users = (
        handover.users if handover.users is not None else retain_user_messages(items, budget // 8 if tight else budget)
    )
    again = [] if tight else retain_skills(skills)
    return [*users, *again, *work_notes(state.plan, state.files, state.skills), *handover.items]


def user_budget(window: int | None) -> int:
    """The tokens of the user's own messages that are kept, for a window of this size."""
    return USER_TOKENS if window is None else min(USER_TOKENS, window // _USER_SHARE)


def retain_user_messages(items: Sequence[ResponseItem], budget: int) -> list[ResponseItem]:
    """The user's own messages that fit into `budget` tokens, chosen newest first, in their order.

    The first one that does not fit whole keeps its head and tail, and loses its pictures; all older ones are dropped.
    """
    retained: list[ResponseItem] = []
    left = budget
    for item in reversed(items):
        if not is_users_own(item):
            continue
        text, pictures = _content(item)
        cost = estimate_text_tokens(text) + estimate_tokens(pictures * PICTURE_BYTES)
        if cost > left:
            retained += _cut_message(text, pictures, left)
            break
        retained.append(item)
        left -= cost
    return retained[::-1]


def retain_skills(items: Sequence[ResponseItem]) -> list[ResponseItem]:
    """The `<skill>` messages of a turn again: 32 KiB of each, 64 KiB of all."""
    retained: list[ResponseItem] = []
    left = _ALL_SKILLS_BYTES
    for item in items:
        view = item.view()
        if isinstance(view, Message) and left > 0:
            text = _cut_skill(view.text, min(_SKILL_BYTES, left))
            left -= len(text.encode("utf-8", "surrogatepass"))
            retained.append(item if text == view.text else message("user", text))
    return retained


def is_of_model(item: ResponseItem) -> bool:
    """Whether it is a message of the model, or what a compaction put in place of such messages."""
    return item.is_of_model or is_summary(item)


def _content(item: ResponseItem) -> tuple[str, int]:
    content_parts: list[dict[str, Any]] = [as_object(part) for part in as_list(item.decode().get("content"))]
    view = item.view()
    text = view.text if isinstance(view, Message) else ""
    return text, sum(part.get("type") == "input_image" for part in content_parts)


def _cut_message(text: str, pictures: int, budget: int) -> list[ResponseItem]:
    if budget < _MIN_TOKENS or not text:
        return []
    texts = [truncate_middle(text, budget)]
    if pictures:
        texts.append(f"[{counted(pictures, 'picture')} left out]")
    return [message("user", *texts)]


def _cut_skill(text: str, most: int) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= most:
        return text
    head = raw[:most].decode("utf-8", "ignore")
    return f"{head}\n[cut here: these are the first {most} of {len(raw)} bytes; the rest is in the file]{_SKILL_END}"


# How a patch says what it did: the format of `patch.summary`, which other programs share.
_PATCHED: Final = "Success. Updated the following files:\n"
_FILE: Final = r"([AMD]) (\S.*)"
_CHANGE_TYPES: Final = {"A": "add", "M": "update", "D": "delete"}
_PLAN_NAME: Final = f'"{UpdatePlan.name}"'.encode()
_FUNCTION_CALL: Final = b'{"type":"function_call",'
_LOADED: Final = r'<skill-loaded name="([^"\n]*)">\n<path>([^\n]*)</path>\n'
_SKILL: Final = r"<skill>\n<name>([^\n]*)</name>\n<path>([^\n]*)</path>\n"


def work_state_of(items: Sequence[ResponseItem], cwd: Path, skill_uses: SkillUses) -> WorkState:
    """The last plan, the files that patches changed, and the skills that were put before the model or that commands
    read: `skill_uses` returns those of a command in a directory.

    Paths a patch wrote relative are taken from `cwd`.
    """
    state = WorkState()
    for item in items:
        if newer := _state_of(item, cwd, skill_uses):
            state = state.then(newer)
    return state


def last_plan(items: Sequence[ResponseItem]) -> tuple[PlanStep, ...] | None:
    """The plan made last, None where there is none; quick, as the rest of the work is not looked at."""
    plans = (_planned(item) for item in reversed(items) if _PLAN_NAME in item.encoded)
    return next((state.plan for state in plans if state is not None), None)


def _state_of(item: ResponseItem, cwd: Path, skill_uses: SkillUses) -> WorkState | None:
    # The bytes tell most items apart; a long history has thousands.
    encoded = item.encoded
    if _PLAN_NAME in encoded:
        return _planned(item)
    if b"Success. Updated the following files:" in encoded:
        return _patched(item, cwd)
    if b"<skill>" in encoded:
        return _shown(item)
    if b"<skill-loaded name=" in encoded:
        return _loaded(item)
    if encoded.startswith(_FUNCTION_CALL):
        return _read_by_the_way(item, cwd, skill_uses)
    return None


def _planned(item: ResponseItem) -> WorkState | None:
    view = item.view()
    if not isinstance(view, ToolCall) or view.name != UpdatePlan.name:
        return None
    try:
        return WorkState(plan=plan_of(as_object(decode_json(view.arguments)).get("plan")))
    except ValueError:
        return None


def _patched(item: ResponseItem, cwd: Path) -> WorkState | None:
    if not item.type.endswith("_call_output"):
        return None
    output = item.decode().get("output")
    texts = [as_object(part).get("text") for part in as_list(output)]
    text = output if isinstance(output, str) else "\n".join(part for part in texts if isinstance(part, str))
    files: dict[str, str] = {}
    for line in text.partition(_PATCHED)[2].splitlines():
        found = re.fullmatch(_FILE, line)
        if found is None:
            break
        files[str(cwd / found[2])] = _CHANGE_TYPES[found[1]]
    return WorkState(files=files)


def _shown(item: ResponseItem) -> WorkState | None:
    view = item.view()
    if not isinstance(view, Message) or view.role != "user":
        return None
    found = re.match(_SKILL, view.text)
    return WorkState(skills={found[2]: found[1]}) if found else None


def _loaded(item: ResponseItem) -> WorkState | None:
    if not item.type.endswith("_call_output"):
        return None
    found = re.match(_LOADED, output_of(item))
    return WorkState(skills={found[2]: found[1]}) if found else None


def _read_by_the_way(item: ResponseItem, cwd: Path, skill_uses: SkillUses) -> WorkState | None:
    view = item.view()
    if not isinstance(view, ToolCall):
        return None
    try:
        arguments = as_object(decode_json(view.arguments))
    except ValueError:
        return None
    command, directory = arguments.get("cmd") or arguments.get("command"), arguments.get("workdir")
    words = [word for word in as_list(command) if isinstance(word, str)]
    text = command if isinstance(command, str) else shlex.join(words)
    uses = skill_uses(text, cwd / directory if isinstance(directory, str) else cwd) if text else ()
    return WorkState(skills={str(use.skill.canonical_path): use.skill.name for use in uses})
