"""The tools of a session: what the model is shown of them, which an agent may use, and running a call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Final, Protocol

from codex_py.errors import ToolError
from codex_py.protocol.encoding import as_list, as_object, encode_json
from codex_py.protocol.items import ToolCall
from codex_py.text.nearest import did_you_mean
from codex_py.tools.spec import AroundCall, Tool, ToolContext, ToolOutput, failed_output


class ForeignTools(Protocol):
    """Tools that other programs bring."""

    def specs(self) -> Sequence[dict[str, Any]]:
        """The specs that the model gets; a later list begins with all of an earlier one."""
        ...

    def find(self, call: ToolCall) -> Tool | None:
        """The tool of a call, whether it is shown to the model or not."""
        ...


_NOTICE_AFTER: Final = 10
_MAX_REPEATS: Final = 100
# What differs between two reports of the same result.
_VARIABLE: Final = r"Chunk ID: [0-9a-f]+|Wall time: [0-9.]+ seconds"


class RepeatedCalls:
    """Counts how often the last call of a turn was made in a row."""

    def __init__(self) -> None:
        self._last: tuple[str, ...] = ()
        self._count = 0

    def restart(self) -> None:
        """Start counting again: something else happened."""
        self._last, self._count = (), 0

    def note(self, call: ToolCall, output: ToolOutput) -> ToolOutput:
        """Take a call that has ended; return its output, with a notice for the model or the failure of the turn."""
        text = encode_json(list(output.parts)).decode() if output.parts else output.text
        made = (call.namespace or "", call.name, call.arguments, re.sub(_VARIABLE, "", text))
        self._count = self._count + 1 if made == self._last else 1
        self._last = made
        if self._count < _NOTICE_AFTER:
            return output
        notice = (
            f"This was call {self._count} in a row with the same arguments and the same result. "
            "Do something else, or end the turn with an answer."
        )
        if output.parts:
            output = output.replace(parts=(*output.parts, {"type": "input_text", "text": notice}))
        else:
            output = output.replace(text=f"{output.text}\n\n{notice}")
        if self._count < _MAX_REPEATS:
            return output
        failure = (
            f"the model was stopped because it called `{call.name}` {self._count} times in a row with the same "
            "arguments and the same result"
        )
        return output.replace(failure=failure)


class ToolRegistry:
    """Tools by name, in the fixed order they are shown.

    `hidden` ones are run when they are called and not shown; `hosted` are specs of tools the provider runs itself,
    shown last.
    """

    def __init__(
        self, tools: Sequence[Tool], *, hidden: Sequence[Tool] = (), hosted: Sequence[dict[str, Any]] = ()
    ) -> None:
        every = (*hidden, *tools)
        self._tools = {name: tool for tool in every for name in tool.other_names} | {tool.name: tool for tool in every}
        self._hidden = tuple(hidden)
        self._shown = tuple(tools)
        self._hosted = tuple(hosted)
        self._foreign: ForeignTools | None = None
        self._specs: list[dict[str, Any]] = [*(tool.spec() for tool in tools), *hosted]

    @cached_property
    def encoded_specs(self) -> bytes:
        """The specs as a request has them."""
        return encode_json(self._specs)

    @property
    def shown(self) -> list[str]:
        """The names of what the model is shown, in order; behind a namespace its tools, as `namespace/tool`."""
        return [name for spec in self._specs for name in (_spec_name(spec), *_inner_names(spec))]

    def joined(self, foreign: ForeignTools) -> ToolRegistry:
        """These tools and, shown after them, those of others as they are now."""
        both = self._with_specs([*self._specs, *foreign.specs()])
        both._foreign = foreign
        return both

    def in_order(self, shown: Sequence[str]) -> ToolRegistry:
        """These tools in the order of the names that were shown before, with new ones last.

        What has come to a namespace since the model saw it stands outside of it.
        """
        places = {name: index for index, name in enumerate(shown)}
        specs: list[dict[str, Any]] = []
        for spec in self._specs:
            name, inner = _spec_name(spec), [as_object(tool) for tool in as_list(spec.get("tools"))]
            if name in places and inner:
                new = [tool for tool in inner if f"{name}/{tool.get('name')}" not in places]
                specs += [{**tool, "name": _full(name, str(tool.get("name")))} for tool in new]
                inner = [tool for tool in inner if tool not in new]
                inner.sort(key=lambda tool, name=name: places[f"{name}/{tool.get('name')}"])
                if not inner:
                    continue
                spec = {**spec, "tools": inner}
            specs.append(spec)
        return self._with_specs(sorted(specs, key=lambda spec: places.get(_spec_name(spec), len(places))))

    def _with_specs(self, specs: list[dict[str, Any]]) -> ToolRegistry:
        other = copy(self)
        other._specs = specs
        other.__dict__.pop("encoded_specs", None)
        return other

    def extended(self, *tools: Tool) -> ToolRegistry:
        """These tools and, shown after them, some more."""
        return ToolRegistry((*self._shown, *tools), hidden=self._hidden, hosted=self._hosted)

    def only(self, allows: Callable[[str], bool]) -> ToolRegistry:
        """Those of these tools whose names are allowed; one that the provider runs goes by its type."""
        return ToolRegistry(
            [tool for tool in self._shown if allows(tool.name)],
            hidden=[tool for tool in self._hidden if allows(tool.name)],
            hosted=[spec for spec in self._hosted if allows(str(spec.get("type")))],
        )

    def knows(self, call: ToolCall) -> bool:
        """Whether there is a tool that the call means."""
        return self._find(call) is not None

    def is_parallel(self, call: ToolCall) -> bool:
        """Whether the call may overlap with others; an unknown tool does nothing and so may."""
        tool = self._find(call)
        return tool is None or tool.parallel

    async def run(
        self,
        call: ToolCall,
        context: ToolContext,
        around: AroundCall | None = None,
        repeated: RepeatedCalls | None = None,
    ) -> ToolOutput:
        """Run one call, by way of `around` if that is given, and count it in `repeated`.

        A failure comes back as output, so that the model can read it and the call is answered.
        """
        tool = self._find(call)
        output = await self._output_of(tool, call, context, around)
        if repeated is None:
            return output
        # An unknown tool does nothing, and may be called again and again.
        if tool is None or tool.polls:
            repeated.restart()
            return output
        return repeated.note(call, output)

    async def _output_of(
        self, tool: Tool | None, call: ToolCall, context: ToolContext, around: AroundCall | None
    ) -> ToolOutput:
        if tool is None:
            problem = "unsupported custom tool call" if call.custom else "unsupported call"
            guess = did_you_mean(_full(call.namespace or "", call.name), self._names())
            return ToolOutput(f"{problem}: {call.name}" + (f"; {guess}" if guess else ""), ok=False)
        # Others change files without asking for it as commands and patches do.
        if tool.type == "other":
            await context.expect_write()
        try:
            return await (around(call, context, tool) if around else tool.run(call, context))
        except ToolError as error:
            return failed_output(error)
        except Exception as error:
            # A bug of ours: the call still needs its answer, and the turn fails once that is recorded.
            return ToolOutput(f"internal error in {call.name}: {type(error).__name__}", ok=False, crash=error)

    def _names(self) -> Iterator[str]:
        """The tools that the model is shown."""
        yield from (tool.name for tool in self._shown)
        for spec in self._foreign.specs() if self._foreign is not None else ():
            name = str(spec.get("name"))
            if spec.get("type") == "namespace":
                yield from (_full(name, str(as_object(tool).get("name"))) for tool in as_list(spec.get("tools")))
            else:
                yield name

    def _find(self, call: ToolCall) -> Tool | None:
        tool = None if call.namespace else self._tools.get(call.name)
        return tool if tool is not None or self._foreign is None else self._foreign.find(call)


def _spec_name(spec: dict[str, Any]) -> str:
    """The name of a tool or a namespace; a tool that the provider runs goes by its type."""
    return str(spec.get("name") or spec.get("type"))


def _inner_names(spec: dict[str, Any]) -> list[str]:
    return [f"{_spec_name(spec)}/{as_object(tool).get('name')}" for tool in as_list(spec.get("tools"))]


class AllowedTools:
    """`tools` whose names `allows` accepts; a name of a namespace's tool is that of both with `__` between."""

    def __init__(self, tools: ForeignTools, allows: Callable[[str], bool]) -> None:
        self._tools = tools
        self._allows = allows

    def specs(self) -> Sequence[dict[str, Any]]:
        """The specs that the model gets."""
        return [cut for spec in self._tools.specs() if (cut := self._allowed_of(spec)) is not None]

    def find(self, call: ToolCall) -> Tool | None:
        """The tool of a call, None when it may not be used."""
        name = _full(call.namespace or "", call.name)
        return self._tools.find(call) if self._allows(name) else None

    def _allowed_of(self, spec: dict[str, Any]) -> dict[str, Any] | None:
        name = str(spec.get("name", ""))
        if spec.get("type") != "namespace":
            return spec if self._allows(name) else None
        inner = [
            tool for tool in as_list(spec.get("tools")) if self._allows(_full(name, str(as_object(tool).get("name"))))
        ]
        return {**spec, "tools": inner} if inner else None


def _full(namespace: str, name: str) -> str:
    return f"{namespace.rstrip('_')}__{name}" if namespace else name
