"""The tools of a session: what the model is shown of them, and running a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codex_py.errors import ToolError
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import Tool, ToolContext, ToolOutput


class ToolRegistry:
    """Tools by name, in the fixed order they are shown.

    `hidden` ones are run when they are called and not shown; `hosted` are specs of tools the provider runs itself,
    shown last.
    """

    def __init__(
        self, tools: Sequence[Tool], *, hidden: Sequence[Tool] = (), hosted: Sequence[dict[str, Any]] = ()
    ) -> None:
        self._tools = {tool.name: tool for tool in (*hidden, *tools)}
        self.encoded_specs = encode_json([*(tool.spec() for tool in tools), *hosted])

    def warm_up(self) -> None:
        """Load what the first call needs; for a thread, while the call is still arriving."""
        # The seam: pydantic loads here, what judges a command and what runs it.
        from codex_py.tools import exec_command, exec_command_arguments, guard

        del exec_command, exec_command_arguments
        guard.warm_up()

    def is_parallel(self, call: ToolCall) -> bool:
        """Whether the call may overlap with others; an unknown tool does nothing and so may."""
        tool = self._tools.get(call.name)
        return tool is None or tool.parallel

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Run one call. A failure comes back as output, so that the model can read it and the call is answered."""
        tool = self._tools.get(call.name)
        if tool is None or call.namespace:
            kind = "unsupported custom tool call" if call.custom else "unsupported call"
            return ToolOutput(f"{kind}: {call.name}", ok=False)
        try:
            return await tool.run(call, context)
        except ToolError as error:
            return ToolOutput(str(error), ok=False)
        except Exception as error:
            # A bug of ours: the call still needs its answer, and the turn fails once that is recorded.
            return ToolOutput(f"internal error in {call.name}: {type(error).__name__}", ok=False, crash=error)
