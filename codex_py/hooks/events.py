"""The moments at which hooks run, and what is particular about each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Moment(NamedTuple):
    """`subject` is the input field that matchers are held against, "" where there is none: every hook runs then.

    `takes_text` says that plain text on stdout is context for the model, `blocks` that a hook can say no, `closes` that
    a hook that fails can be one that does (`fail_closed`).
    """

    about: str
    subject: str = ""
    takes_text: bool = False
    blocks: bool = False
    closes: bool = False


MOMENTS: Final[Mapping[str, Moment]] = {
    "PreToolUse": Moment("a tool is about to run", "tool_name", blocks=True, closes=True),
    "PostToolUse": Moment("a tool has done its work", "tool_name", blocks=True),
    "PostToolUseFailure": Moment("a tool has failed", "tool_name", blocks=True),
    "PermissionRequest": Moment("the user is about to be asked for permission", "tool_name", blocks=True, closes=True),
    "UserPromptSubmit": Moment("the user has said something", takes_text=True, blocks=True, closes=True),
    "SessionStart": Moment("a session begins, or its history was replaced", "source", takes_text=True),
    "SessionEnd": Moment("a session ends", "reason"),
    "Stop": Moment("the model has nothing left to do", blocks=True),
    "SubagentStart": Moment("a subagent begins", "agent_type", takes_text=True),
    "SubagentStop": Moment("a subagent has nothing left to do", "agent_type", blocks=True),
    "PreCompact": Moment("the history is about to be replaced by a summary", "trigger", blocks=True, closes=True),
    "PostCompact": Moment("the history was replaced by a summary", "trigger"),
    "Notification": Moment("the user is waited for", "notification_type"),
    "Setup": Moment("the first session in a project begins", "trigger", takes_text=True),
    "TeammateIdle": Moment("a subagent is about to wait for more work", blocks=True),
    "TaskCompleted": Moment("a step of the plan is about to be marked as done", blocks=True, closes=True),
    "SkillUse": Moment("a skill was selected, or seen to be used", "skill_name"),
}
