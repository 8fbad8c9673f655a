"""What several hooks say together: the strictest word counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codex_py.hooks.answer import HookAnswer, Permission
from codex_py.hooks.schema import Hook
from codex_py.protocol.value import Value


class Verdict(Value):
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


def combined(answers: Sequence[tuple[Hook, HookAnswer]]) -> Verdict:
    """One verdict of all answers."""
    given = [answer for _, answer in answers]
    words = {one.permission for one in given}
    permission: Permission | None = "deny" if "deny" in words else "ask" if "ask" in words else None
    permission = permission or ("allow" if "allow" in words else None)
    blocks = any(one.blocks for one in given)
    saying_so = [one for one in given if (one.blocks if blocks else permission and one.permission == permission)]
    updates = [(hook, one.updated) for hook, one in answers if one.updated]
    return Verdict(
        permission=permission,
        blocks=blocks,
        reason="\n".join(dict.fromkeys(one.reason for one in saying_so if one.reason)),
        contexts=tuple(dict.fromkeys(one.context for one in given if one.context)),
        stop=next((one.stop for one in given if one.stop is not None), None),
        updated=updates[0][1] if updates else None,
        messages=tuple(f"{hook.event} hook: {one.message}" for hook, one in answers if one.message),
        warnings=(
            *(f"the {hook.event} hook `{hook.label}` {one.warning}" for hook, one in answers if one.warning),
            *(
                f"the PreToolUse hooks `{updates[0][0].label}` and `{hook.label}` both change the input of one call: "
                "the first one counts"
                for hook, one in updates[1:]
                if one != updates[0][1]
            ),
        ),
    )
