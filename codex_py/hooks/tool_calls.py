"""A tool call with hooks around it: they may refuse it, change it, answer for the user, and comment on the result."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from codex_py.context.host_messages import with_feedback
from codex_py.errors import ToolError
from codex_py.hooks.answer import NO_REASON, HookVerdict
from codex_py.hooks.dispatcher import HookDispatcher
from codex_py.protocol import events
from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json, uuid7
from codex_py.protocol.items import ToolCall
from codex_py.protocol.questions import (
    ApprovalQuestion,
    ApprovalReply,
    AskUser,
    PermissionsQuestion,
    Question,
    QuestionAnswer,
)
from codex_py.protocol.readable import arguments_of
from codex_py.text.display import first_words
from codex_py.text.sanitize import sanitize
from codex_py.tools.approval import declined_because, put_question
from codex_py.tools.hook_calls import HookToolCall, hook_calls_of, rewritten
from codex_py.tools.spec import Tool, ToolContext, ToolOutput, TypedText, failed_output

_SHOWN: Final = 120
_MAX_SCRIPTS: Final = 32
_MAX_QUESTION_LENGTH: Final = 16 * 1024
_MAX_LINE_LENGTH: Final = 16 * 1024
_NOBODY: Final = "nobody can be asked in this session"
_NO_YES: Final = f"declined by default: {_NOBODY}, and no hook has said yes"


class HookedCalls:
    """The tool calls of one session."""

    def __init__(self, hooks: HookDispatcher) -> None:
        self._hooks = hooks
        # What was typed into each running command since the last line break.
        self._typed: dict[int, str] = {}
        self._done_steps: set[str] = set()

    async def run(self, call: ToolCall, context: ToolContext, tool: Tool) -> ToolOutput:
        """Run a call the way hooks want it; the output of a refused call says why."""
        hook_calls = self._hook_calls(call, tool, context)
        before = await self._before(call, hook_calls, context)
        self._hooks.add_contexts(before)
        if before.permission == "deny" or before.stop is not None:
            return self._refuse(call, hook_calls, before, context)
        if before.updated:
            changed = rewritten(call, tool.hook_view, before.updated)
            if changed is call:
                self._hooks.warn(f"what a PreToolUse hook changes is no part of `{call.name}`: it runs as it is")
            call, hook_calls = changed, self._hook_calls(changed, tool, context)
        asking = context.replace(ask=self._ask(call, hook_calls, context))
        if (refusal := await self._ask_user(hook_calls, before, asking)) is not None:
            return _declined(call, hook_calls, refusal, context)
        if (refusal := await self._unfinished(call) if tool.type == "plans" else None) is not None:
            return ToolOutput(refusal, ok=False)
        try:
            output = await tool.run(call, asking.replace(allowed=before.permission is not None))
        except ToolError as error:
            output = failed_output(error)
        if isinstance(tool.hook_view, TypedText):
            self._note_typing(call, tool.hook_view.name)
        return await self._after(call, hook_calls, output)

    def _hook_calls(self, call: ToolCall, tool: Tool, context: ToolContext) -> list[HookToolCall]:
        typed = self._typed.get(_session_of(call), "") if isinstance(tool.hook_view, TypedText) else ""
        return hook_calls_of(call, tool.hook_view, context.cwd, typed)

    async def _before(self, call: ToolCall, hook_calls: Sequence[HookToolCall], context: ToolContext) -> HookVerdict:
        """Ask hooks about a call, and about each script that its command passes to another shell."""
        fields = {"tool_use_id": call.call_id}
        verdict = await self._hooks.fire_about("PreToolUse", hook_calls, fields)
        command = hook_calls[0]
        if (
            verdict.permission == "deny"
            or not command.is_command
            or not self._hooks.engine.has("PreToolUse", command.names)
        ):
            return verdict
        line = str(command.tool_input["command"])
        read = await asyncio.to_thread(context.read_command_line, line, context.cwd)
        scripts = dict.fromkeys(script.strip() for script in read.scripts[:_MAX_SCRIPTS])
        inner = [command.replace(tool_input={**command.tool_input, "command": script}) for script in scripts if script]
        if not inner:
            return verdict
        within = await self._hooks.fire_about("PreToolUse", inner, fields)
        if within.permission in ("deny", "ask") or within.stop is not None:
            return within.replace(contexts=verdict.contexts)
        return verdict

    def _refuse(
        self, call: ToolCall, hook_calls: Sequence[HookToolCall], verdict: HookVerdict, context: ToolContext
    ) -> ToolOutput:
        first, reason = hook_calls[0], verdict.stop if verdict.permission != "deny" else verdict.reason
        shown = first_words(_description(first), _SHOWN)
        self._hooks.warn(f"a PreToolUse hook blocked `{shown}`: {reason or NO_REASON}")
        message = f"blocked by a PreToolUse hook: {reason or NO_REASON}"
        return _declined(call, hook_calls, message, context)

    async def _ask_user(
        self, hook_calls: Sequence[HookToolCall], verdict: HookVerdict, context: ToolContext
    ) -> str | None:
        """Ask the user if a hook wants that. Why the call must not be made, None when it may."""
        if verdict.permission != "ask":
            return None
        reason = f"a hook wants you to be asked: {verdict.reason}" if verdict.reason else "a hook wants you to be asked"
        if context.ask is None:
            context.emit(events.ApprovalMissing(context.call_id, reason))
            return f"refused: {reason}; {_NOBODY}"
        shown = sanitize(_description(hook_calls[0])[:_MAX_QUESTION_LENGTH])
        question = ApprovalQuestion(uuid7(), context.call_id, shown, context.cwd, reason, scopes=("once",))
        reply = await put_question(question, context.ask)
        return None if reply.scope else f"call {declined_because(reply)}"

    def _ask(self, call: ToolCall, hook_calls: Sequence[HookToolCall], context: ToolContext) -> AskUser | None:
        """Asks the user what hooks do not answer in the user's place."""
        names = {name for hook_call in hook_calls for name in hook_call.names}
        if not self._hooks.engine.has("PermissionRequest", names):
            return context.ask

        async def ask(question: Question) -> QuestionAnswer | None:
            if isinstance(question, ApprovalQuestion | PermissionsQuestion):
                verdict = await self._hooks.fire_about("PermissionRequest", hook_calls, {"tool_use_id": call.call_id})
                is_approval = isinstance(question, ApprovalQuestion)
                if verdict.permission == "allow":
                    return "once" if is_approval else "yes"
                if verdict.permission == "deny":
                    reason = verdict.reason or NO_REASON
                    refusal = f"declined by a PermissionRequest hook: {reason}"
                    self._hooks.warn(f"a PermissionRequest hook said no: {reason}")
                    return ApprovalReply(refusal=refusal) if is_approval else None
            if context.ask is not None:
                return await context.ask(question)
            if not isinstance(question, ApprovalQuestion):
                return None
            context.emit(events.ApprovalMissing(context.call_id, question.reason))
            return ApprovalReply(refusal=_NO_YES)

        return ask

    async def _unfinished(self, call: ToolCall) -> str | None:
        """Why the model must not mark a step of its plan as done; None when it may."""
        if not self._hooks.engine.has("TaskCompleted"):
            return None
        steps = [as_object(step) for step in as_list(arguments_of(call).get("plan"))]
        done = [str(step.get("step")) for step in steps if step.get("status") == "completed"]
        for step in done:
            if step in self._done_steps:
                continue
            fields = {
                "task_id": step,
                "task_subject": step,
                "task_description": step,
                **self._hooks.context.teammate,
            }
            verdict = await self._hooks.fire("TaskCompleted", fields)
            if verdict.blocks:
                shown = first_words(step, _SHOWN)
                self._hooks.warn(f"a TaskCompleted hook does not count `{shown}` as done: {verdict.reason}")
                return f"the plan is not changed: a hook does not count `{step}` as done: {verdict.reason}"
        self._done_steps = set(done)
        return None

    async def _after(self, call: ToolCall, hook_calls: Sequence[HookToolCall], output: ToolOutput) -> ToolOutput:
        code, error = None, output.text
        if isinstance(output.ended, events.CommandFinished) and output.ended.exit_code is not None:
            code, error = output.ended.exit_code, f"Exit code {output.ended.exit_code}\n{output.ended.output}"
        failed = not output.ok or code not in (None, 0)
        event = "PostToolUseFailure" if failed else "PostToolUse"
        if not self._hooks.engine.has(event):
            return output
        fields: dict[str, Any] = {"tool_response": _response(hook_calls[0], output), "tool_use_id": call.call_id}
        if failed:
            fields |= {"error": error, "is_interrupt": False}
        shown = as_object(decode_json(self._hooks.session.secrets.redact_bytes(encode_json(fields))))
        verdict = await self._hooks.fire_about(event, hook_calls, shown)
        self._hooks.add_contexts(verdict)
        if not verdict.blocks:
            return output
        self._hooks.warn(f"a {event} hook has told the model: {verdict.reason}")
        if output.parts:
            part = {"type": "input_text", "text": with_feedback("", verdict.reason).strip()}
            return output.replace(parts=(*output.parts, part))
        return output.replace(text=with_feedback(output.text, verdict.reason))

    def _note_typing(self, call: ToolCall, field: str) -> None:
        """Keep a line that is typed in pieces: hooks see all of it."""
        chars = arguments_of(call).get(field)
        if not isinstance(chars, str) or not chars:
            return
        session = _session_of(call)
        line = (self._typed.pop(session, "") + chars).replace("\r", "\n").rpartition("\n")[2]
        if line and "\x03" not in line and len(line) <= _MAX_LINE_LENGTH:
            self._typed[session] = line


def _response(hook_call: HookToolCall, output: ToolOutput) -> dict[str, Any]:
    """The outcome as hooks get it, in the fields of Claude Code."""
    match output.ended:
        case events.McpCallFinished(result=dict() as result):
            return {**result, "output": output.text}
        case events.CommandFinished(output=printed, exit_code=code):
            return {**_printed(printed), "exit_code": code, "output": printed}
        case _ if hook_call.is_command:
            return {**_printed(output.text), "exit_code": None, "output": output.text}
        case _ if hook_call.is_patch:
            return {"filePath": hook_call.tool_input["file_path"], "success": output.ok, "output": output.text}
        case _:
            return {"success": output.ok, "output": output.text}


def _declined(call: ToolCall, hook_calls: Sequence[HookToolCall], message: str, context: ToolContext) -> ToolOutput:
    """The output of a call that is not made; front ends get an event too."""
    first = hook_calls[0]
    if first.is_command and not first.is_typed:
        line = str(first.tool_input["command"])
        ended = events.CommandFinished(call.call_id, line, context.cwd, message, None, 0.0, "declined")
        return ToolOutput(message, ok=False, ended=ended)
    if first.is_patch:
        context.emit(events.PatchRejected(call.call_id, message))
    return ToolOutput(message, ok=False)


def _printed(text: str) -> dict[str, Any]:
    return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}


def _session_of(call: ToolCall) -> int:
    session = arguments_of(call).get("session_id")
    return session if isinstance(session, int) else -1


def _description(hook_call: HookToolCall) -> str:
    """A call in words for the user."""
    if "command" in hook_call.tool_input and (hook_call.is_command or hook_call.is_patch):
        return str(hook_call.tool_input["command"])
    return f"{hook_call.name} {encode_json(dict(hook_call.tool_input)).decode(errors='replace')}"
