"""What a history begins with after a compaction. Pure: decided here, not left to the summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from codex_py.context.summary import is_summary, is_users_own
from codex_py.context.work_notes import work_notes
from codex_py.core.work_log import WorkState
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.items import Message, ResponseItem, message
from codex_py.text.tokens import PICTURE_BYTES, estimate_text_tokens, estimate_tokens
from codex_py.text.truncate import truncate_middle

if TYPE_CHECKING:
    from codex_py.core.compact import Handover

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
    """Tokens of the user's own messages that are kept for a window of so many."""
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
    """Whether the model said it, or a compaction put it in the place of what the model had said."""
    if item.type != "message":
        return True
    view = item.view()
    return isinstance(view, Message) and (view.role == "assistant" or is_summary(view.text))


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
        texts.append(f"[{pictures} picture{'' if pictures == 1 else 's'} left out]")
    return [message("user", *texts)]


def _cut_skill(text: str, most: int) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= most:
        return text
    head = raw[:most].decode("utf-8", "ignore")
    return f"{head}\n[cut here: these are the first {most} of {len(raw)} bytes; the rest is in the file]{_SKILL_END}"
