"""Making what replaces a long history: a summary by the model, or the provider's compaction; cut to fit.

It asks and gives back; nothing of the session changes here.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final, Literal

from codex_py.context.compaction import MAX_SUMMARY_BYTES, handoff_request, is_summary, is_users_own, summary_item
from codex_py.core.model_pool import ModelPool
from codex_py.core.sampling import retried, retry_event
from codex_py.errors import ModelError
from codex_py.model.client import Completed, ItemDone, Prompt, TurnState
from codex_py.model.error_bodies import TOO_LONG
from codex_py.model.failures import FILTERED
from codex_py.model.retry import Retry
from codex_py.protocol import events
from codex_py.protocol.encoding import as_list, as_object, encode_json
from codex_py.protocol.items import Message, ResponseItem, ToolCall, exchange_of
from codex_py.protocol.usage import CompactionWay, RequestCost
from codex_py.protocol.value import Value
from codex_py.text.tokens import BYTES_PER_TOKEN, counted_bytes, truncate_middle

_TEXT_TOKENS: Final = 2_000
_NO_PICTURE: Final = {"type": "input_text", "text": "[a picture was here]"}


def without_oldest(items: Sequence[ResponseItem], share: float) -> list[ResponseItem]:
    """The items without the oldest ones: at least one is removed, and enough to remove `share` of the weight.

    A call goes together with its output. The summary of what came before stays. Empty when nothing would be left.
    """
    others = [item for item in items if not is_summary(item)]
    weights = [counted_bytes(item.encoded) for item in others]
    goal, gone, start = sum(weights) * share, 0, 0
    while start < len(others) and (start == 0 or gone < goal):
        gone += weights[start]
        start += 1
    left = paired(others[start:])
    return [*filter(is_summary, items), *left] if left else left


def with_short_texts(items: Sequence[ResponseItem]) -> list[ResponseItem]:
    """The items with at most 2,000 tokens of each text, its ends, and without pictures where an item is longer.

    What is long and no text, such as sealed reasoning, is left out.
    """
    return paired([short for item in items if (short := _shortened(item)) is not None])


def paired(items: Sequence[ResponseItem]) -> list[ResponseItem]:
    """The items without the calls that nothing answers, and without the outputs that answer no call before them."""
    retained: list[ResponseItem | None] = list(items)
    waiting: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        exchange = exchange_of(item)
        if exchange is None:
            continue
        if not exchange.is_output:
            waiting.setdefault(exchange.call_id, []).append(index)
        elif not waiting.get(exchange.call_id):
            retained[index] = None
        else:
            waiting[exchange.call_id].pop(0)
    for indexes in waiting.values():
        for index in indexes:
            retained[index] = None
    return [item for item in retained if item is not None]


def _shortened(item: ResponseItem) -> ResponseItem | None:
    if len(item.encoded) <= _TEXT_TOKENS * BYTES_PER_TOKEN:
        return item
    value = item.decode()
    match item.type:
        case "message":
            value["content"] = _short(value.get("content"))
        case "function_call_output" | "custom_tool_call_output":
            value["output"] = _short(value.get("output"))
        case "custom_tool_call":
            value["input"] = _short(value.get("input"))
        case "function_call":
            # Servers read the arguments, so that they have to stay JSON.
            value["arguments"] = encode_json({"shortened": _short(value.get("arguments"))}).decode()
        case _:
            return None
    return ResponseItem.from_wire(value)


def _short(content: object) -> Any:
    """A text, or parts of content, cut."""
    if isinstance(content, str):
        return truncate_middle(content, _TEXT_TOKENS)
    content_parts: list[dict[str, Any]] = [as_object(part) for part in as_list(content)]
    return [
        {**part, "text": _short(part["text"])} if isinstance(part.get("text"), str) else _NO_PICTURE
        for part in content_parts
    ]


_TRIGGER: Final = b'{"type":"compaction_trigger"}'
_COMPACTIONS: Final = frozenset({"compaction", "compaction_summary", "context_compaction"})
# How much of the weight goes when a request did not fit: little at first, then half of what is left.
_SHARES: Final = (0.2, 0.4)
_LAST_SHARE: Final = 0.5
MAX_REQUESTS: Final = 8
# Failures that a shorter history does not help against: the turn's own request would meet them too.
_PASSING: Final = frozenset({"rate_limit", "overloaded", "network", "timeout"})
_OF_PROVIDER: Final = _PASSING | {"auth", "quota", "budget", "config"}
# How a model begins that declines. A longer text than this is a summary all the same.
_DECLINED: Final = (
    r"(?i)(?:i['’]m |i am )?(?:very |so )?(?:sorry|unable)\b|i (?:can['’]?t|cannot|won['’]?t)\b"
    r"|(?:很)?抱歉|对不起|我无法"
)
_MAX_DECLINED: Final = 400


class CompactionRequest(Value):
    """What is to be compacted: the request that would come next, and its items. `way` is what the provider can do.

    `prompt_text` is the user's own wording of the handoff request, `focus` what the summary should dwell on.
    """

    prompt: Prompt
    items: tuple[ResponseItem, ...]
    way: CompactionWay
    prompt_text: str | None = None
    focus: str = ""
    max_bytes: int = MAX_SUMMARY_BYTES
    """A longer summary is none."""


class Handover(Value):
    """What carries a conversation on: `items` end the new history, after `users`, when the provider chose those.

    `users` is None where that choice is ours. `cost` is what it took, where that is known.
    """

    items: tuple[ResponseItem, ...]
    how: CompactionWay | Literal["cut"]
    users: tuple[ResponseItem, ...] | None = None
    summary: str = ""
    cost: RequestCost | None = None


def gives_no_summary(error: ModelError) -> bool:
    """Whether the model failed to write a summary, though its provider works: asking for it again would not help."""
    return not error.unreachable and error.failure not in _OF_PROVIDER


def may_pass(error: ModelError) -> bool:
    """Whether the provider answers, and may fare better with another request, such as after a cut stream."""
    return not error.unreachable and error.failure in _PASSING


class Compactor:
    """Asks for handovers, in at most `MAX_REQUESTS` requests a turn that bring none.

    `warn` is called when the provider's own way has failed and the model is asked instead.
    """

    def __init__(self, model: ModelPool, emit: Callable[[events.Event], None], warn: Callable[[str], None]) -> None:
        self._model = model
        self._emit = emit
        self._warn = warn
        self._left = MAX_REQUESTS
        # What the last request failed with.
        self._failure = ""

    def begin_turn(self) -> None:
        """Allow the requests of another turn."""
        self._left = MAX_REQUESTS

    async def hand_over(self, request: CompactionRequest) -> Handover:
        """One handover. Raises `ModelError` when the model has not given one either."""
        if request.way != "local":
            try:
                return await self._fitting(request, self._remote if request.way == "remote" else self._in_band)
            except ModelError as error:
                if error.unreachable:
                    raise
                self._warn(f"the provider has not compacted the history ({error}); the model is asked for a summary")
        return await self._fitting(request, self._local)

    async def _fitting(
        self, request: CompactionRequest, ask: Callable[[CompactionRequest], Awaitable[Handover]]
    ) -> Handover:
        """Ask; while the request itself is too long, ask again without the oldest items.

        Where the newest one alone is too long, its texts are cut. A model that writes no summary is asked once more,
        about the newer half.
        """
        shares = iter(_SHARES)
        is_cut = is_second = False
        whole = len(request.items)
        while True:
            try:
                handover = await retried(
                    partial(self._counted, ask, request),
                    self._model.retry_budget(request.prompt.provider),
                    self._note_retry,
                )
            except ModelError as error:
                has_none = ask == self._local and gives_no_summary(error)
                if error.code != TOO_LONG and (is_second or not has_none):
                    raise
                is_second = is_second or error.code != TOO_LONG
                share = next(shares, _LAST_SHARE) if error.code == TOO_LONG else _LAST_SHARE
                left = without_oldest(request.items, share)
                if not left and error.code != TOO_LONG:
                    raise
                if not left:
                    if is_cut:
                        raise
                    is_cut = True
                    left = with_short_texts(request.items)
                    self._warn("the end of the conversation was too long to be summed up whole: its texts were cut")
                request = request.replace(items=tuple(left))
            else:
                if len(request.items) < whole:
                    self._warn(
                        f"only the newest {len(request.items)} of {whole} items of the conversation were summed up"
                    )
                return handover

    async def _counted(
        self, ask: Callable[[CompactionRequest], Awaitable[Handover]], request: CompactionRequest
    ) -> Handover:
        if self._left == 0:
            error = ModelError(f"{MAX_REQUESTS} requests for a summary brought none", retryable=False)
            raise error.counted_as(self._failure)
        self._left -= 1
        try:
            handover = await ask(request)
        except ModelError as error:
            self._failure = error.failure
            raise
        self._left = MAX_REQUESTS
        return handover

    def _note_retry(self, error: ModelError, retry: Retry) -> None:
        if error.code == FILTERED:
            raise error
        self._emit(retry_event(error, retry))

    async def _local(self, request: CompactionRequest) -> Handover:
        question = handoff_request(request.prompt_text, request.focus)
        # All that comes before the question is that of the turn's requests, tools too, so that a prompt cache has it.
        prompt = request.prompt.replace(
            input=_encoded([*request.items, question]), output_schema=None, kind="compaction"
        )
        items, cost = await self._answer(prompt)
        answers = [view.text for item in items if isinstance(view := item.view(), Message) and view.role == "assistant"]
        summary = answers[-1].strip() if answers else ""
        # A call in the answer is not run: it ends in no history. A short text beside it announces what it does.
        has_call = any(isinstance(item.view(), ToolCall) for item in items)
        is_other = len(summary) < _MAX_DECLINED and (has_call or re.match(_DECLINED, summary))
        if not summary or is_other:
            raise ModelError("the model wrote no summary", retryable=False)
        if len(summary.encode("utf-8", "surrogatepass")) > request.max_bytes:
            raise ModelError("the summary that the model wrote is too long", retryable=False)
        return Handover((summary_item(summary),), "local", summary=summary, cost=cost)

    async def _in_band(self, request: CompactionRequest) -> Handover:
        prompt = request.prompt.replace(
            input=[*_encoded(request.items), _TRIGGER], output_schema=None, kind="compaction"
        )
        items, cost = await self._answer(prompt)
        compactions = [item for item in items if item.type in _COMPACTIONS]
        if len(compactions) != 1:
            raise ModelError(
                f"expected one compaction item, got {len(compactions)} among {len(items)} items", retryable=False
            )
        return Handover((compactions[0],), "in-band", cost=cost)

    async def _remote(self, request: CompactionRequest) -> Handover:
        prompt = request.prompt.replace(input=_encoded(request.items), output_schema=None)
        output = paired(await self._model.compact(prompt))
        first = next((index for index, item in enumerate(output) if item.type in _COMPACTIONS), None)
        if first is None:
            raise ModelError(f"expected a compaction item, got none among {len(output)} items", retryable=False)
        # The host's own messages are sent again, so the server's copy of them goes.
        retained = [item for item in output[:first] if not is_of_host(item)]
        has_user_message = any(is_users_own(item) for item in retained)
        return Handover(
            (*(() if has_user_message else retained), *output[first:]),
            "remote",
            users=tuple(retained) if has_user_message else None,
        )

    async def _answer(self, prompt: Prompt) -> tuple[list[ResponseItem], RequestCost | None]:
        items: list[ResponseItem] = []
        cost: RequestCost | None = None
        async with aclosing(self._model.stream(prompt, turn_state=TurnState())) as stream:
            async for event in stream:
                match event:
                    case ItemDone(item):
                        items.append(item)
                    case Completed():
                        cost = event.cost
                    case _:
                        pass
        return items, cost


def is_of_host(item: ResponseItem) -> bool:
    """Whether an item is a message of the host, such as context and skills, which is sent again after a compaction."""
    view = item.view()
    return isinstance(view, Message) and view.role != "assistant" and not is_users_own(item)


def _encoded(items: Sequence[ResponseItem]) -> list[bytes]:
    return [item.encoded for item in items]
