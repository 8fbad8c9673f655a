"""Tools of which only the spec is read at the start; the rest is imported when the first call is on its way."""

from __future__ import annotations

from collections.abc import Callable

from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import HookView, RunCall, Tool, ToolContext, ToolOutput


class LazyTool(Tool):
    """A tool whose spec is `NAME.json`; `load` imports what runs its calls."""

    def __init__(
        self,
        name: str,
        load: Callable[[], RunCall],
        *,
        parallel: bool = False,
        polls: bool = False,
        hook_view: HookView = Tool.hook_view,
    ) -> None:
        self.name = name
        self.parallel = parallel
        self.polls = polls
        self.hook_view = hook_view
        self._load = load

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Do the work. Raises `ToolError` for failures the model can act on."""
        return await self._load()(call, context)
