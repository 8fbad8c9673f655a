"""Whether a call of a server's tool may be made: decided by what the tool says of itself, or asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from codex_py.errors import ToolError, UserError
from codex_py.mcp.catalog import McpTool
from codex_py.mcp.servers import McpServer
from codex_py.protocol.encoding import encode_json, uuid7
from codex_py.protocol.events import Warned
from codex_py.protocol.policy import ApprovalPolicy, DangerFullAccess, SandboxPolicy, approval_name, asks_about
from codex_py.protocol.questions import ApprovalMissing, ApprovalQuestion, ApprovalScope
from codex_py.text.sanitize import sanitize, sanitize_line
from codex_py.tools.approval import (
    Approvals,
    ApprovalVerdict,
    AskVerdict,
    RefuseVerdict,
    RunVerdict,
    declined_because,
    put_question,
)
from codex_py.tools.spec import PLANNING, ToolContext

_MAX_SHOWN_ARGUMENTS: Final = 16 * 1024


class McpCall(NamedTuple):
    """A call to be judged. `tool` is what the server says of the tool, None when it knows none of this name."""

    server: McpServer
    name: str
    tool: McpTool | None
    arguments: dict[str, Any]

    @property
    def pin(self) -> str:
        """Stands for the tool as it is now; "" when nothing is known of it."""
        return "" if self.tool is None else self.tool.pin(self.server)


def decide_call(
    call: McpCall, *, policy: ApprovalPolicy, sandbox: SandboxPolicy, can_ask: bool, plan: bool = False
) -> ApprovalVerdict:
    """The verdict on a call: what only reads passes, what may destroy or says nothing of itself is asked about."""
    mode = call.server.mode_of(call.name)
    reads = call.tool is not None and call.tool.reads_only(call.server)
    if plan and not reads:
        return RefuseVerdict(f"call refused: {PLANNING}, and {_why_not_read_only(call)}")
    if mode == "approve" or (mode == "auto" and is_harmless(call)) or (mode == "writes" and reads):
        return RunVerdict()
    approved = call.server.approved_tools.get(call.name)
    if mode != "prompt" and approved is not None and approved == call.pin:
        return RunVerdict()
    if mode == "auto" and policy == "never" and isinstance(sandbox, DangerFullAccess):
        # The user has taken every other barrier away, too.
        return RunVerdict()
    reason = "the configuration wants to be asked" if mode == "prompt" else _question_reason(call)
    if approved is not None and mode != "prompt":
        reason = _changed(call)
    verdict = AskVerdict(reason, outside=True, patternable=False, kind="mcp_elicitations")
    if can_ask and asks_about(policy, verdict.kind):
        return verdict
    how = (
        "in this session"
        if asks_about(policy, verdict.kind)
        else f"under the approval policy `{approval_name(policy)}`"
    )
    allow = call.server.allow_with
    advice = f"; the user can allow the tools of this server with `{allow}`" if allow else ""
    return RefuseVerdict(
        f"call refused: {reason}; nobody can be asked {how}: go on without it, or report what is needed{advice}",
        verdict,
    )


def is_harmless(call: McpCall) -> bool:
    """Whether trusted annotations mark the tool as read-only, or as neither destructive nor open-world."""
    tool = call.tool
    if tool is None or not call.server.trust_annotations:
        return False
    return tool.read_only is True or (tool.destructive is False and tool.open_world is False)


async def permit_call(call: McpCall, context: ToolContext, keep: Callable[[McpServer, str, str], None]) -> None:
    """Ask where that is needed; raises `ToolError` when the call may not be made."""
    approvals = context.approvals or Approvals()
    async with approvals.lock:
        # A hook's yes stands for an answer, also where nobody could give one; not for one the user wants to give.
        saves_question = context.allowed and call.server.mode_of(call.name) != "prompt"
        verdict = decide_call(
            call,
            policy="on-request" if saves_question else context.approval,
            sandbox=context.sandbox_policy,
            can_ask=saves_question or context.ask is not None,
            plan=context.plan,
        )
        match verdict:
            case RunVerdict():
                return
            case RefuseVerdict(reason, unasked):
                if unasked is not None:
                    context.emit(ApprovalMissing(context.call_id, unasked.reason))
                raise ToolError(reason)
            case AskVerdict():
                if saves_question:
                    return
        # A yes is bound to the tool as it is now; the name alone tells that it has changed since.
        name, key = ("mcp", call.server.name, call.name), ("mcp", call.server.name, call.name, call.pin)
        if approvals.is_allowed(key):
            return
        scopes: tuple[ApprovalScope, ...] = ("once", "session", "always")
        if call.server.mode_of(call.name) == "prompt" or not call.server.table_key:
            scopes = ("once", "session")
        question = ApprovalQuestion(
            id=uuid7(),
            call_id=context.call_id,
            command=shown_call(call),
            cwd=context.cwd,
            reason=_changed(call) if approvals.is_allowed(name) else verdict.reason,
            outside=verdict.outside,
            scopes=scopes,
            server=sanitize_line(call.server.name),
        )
        reply = await put_question(question, context.ask)
        if reply.scope is None:
            raise ToolError(f"call {declined_because(reply)}")
        if reply.scope != "once":
            approvals.allow(key)
            approvals.allow(name)
        if reply.scope == "always":
            try:
                keep(call.server, call.name, call.pin)
            except UserError as error:
                context.emit(Warned(str(error)))


def shown_call(call: McpCall) -> str:
    """The call as a person reads it, with nothing hidden."""
    text = encode_json(call.arguments).decode(errors="replace")
    cut = text if len(text) <= _MAX_SHOWN_ARGUMENTS else f"{text[:_MAX_SHOWN_ARGUMENTS]}…"
    return f"{sanitize_line(call.server.name)}.{sanitize_line(call.name)} {sanitize(cut)}"


def _shown_name(call: McpCall) -> str:
    return f"`{sanitize_line(call.name)}` of the MCP server `{sanitize_line(call.server.name)}`"


def _changed(call: McpCall) -> str:
    return f"{_shown_name(call)} has changed since you allowed it: its description, parameters, annotations or server"


def _why_not_read_only(call: McpCall) -> str:
    if call.tool is not None and call.tool.read_only is True:
        return f"only its server says that `{call.name}` reads only, which counts with `trust_annotations = true`"
    return f"`{call.name}` does not say that it only reads"


def _question_reason(call: McpCall) -> str:
    tool, name = call.tool, _shown_name(call)
    if tool is not None and not call.server.trust_annotations:
        return f"{name} may change or destroy data: what the server says of its tools is not trusted"
    if tool is None or (tool.read_only, tool.destructive) == (None, None):
        return f"{name} does not say what it does to your data"
    if tool.destructive is not False:
        return f"{name} may change or destroy data"
    return f"{name} acts on the world outside"
