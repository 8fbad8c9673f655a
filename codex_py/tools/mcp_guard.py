"""Whether a call of a server's tool may be made: by its annotations, by the user's policy, by a question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from codex_py.errors import ToolError, UserError
from codex_py.mcp.catalog import McpTool
from codex_py.mcp.servers import McpServer
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.events import Warned
from codex_py.protocol.ids import uuid7
from codex_py.protocol.policy import (
    ApprovalPolicy,
    DangerFullAccess,
    SandboxPolicy,
    approval_name,
    asks_about,
)
from codex_py.protocol.questions import ApprovalQuestion, ApprovalScope
from codex_py.text.sanitize import sanitize, sanitize_line
from codex_py.tools.approval import Ask, Refuse, Run, Verdict
from codex_py.tools.grants import Approvals
from codex_py.tools.guard import PLANNING, declined_because, put_question
from codex_py.tools.spec import ToolContext

# Keeps a yes for good; raises `UserError` when it cannot.
KeepYes = Callable[[str, str], None]

_SHOWN_ARGUMENTS: Final = 16 * 1024


class McpCall(NamedTuple):
    """A call to be judged. `tool` is what the server says of the tool, None when it knows none of this name."""

    server: McpServer
    name: str
    tool: McpTool | None
    arguments: dict[str, Any]


def decide_call(
    call: McpCall, *, policy: ApprovalPolicy, sandbox: SandboxPolicy, can_ask: bool, plan: bool = False
) -> Verdict:
    """The verdict on a call: what only reads passes, what may destroy or says nothing of itself is asked about."""
    mode = call.server.mode_of(call.name)
    reads = call.tool is not None and call.tool.read_only is True
    if plan and not reads:
        return Refuse(f"call refused: {PLANNING}, and `{call.name}` does not say that it only reads")
    if mode == "approve" or (mode == "auto" and is_harmless(call.tool)) or (mode == "writes" and reads):
        return Run()
    if mode == "auto" and policy == "never" and isinstance(sandbox, DangerFullAccess):
        # The user has taken every other barrier away, too.
        return Run()
    reason = "the configuration wants to be asked" if mode == "prompt" else _why_asked(call)
    ask = Ask(reason, outside=True, patternable=False, kind="mcp_elicitations")
    if can_ask and asks_about(policy, ask.kind):
        return ask
    how = "in this session" if asks_about(policy, ask.kind) else f"under the approval policy `{approval_name(policy)}`"
    key = f'mcp_servers.{call.server.name}.default_tools_approval_mode = "approve"'
    return Refuse(
        f"call refused: {reason}; nobody can be asked {how}: go on without it, or report what is needed; "
        f"the user can allow the tools of this server with `{key}`"
    )


def is_harmless(tool: McpTool | None) -> bool:
    """Whether a tool says that it only reads, or that it destroys nothing and stays on its own ground."""
    return tool is not None and (tool.read_only is True or (tool.destructive is False and tool.open_world is False))


async def permit_call(call: McpCall, context: ToolContext, keep: KeepYes) -> None:
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
            case Run():
                return
            case Refuse(reason):
                raise ToolError(reason)
            case Ask():
                if saves_question:
                    return
        key = ("mcp", call.server.name, call.name)
        if approvals.is_allowed(key):
            return
        scopes: tuple[ApprovalScope, ...] = ("once", "session", "always")
        if call.server.mode_of(call.name) == "prompt" or not call.server.remembers:
            scopes = ("once", "session")
        question = ApprovalQuestion(
            id=uuid7(),
            call_id=context.call_id,
            command=shown_call(call),
            cwd=context.cwd,
            reason=verdict.reason,
            outside=verdict.outside,
            scopes=scopes,
            server=sanitize_line(call.server.name),
        )
        reply = await put_question(question, context)
        if reply.scope is None:
            raise ToolError(f"call {declined_because(reply)}")
        if reply.scope != "once":
            approvals.allow(key)
        if reply.scope == "always":
            try:
                keep(call.server.name, call.name)
            except UserError as error:
                context.emit(Warned(str(error)))


def shown_call(call: McpCall) -> str:
    """The call as a person reads it, with nothing hidden."""
    text = encode_json(call.arguments).decode(errors="replace")
    cut = text if len(text) <= _SHOWN_ARGUMENTS else f"{text[:_SHOWN_ARGUMENTS]}…"
    return f"{sanitize_line(call.server.name)}.{sanitize_line(call.name)} {sanitize(cut)}"


def _why_asked(call: McpCall) -> str:
    tool = call.tool
    name = f"`{sanitize_line(call.name)}` of the MCP server `{sanitize_line(call.server.name)}`"
    if tool is None or (tool.read_only, tool.destructive) == (None, None):
        return f"{name} does not say what it does to your data"
    if tool.destructive is not False:
        return f"{name} may change or destroy data"
    return f"{name} acts on the world outside"
