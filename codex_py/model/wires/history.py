"""The items of a prompt as neutral entries, for the wires of APIs that have no Responses items.

Each item is translated once: what a request was sent stays as it is, and only what is new is read. Calls stand with
their outputs, one each; an output without a call is left out, and a call without one is answered `aborted`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from codex_py.model.pictures import without_pictures
from codex_py.protocol.encoding import as_list, as_object, decode_or_none, encode_json
from codex_py.protocol.items import ResponseItem, ToolCall
from codex_py.protocol.origin import COMPACTIONS, Origin, own_reasoning
from codex_py.protocol.value import Value

ABORTED: Final = "aborted"
_UNREADABLE: Final = (
    "[An earlier part of this conversation was compacted by another provider, whose summary cannot be read here.]"
)
_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_OUTPUTS: Final = frozenset(f"{name}_output" for name in _CALLS)
_MAX_NAME: Final = 64


class PicturePart(Value):
    """A picture by its address: `data:image/png;base64,…`, or one on the web. `detail` is empty by default."""

    url: str
    detail: str = ""


Content: TypeAlias = tuple[str | PicturePart, ...]


class InputMessage(Value):
    """A message of the user, or of the host in the role `developer`."""

    role: Literal["developer", "user"]
    content: Content


class TextStep(Value):
    text: str


class ReasoningStep(Value):
    """Reasoning of the very model that is asked now: the item as the decoder of its wire has made it."""

    item: dict[str, Any]


class CallStep(Value):
    """A call and its output. `arguments` is a JSON object as text, `call_id` fits the API."""

    call_id: str
    name: str
    arguments: str
    output: Content
    original_id: str
    failed: bool = False


class ModelMessage(Value):
    """The steps of the model between two input messages, in order. There is at least one."""

    steps: tuple[TextStep | ReasoningStep | CallStep, ...]

    @property
    def calls(self) -> list[CallStep]:
        return [step for step in self.steps if isinstance(step, CallStep)]


Entry: TypeAlias = InputMessage | ModelMessage


class IdForm(Value):
    """The ids of calls that an API takes: a pattern for all of it, and how long the ids are that replace others."""

    pattern: str
    max_length: int


class CallIds:
    """Gives each call an id that fits the API and that no other call has; the same calls get the same ids."""

    def __init__(self, form: IdForm) -> None:
        self._fits = re.compile(form.pattern).fullmatch
        self._length = form.max_length
        self._uses: dict[str, int] = {}
        self._taken: set[str] = set()

    def is_known(self, call_id: str) -> bool:
        """Whether a call of the history has this id, as it is stored."""
        return call_id in self._uses

    def clear(self) -> None:
        """Forget all calls: the history begins again."""
        self._uses.clear()
        self._taken.clear()

    def next_id(self, call_id: str) -> str:
        """The id that the next call with a stored id is sent with."""
        use = self._uses[call_id] = self._uses.get(call_id, 0) + 1
        fitting = call_id
        salt = use
        while (use > 1 and salt == use) or fitting in self._taken or not self._fits(fitting):
            fitting = sha256(f"{call_id}\n{salt}".encode("utf-8", "surrogatepass")).hexdigest()[: self._length]
            salt += 1
        self._taken.add(fitting)
        return fitting


class NewEntries(Value):
    """The new entries of a history. With `restarted` it does not extend the last one, and these are all entries."""

    entries: list[Entry]
    restarted: bool


class HistoryReader:
    """Reads the growing history of one session. Items read for one request are read the same way for the next."""

    def __init__(self, form: IdForm) -> None:
        self.ids = CallIds(form)
        self._read: list[bytes] = []
        self._origin: Origin | None = None
        self._pictures = True

    def read(self, items: Sequence[bytes], origin: Origin, *, pictures: bool = True) -> NewEntries:
        """The entries that items add to those of the last call; all of them after a compaction or for another model.

        Without `pictures` a line of text stands in the place of each.
        """
        items = list(items)
        known = len(self._read)
        # Compared by identity first, so that a long history costs next to nothing.
        restarted = origin != self._origin or pictures != self._pictures or items[:known] != self._read
        if restarted:
            self.ids.clear()
            known = 0
        self._read, self._origin, self._pictures = items, origin, pictures
        new = items[known:] if pictures else map(without_pictures, items[known:])
        return NewEntries(list(self._entries(new, origin)), restarted)

    def _entries(self, items: Iterable[bytes], origin: Origin) -> Iterator[Entry]:
        values = [as_object(decode_or_none(item)) for item in items]
        outputs = _outputs_by_call(values)
        steps: list[TextStep | ReasoningStep | CallStep] = []
        for index, value in enumerate(values):
            message = input_message(value)
            if message is None and value.get("type") not in _OUTPUTS:
                if (step := self._step(value, outputs.get(index), origin)) is not None:
                    steps.append(step)
                continue
            # Outputs have their place behind their calls, and end what the model did.
            if steps:
                yield ModelMessage(tuple(steps))
                steps.clear()
            if message is not None and message.content:
                yield message
        if steps:
            yield ModelMessage(tuple(steps))

    def _step(
        self, value: dict[str, Any], output: dict[str, Any] | None, origin: Origin
    ) -> TextStep | ReasoningStep | CallStep | None:
        match value.get("type"):
            case "message":
                text = "".join(part for part in content_of(value.get("content")) if isinstance(part, str))
                return TextStep(text) if text.strip() else None
            case "reasoning":
                own = own_reasoning(value, origin)
                return None if own is None else ReasoningStep(own)
            case str(item_type) if item_type in _CALLS and isinstance(value.get("call_id"), str):
                return self._call(value, output)
            case _:
                return None

    def _call(self, value: dict[str, Any], output: dict[str, Any] | None) -> CallStep:
        view = ResponseItem.from_wire(value).view()
        assert isinstance(view, ToolCall)
        arguments = encode_json({"input": view.arguments}).decode() if view.custom else json_object(view.arguments)
        content = (ABORTED,) if output is None else content_of(output.get("output"))
        name = flat_name(view.namespace, view.name)
        failed = output is not None and output.get("is_error") is True
        return CallStep(self.ids.next_id(view.call_id), name, arguments, content, view.call_id, failed)


def input_message(value: dict[str, Any]) -> InputMessage | None:
    """A message that is not the model's; its content may be empty. None for any other item."""
    if value.get("type") in COMPACTIONS:
        return InputMessage("developer", (_UNREADABLE,))
    role = value.get("role")
    if value.get("type") != "message" or role == "assistant":
        return None
    content = content_of(value.get("content"))
    return InputMessage("developer" if role in ("developer", "system") else "user", content)


def content_of(content: object) -> Content:
    """The texts and pictures of a message or an output; empty texts and other parts are left out."""
    if isinstance(content, str):
        return (content,) if content else ()
    return tuple(part for value in as_list(content) if (part := _part(as_object(value))) is not None)


def flat_name(namespace: str | None, name: str) -> str:
    """The name of a tool where there are no namespaces: letters, digits, `_` and `-`, at most 64 of them."""
    full = f"{namespace.rstrip('_')}__{name}" if namespace else name
    return re.sub(r"[^a-zA-Z0-9_-]", "_", full)[:_MAX_NAME] or "unknown"


def json_object(arguments: str) -> str:
    """Arguments as servers take them back: what the model wrote if that is a JSON object, else an object with it."""
    if not arguments.strip():
        return "{}"
    return (
        arguments
        if isinstance(decode_or_none(arguments), dict)
        else encode_json({"malformed_arguments": arguments}).decode()
    )


def _part(value: dict[str, Any]) -> str | PicturePart | None:
    match value:
        case {"type": "input_image", "image_url": str(url) | {"url": str(url)}} if url:
            detail = value.get("detail")
            return PicturePart(url, detail if isinstance(detail, str) else "")
        case {"text": str(text)} | {"refusal": str(text)} if text:
            return text
        case _:
            return None


def _outputs_by_call(values: Sequence[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The output of each call, by the index of the call: the first one behind it that has its id."""
    waiting: dict[str, deque[int]] = {}
    found: dict[int, dict[str, Any]] = {}
    for index, value in enumerate(values):
        call_id = value.get("call_id")
        if not isinstance(call_id, str):
            continue
        if value.get("type") in _CALLS:
            waiting.setdefault(call_id, deque()).append(index)
        elif value.get("type") in _OUTPUTS and waiting.get(call_id):
            found[waiting[call_id].popleft()] = value
    return found
