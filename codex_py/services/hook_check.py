"""Runs the hooks of an event with sample input, outside of any session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.config.load import LoadedConfig
from codex_py.core.secrets import command_env, key_names
from codex_py.core.session_sandbox import ProgramSandbox
from codex_py.core.session_settings import choose_policy
from codex_py.core.tool_set import BUILT_IN
from codex_py.hooks.answer import HookVerdict, combine_answers
from codex_py.hooks.engine import HookEngine, HookExecution, HookRun
from codex_py.hooks.schema import HOOK_EVENTS
from codex_py.hooks.sources import FoundHooks
from codex_py.protocol.encoding import decode_json
from codex_py.subagents.tools import AGENT_TOOLS
from codex_py.tools.hook_calls import HookToolCall, hook_calls_of, sample_call

_SAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "UserPromptSubmit": {"prompt": "say hello"},
    "SessionStart": {"source": "startup"},
    "SessionEnd": {"reason": "other"},
    "Stop": {"stop_hook_active": False, "last_assistant_message": "done"},
    "SubagentStart": {"agent_id": "test", "agent_type": "default"},
    "SubagentStop": {
        "agent_id": "test",
        "agent_type": "default",
        "stop_hook_active": False,
        "last_assistant_message": "done",
        "agent_transcript_path": None,
    },
    "PreCompact": {"trigger": "manual", "custom_instructions": ""},
    "PostCompact": {"trigger": "manual", "compact_summary": "a summary"},
    "Notification": {"notification_type": "permission_prompt", "message": "a test", "title": "codex-py"},
    "Setup": {"trigger": "init"},
    "TeammateIdle": {"teammate_name": "agent-1", "team_name": "test", "stop_hook_active": False},
    "TaskCompleted": {"task_id": "a step", "task_subject": "a step", "task_description": "a step"},
    "SkillUse": {"skill_name": "test", "skill_scope": "user", "skill_path": "/test/SKILL.md", "kind": "explicit"},
}


class HookCheck(NamedTuple):
    """The hooks that ran, their inputs, and their combined verdict."""

    runs: Sequence[HookRun]
    inputs: Sequence[Mapping[str, Any]]
    verdict: HookVerdict


class HookCheckContext(NamedTuple):
    """Where hooks are checked: CODEX_HOME, the directory, and the environment of the user."""

    home: Path
    cwd: Path
    env: Mapping[str, str]


class HookSample(NamedTuple):
    """Sample input for hooks: the name of a tool as hooks know it, with a command or a file, and any `fields`."""

    tool: str
    command: str
    file: str
    fields: Mapping[str, Any]


async def try_hooks(
    loaded: LoadedConfig,
    found: FoundHooks,
    event: str,
    *,
    context: HookCheckContext,
    sample: HookSample,
) -> HookCheck:
    """Run the hooks of an event as a session would."""
    home, cwd, env = context
    engine = HookEngine(found)
    if HOOK_EVENTS[event].subject == "tool_name":
        fields: dict[str, Any] = {"tool_use_id": "test"}
        fails = event == "PostToolUseFailure"
        if event.startswith("Post"):
            outcome = {"success": not fails, "exit_code": int(fails), "output": "", "stdout": "", "stderr": ""}
            fields |= {"tool_response": outcome}
        if fails:
            fields |= {"error": "Exit code 1\n", "is_interrupt": False}
        scheduled = engine.schedule_for_calls(event, _hook_calls(sample, cwd), {**fields, **sample.fields})
    else:
        scheduled = engine.schedule(event, {**_SAMPLES[event], **sample.fields})
    execution = HookExecution(
        fields={
            "session_id": "test",
            "transcript_path": None,
            "cwd": str(cwd),
            "permission_mode": "default",
            "model": loaded.config.model or "",
        },
        project=found.project,
        cwd=cwd,
        env=command_env(loaded.config, env, key_names(loaded.config), {}, home),
        policy=choose_policy(loaded),
        sandbox=ProgramSandbox(loaded, home=home, env=env),
    )
    runs = await engine.run(scheduled, execution)
    verdict = combine_answers([(run.hook, run.answer) for run in runs])
    return HookCheck(runs, [decode_json(run.payload) for run in runs], verdict)


def _hook_calls(sample: HookSample, cwd: Path) -> Sequence[HookToolCall]:
    call, view = sample_call(sample.tool, (*BUILT_IN, *AGENT_TOOLS), command=sample.command, file=sample.file)
    return hook_calls_of(call, view, cwd)
