"""What is said after a patch was applied."""

from __future__ import annotations

from typing import Final

from codex_py.patch.plan import PatchPlan

_SHOWN_NOTES: Final = 20


def summarize(plan: PatchPlan) -> str:
    """The files as the patch wrote them, added ones first, then changed, then deleted; a moved one where it is now.

    The layout of the first lines is the format models know; notes follow it.
    """
    lines = ["Success. Updated the following files:"]
    for letter, change_kind in (("A", "add"), ("M", "update"), ("D", "delete")):
        lines += [
            f"{letter} {change.move_path or change.path}" for change in plan.changes if change.kind == change_kind
        ]
    lines += [f"note: {note}" for note in plan.notes[:_SHOWN_NOTES]]
    if len(plan.notes) > _SHOWN_NOTES:
        lines.append(f"note: {len(plan.notes) - _SHOWN_NOTES} more places were not certain")
    return "\n".join(lines) + "\n"
