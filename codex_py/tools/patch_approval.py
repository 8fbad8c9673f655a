"""The question whether a patch may be written."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.protocol.ids import uuid7
from codex_py.protocol.questions import ApprovalQuestion
from codex_py.text.sanitize import sanitize
from codex_py.tools.approval import AskVerdict, RefuseVerdict, RunVerdict, decide_patch
from codex_py.tools.grants import Approvals
from codex_py.tools.orchestrator import PLANNING, declined_because, put_question
from codex_py.tools.spec import ToolContext

_SKILL: Final = "it writes a skill, which the agent of later sessions follows like your own instructions"


class PatchToJudge(NamedTuple):
    """A patch as written, and the real paths of the files it names."""

    text: str
    files: tuple[Path, ...]


def is_in_skills(path: Path) -> bool:
    """Whether a path lies in a project's directory of skills."""
    return (".agents", "skills") in pairwise(path.parts)


async def permit_patch(outside: str | None, patch: PatchToJudge, context: ToolContext) -> str | None:
    """Ask about a patch where that is needed; None when it may be written, else why not.

    `outside` is why the sandbox would refuse it, None when it would not.
    """
    if context.plan:
        return f"patch refused: {PLANNING}; put what you would change into the plan"
    approvals = context.approvals or Approvals()
    async with approvals.lock:
        if context.allowed and outside is None:
            return None
        verdict = decide_patch(outside, policy=context.approval, can_ask=context.ask is not None)
        match verdict:
            case RunVerdict():
                return None
            case RefuseVerdict(reason):
                return reason
            case AskVerdict():
                pass
        keys = [("patch", file) for file in patch.files]
        if all(approvals.is_allowed(key) for key in keys):
            return None
        question = ApprovalQuestion(
            id=uuid7(),
            call_id=context.call_id,
            command=sanitize(patch.text),
            cwd=context.cwd,
            reason=_SKILL if outside is not None and any(map(is_in_skills, patch.files)) else verdict.reason,
            outside=verdict.outside,
            files=patch.files,
        )
        reply = await put_question(question, context)
        if reply.scope == "session":
            for key in keys:
                approvals.allow(key)
        return None if reply.scope else f"patch rejected: {declined_because(reply)}"
