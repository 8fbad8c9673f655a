"""What several hooks say together: the strictest word counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codex_py.hooks.answer import HookAnswer, Permission
from codex_py.hooks.schema import Hook
from codex_py.protocol.value import Value


class HookVerdict(Value):
    """The answers of all hooks of one moment, in the order the hooks are configured.

    `permission` is the strictest one given and `blocks` whether any hook does; `reason` is of all that say the same.
    `updated` is of the first that has one. For the user are `messages`, from hooks, and `warnings`, about them.
    """

    permission: Permission | None = None
    blocks: bool = False
    reason: str = ""
    contexts: tuple[str, ...] = ()
    stop: str | None = None
    updated: Mapping[str, Any] | None = None
    messages: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def combined(answers: Sequence[tuple[Hook, HookAnswer]]) -> HookVerdict:
    """One verdict of all answers."""
    hook_answers = [answer for _, answer in answers]
    words = {hook_answer.permission for hook_answer in hook_answers}
    permission: Permission | None = "deny" if "deny" in words else "ask" if "ask" in words else None
    permission = permission or ("allow" if "allow" in words else None)
    blocks = any(hook_answer.blocks for hook_answer in hook_answers)
    deciding = [
        hook_answer
        for hook_answer in hook_answers
        if (hook_answer.blocks if blocks else permission and hook_answer.permission == permission)
    ]
    updates = [(hook, hook_answer.updated) for hook, hook_answer in answers if hook_answer.updated]
    return HookVerdict(
        permission=permission,
        blocks=blocks,
        reason="\n".join(dict.fromkeys(hook_answer.reason for hook_answer in deciding if hook_answer.reason)),
        contexts=tuple(dict.fromkeys(hook_answer.context for hook_answer in hook_answers if hook_answer.context)),
        stop=next((hook_answer.stop for hook_answer in hook_answers if hook_answer.stop is not None), None),
        updated=updates[0][1] if updates else None,
        messages=tuple(
            f"{hook.event} hook: {hook_answer.message}" for hook, hook_answer in answers if hook_answer.message
        ),
        warnings=(
            *(
                f"the {hook.event} hook `{hook.label}` {hook_answer.warning}"
                for hook, hook_answer in answers
                if hook_answer.warning
            ),
            *(
                f"the PreToolUse hooks `{updates[0][0].label}` and `{hook.label}` both change the input of one call: "
                "the first one counts"
                for hook, hook_answer in updates[1:]
                if hook_answer != updates[0][1]
            ),
        ),
    )
