"""The tokens of a session: what it has used, how full the context window is, and with what; and what they cost.

The cost is reported and written down, and a session is ended where a budget of time is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, get_args

from codex_py.context.compaction import HOST_TEXTS
from codex_py.core.history import History
from codex_py.core.session_services import SessionServices
from codex_py.core.transcript import Transcript
from codex_py.core.turn_context import CurrentSettings, ModelSettings
from codex_py.errors import ModelError
from codex_py.protocol.encoding import as_list, as_object, uuid7
from codex_py.protocol.events import Event, TurnCompleted, UsageReported
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.questions import AskUser, ChoiceQuestion, QuestionOption
from codex_py.protocol.status import ContextSection, ContextSectionName, ContextUse
from codex_py.protocol.usage import Costs, RequestCost, TokenUsage
from codex_py.protocol.value import Value
from codex_py.rollout.format import StoredSession
from codex_py.text.tokenizer import TokenCount, count_tokens
from codex_py.text.tokens import counted_bytes, estimate_tokens


class Fill(Value):
    """Tokens of the next request, and those of its first part: what stood there when this window began."""

    total: int
    prefix: int = 0


class Counted(Value):
    """Tokens of the next request; `measured` says that the provider counted most of them.

    `limit` is how many of them have the history compacted, None for never.
    """

    total: int
    measured: bool
    limit: int | None


def compaction_limit(window: int | None, configured: int | None) -> int | None:
    """Tokens from which on the history is compacted: the user's limit, at most 90 % of the window; None for never."""
    ceiling = None if window is None else window * 9 // 10
    limits = [limit for limit in (ceiling, configured) if limit is not None]
    return min(limits, default=None)


def is_too_full(fill: Fill, settings: ModelSettings) -> bool:
    """Whether the history should be compacted before the next request to this model."""
    configured = settings.auto_compact_tokens
    if settings.auto_compact_scope == "body_after_prefix" and configured is not None:
        ceiling = compaction_limit(settings.context_window, None)
        return fill.total - fill.prefix >= configured or (ceiling is not None and fill.total >= ceiling)
    limit = compaction_limit(settings.context_window, configured)
    return limit is not None and fill.total >= limit


class ContextMeter:
    """Follows the size of a history: the server's last count, and four bytes a token for what came after it."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._counted = 0
        self._covered = 0
        self._prefix: int | None = None

    @property
    def has_count(self) -> bool:
        """Whether the provider has counted this history, or a part of it."""
        return self._counted > 0

    def note_response(self, usage: TokenUsage, covered: int) -> None:
        """Take the server's count, which is that of the first `covered` items. A count of nothing is not one."""
        if usage.total_tokens > 0:
            self._counted, self._covered = usage.total_tokens, covered
            if self._prefix is None:
                self._prefix = usage.input_tokens

    def restart(self) -> None:
        """Forget what was counted: the history was replaced."""
        self._counted = self._covered = 0
        self._prefix = None

    def fill(self, settings: ModelSettings, tools: bytes, *, coming: int = 0) -> Fill:
        """The tokens of the next request; `coming` is the number of bytes that will be added before it."""
        if self._counted:
            added = self._history.weight_since(self._covered)
            return Fill(self._counted + estimate_tokens(added + coming), self._prefix or 0)
        fixed = len(settings.instructions.encode("utf-8", "surrogatepass")) + len(tools)
        return Fill(estimate_tokens(fixed + self._history.weight_since(0) + coming), self._prefix or 0)


# A sealed piece of reasoning is base64 and carries some hundred bytes that are no thoughts.
_SEAL_BYTES: Final = 650
_BY_BEGINNING: Final[Mapping[str, ContextSectionName]] = {
    "<skills_instructions>": "skills_list",
    "<skill>": "injected_skills",
    "# AGENTS.md instructions": "agents_md",
}


def measure_context(
    items: Iterable[ResponseItem], settings: ModelSettings, tools: bytes, *, counted: Counted
) -> ContextUse:
    """Split the tokens of the next request. Each part is estimated by its bytes, and all are scaled to what is known.

    `counted` is what the history takes; where the provider has counted nothing of it the estimates stand.
    """
    weights: dict[ContextSectionName, int] = dict.fromkeys(get_args(ContextSectionName), 0)
    weights["base"] = len(settings.instructions.encode("utf-8", "surrogatepass"))
    weights["tools"] = len(tools)
    for item in items:
        for name, weight in _weights_of(item):
            weights[name] += weight
    sizes = [estimate_tokens(weight) for weight in weights.values()]
    total = counted.total if counted.measured else sum(sizes)
    sized_parts = zip(weights, _scaled(sizes, total), strict=True)
    return ContextUse(
        sections=tuple(ContextSection(name, tokens) for name, tokens in sized_parts if tokens),
        total=total,
        window=settings.context_window,
        compacted_at=counted.limit,
        measured=counted.measured,
    )


def count_request(items: Iterable[ResponseItem], settings: ModelSettings, tools: bytes) -> int | None:
    """Count the tokens of the next request; None for a model whose tokenizer is not known. Not for the event loop."""
    counts = [count_tokens(text, settings.model) for text in (settings.instructions, tools.decode())]
    for item in items:
        weight = counted_bytes(item.encoded)
        if item.type != "message" or weight != len(item.encoded):
            # Pictures and sealed reasoning are no text.
            counts.append(TokenCount(estimate_tokens(sum(size for _, size in _weights_of(item))), False))
            continue
        texts = (as_object(part).get("text") for part in as_list(item.decode().get("content")))
        counts += [count_tokens(text, settings.model) for text in texts if isinstance(text, str)]
    return None if any(count.estimated for count in counts) else sum(count.tokens for count in counts)


def _weights_of(item: ResponseItem) -> list[tuple[ContextSectionName, int]]:
    """An item's bytes, by what they are; a message may have parts of different kinds."""
    size = counted_bytes(item.encoded)
    item_type = item.type
    if item_type == "message":
        return _message_weights(item, size)
    if item_type == "reasoning":
        return [("reasoning", _reasoning_weight(item, size))]
    if item_type.endswith("_output"):
        return [("outputs", size)]
    # A compaction by the provider stands for the messages it replaced.
    return [("messages" if item_type.startswith("compaction") else "calls", size)]


def _message_weights(item: ResponseItem, size: int) -> list[tuple[ContextSectionName, int]]:
    message = item.decode()
    role = message.get("role")
    if role == "assistant":
        return [("messages", size)]
    texts = [as_object(part).get("text") for part in as_list(message.get("content"))]
    fallback: ContextSectionName = "messages" if role == "user" else "host"
    weights: list[tuple[ContextSectionName, int]] = [
        (_part_name_of(text, fallback), len(text.encode("utf-8", "surrogatepass")))
        for text in texts
        if isinstance(text, str)
    ]
    # Quotes, escapes and pictures: they belong to what the message mostly is.
    rest = max(0, size - sum(weight for _, weight in weights))
    return [*weights, (max(weights, key=lambda pair: pair[1])[0] if weights else fallback, rest)]


def _part_name_of(text: str, fallback: ContextSectionName) -> ContextSectionName:
    for beginning, part_name in _BY_BEGINNING.items():
        if text.startswith(beginning):
            return part_name
    return "host" if text.startswith(HOST_TEXTS) else fallback


def _reasoning_weight(item: ResponseItem, size: int) -> int:
    sealed = item.decode().get("encrypted_content")
    if not isinstance(sealed, str):
        return size
    return size - len(sealed) + max(0, len(sealed) * 3 // 4 - _SEAL_BYTES)


def _scaled(sizes: Sequence[int], total: int) -> list[int]:
    """The sizes in the same proportions with another sum, as whole numbers that add up to it exactly."""
    before = sum(sizes)
    if not before:
        return [0 for _ in sizes]
    # Each end is rounded, not each part, so that nothing is lost or counted twice.
    scaled: list[int] = []
    begins = seen = 0
    for size in sizes:
        seen += size
        ends = seen * total // before
        scaled.append(ends - begins)
        begins = ends
    return scaled


_GO_ON: Final = "Go on"
_OPTIONS: Final = (
    QuestionOption(_GO_ON, "as much again may be spent before you are asked once more"),
    QuestionOption("Stop", "the turn ends with what it has; you can go on later"),
)


class SpendingLog:
    """Adds up what one session uses; `session` and `turn` are its tokens."""

    def __init__(
        self,
        services: SessionServices,
        transcript: Transcript,
        emit: Callable[[Event], None],
        settings: CurrentSettings,
    ) -> None:
        self.session = TokenUsage()
        self.turn = TokenUsage()
        self._meter = services.model.meter
        self._thread_id = services.thread_id
        self._is_agent = services.parent_session is not None
        self._transcript = transcript
        self._emit = emit
        self._settings = settings
        self._is_overdue = False

    def restore(self, stored: StoredSession) -> None:
        """Go on from what an earlier run has used."""
        self.session = stored.usage
        if self._is_agent:
            self._meter.restore_agent(self._thread_id, stored.spending)

    def begin_turn(self, turn_id: str) -> None:
        self.turn, self._is_overdue = TokenUsage(), False
        if not self._is_agent:
            self._meter.begin_turn(turn_id)

    def note(self, request: RequestCost | None, last: TokenUsage) -> None:
        """Report an answered request; `last` is what the next one takes."""
        if request is not None:
            self.session += request.usage
            self.turn += request.usage
        report = UsageReported(last, self.session, self._settings.now.model.context_window, self.turn, self.costs())
        self._transcript.usage(report, request)
        self._emit(report)

    def costs(self) -> Costs:
        """The cost of the session and its turn so far, with their agents."""
        return self._meter.costs(self._thread_id, is_agent=self._is_agent)

    def completed(self, turn_id: str, last_message: str | None) -> TurnCompleted:
        """The event that ends a turn, with its usage and cost."""
        return TurnCompleted(turn_id, last_message, self.session, self.turn, self.costs())

    @contextmanager
    def time_limit(self, work: asyncio.Task[Any]) -> Generator[None]:
        """Cancel the work of a turn where its time is over before it ends."""
        seconds = None if self._is_agent else self._meter.seconds_left()
        if seconds is None:
            yield
            return

        def stop() -> None:
            self._is_overdue = True
            work.cancel()

        timer = asyncio.get_running_loop().call_later(seconds, stop)
        try:
            yield
        finally:
            timer.cancel()

    def ended_by_time(self) -> ModelError | None:
        """Why the turn was cancelled, where that was its time."""
        return self._meter.reached_in_time() if self._is_overdue else None


def budget_question(ask: AskUser) -> Callable[[str], Any]:
    """The function that asks the user whether to go on when a budget is used up."""

    async def may_go_on(used: str) -> bool:
        question = f"The budget is used up: {used}. Go on?"
        return await ask(ChoiceQuestion(uuid7(), "Budget", question, _OPTIONS)) == _GO_ON

    return may_go_on
