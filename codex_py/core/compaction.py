"""When a history is compacted, and what it must not lose of the work. `core/compact` makes the summary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.context.compaction import MAX_SUMMARY_BYTES
from codex_py.core.compact import CompactionRequest, Compactor, Handover, gives_no_summary, may_pass
from codex_py.core.compact_survivors import is_of_model, last_plan, new_history, work_state_of
from codex_py.core.context_tracker import ContextTracker
from codex_py.core.cut_history import cut_history
from codex_py.core.history import History
from codex_py.core.model_pool import ModelPool
from codex_py.core.sampling import prompt_for
from codex_py.core.session_features import HookAccess
from codex_py.core.session_skills import SkillUses
from codex_py.core.token_usage import ContextMeter, Counted, Fill, compaction_limit, is_too_full
from codex_py.core.transcript import Transcript
from codex_py.core.turn_context import ModelSettings, TurnContext
from codex_py.core.work_log import WorkLog, WorkState
from codex_py.errors import ModelError
from codex_py.model.client import TurnState
from codex_py.model.pictures import without_pictures
from codex_py.model.refused_items import plain_texts
from codex_py.protocol import events
from codex_py.protocol.items import ResponseItem, message
from codex_py.protocol.usage import BUDGET_REACHED, CompactionReason, CompactionWay, RequestCost, TokenUsage
from codex_py.protocol.value import Value
from codex_py.text.tokens import BYTES_PER_TOKEN, estimate_tokens

# A request that does not fit is answered by a compaction, and once more by a harsher one.
_MAX_REFUSALS: Final = 2


class CompactionServices(Value):
    """The inputs of a compaction. `tools` gives the encoded specs; `prompt_text` is the user's handoff request.

    `skill_uses` returns the skills that a command in a directory reads or runs scripts of. `note_cost` gets what a
    compaction cost and how many tokens are left after it; `summary_turn` has the model that writes the summary.
    """

    history: History
    model: ModelPool
    transcript: Transcript
    context_tracker: ContextTracker
    tools: Callable[[], bytes]
    emit: Callable[[events.Event], None]
    note_cost: Callable[[RequestCost | None, int], None]
    cwd: Path
    skill_uses: SkillUses
    hooks: HookAccess
    summary_turn: Callable[[TurnContext], TurnContext]
    prompt_text: str | None = None


class Compaction:
    """Watches one history and compacts it when that is due."""

    def __init__(self, services: CompactionServices) -> None:
        self._services = services
        self._meter = ContextMeter(services.history)
        self._work = WorkLog()
        # As the last compaction of an earlier run has left it.
        self._earlier = WorkState()
        # Items of an earlier run that nobody has looked through for its plan, files and skills.
        self._unread = 0
        self._turn_skills: tuple[ResponseItem, ...] = ()
        self._way: CompactionWay | None = None
        # No answer has come since the last compaction.
        self._fresh = False
        # Below so many tokens it is not tried again: it did not help, or failed.
        self._floor = 0
        self._reliefs = 0
        # Texts that already stand for refused items: they are not replaced again.
        self._texts: set[ResponseItem] = set()
        self._compactor = Compactor(services.model, services.emit, self._warn)

    def restore(self, usage: TokenUsage, covered: int, work_state: object) -> None:
        """Go on from an earlier run, whose items the history has taken over; `usage` counts the first `covered`."""
        if covered:
            self._meter.note_response(usage, covered)
        self._earlier = WorkState.from_record(work_state)
        self._unread = len(self._services.history)

    def begin_turn(self) -> None:
        """Forget the skills of the turn before."""
        self._turn_skills = ()
        self._compactor.begin_turn()

    def note_skills(self, items: Sequence[ResponseItem]) -> None:
        """Note `<skill>` messages of the running turn, each once."""
        self._turn_skills += tuple(item for item in items if item not in self._turn_skills)

    def note_event(self, event: events.Event) -> None:
        """Note plans, patches and skills."""
        self._work.note(event)

    def note_response(self, usage: TokenUsage | None, covered: int, settings: ModelSettings) -> None:
        """A request was answered; `usage` counts the first `covered` items."""
        self._reliefs = 0
        if usage is not None:
            self._meter.note_response(usage, covered)
        if self._fresh:
            self._fresh = False
            self._check_help(settings, covered)

    def plan(self) -> tuple[events.PlanStep, ...]:
        """The plan as it is now, that of an earlier run included; empty where there is none."""
        if self._work.state.plan or not self._unread:
            return self._work.state.plan
        found = last_plan(self._services.history.items[: self._unread])
        return self._earlier.plan if found is None else found

    def files_edited(self) -> Mapping[str, str]:
        """The paths that patches wrote in this session and its earlier runs, with what was done to each last."""
        self._read_earlier_work()
        return self._work.state.files

    def counted(self, settings: ModelSettings, tokens: int | None = None) -> Counted:
        """The tokens of the next request, and whether the provider has counted most of it; `tokens` is its count."""
        limit = compaction_limit(settings.context_window, settings.auto_compact_tokens)
        if tokens is not None:
            return Counted(tokens, True, limit)
        return Counted(self._fill(settings).total, self._meter.has_count, limit)

    def due_before_turn(
        self, settings: ModelSettings, coming: int, previous: ModelSettings | None
    ) -> CompactionReason | None:
        """Why to compact before `coming` bytes are added, or None. `previous` is what the turn before ran with."""
        if not len(self._services.history):
            return None
        fill = self._fill(settings, coming)
        if previous is not None and _is_smaller(settings, previous) and is_too_full(fill, settings):
            return "smaller_window"
        return "context_limit" if self._is_due(fill, settings) else None

    async def between_requests(self, turn: TurnContext) -> None:
        """Compact in the middle of a turn, when that is due."""
        if self._is_due(self._fill(turn.settings), turn.settings):
            await self.ease(turn, "context_limit", mid_turn=True)

    async def ease(
        self,
        turn: TurnContext,
        reason: CompactionReason,
        *,
        previous: ModelSettings | None = None,
        mid_turn: bool = False,
    ) -> None:
        """Compact; when it fails, the turn goes on as long as the history fits. Raises `ModelError` when it does not.

        `previous` is asked in place of the turn's own model, which may read too little.
        """
        if previous is not None:
            try:
                await self.compact(turn.replace(settings=previous), reason, needs_summary=True)
            except ModelError as error:
                self._warn(
                    f"`{previous.model}` could not compact the conversation: {error}; `{turn.settings.model}` is asked"
                )
            else:
                return
        try:
            await self.compact(turn, reason, mid_turn=mid_turn)
        except ModelError as error:
            self._go_on_after(error, turn.settings)

    async def compact_after_refusal(self, turn: TurnContext, refusal: ModelError) -> None:
        """Make room after a request that was too long; raises `ModelError` when there is no more to be made.

        Where only the user has spoken so far there is none: the refusal itself says it best.
        """
        if not any(map(is_of_model, self._services.history.items)):
            raise refusal
        if self._reliefs == _MAX_REFUSALS:
            raise ModelError(
                f"the conversation does not fit into the context window of `{turn.settings.model}`, even compacted:"
                f" {refusal}",
                retryable=False,
                code=refusal.code,
            ).counted_as("context_length")
        self._reliefs += 1
        try:
            await self.compact(turn, "context_overflow", mid_turn=True)
        except ModelError as error:
            raise ModelError(
                f"the conversation is too long, and compacting it failed: {error}", retryable=False
            ).counted_as(error.failure or "context_length") from error

    async def compact(
        self,
        turn: TurnContext,
        reason: CompactionReason,
        *,
        focus: str = "",
        mid_turn: bool = False,
        needs_summary: bool = False,
    ) -> None:
        """Replace the history. Until that, at the very end, everything stays as it was: it may be interrupted.

        Where the model writes no summary, the history is cut, unless it `needs_summary`. Raises `ModelError` when
        nothing came that could take the place of the history.
        """
        services = self._services
        trigger = "manual" if reason == "user_requested" else "auto"
        refusal = await services.hooks.runner.before_compaction(trigger, focus)
        # What does not fit has no choice.
        if refusal is not None and reason != "context_overflow":
            raise ModelError(f"a PreCompact hook does not let it: {refusal}", retryable=False)
        before = self._fill(turn.settings).total
        services.emit(events.CompactionStarted(reason, before))
        try:
            handover = await self._hand_over(turn, focus, before)
        except ModelError as error:
            is_due = reason != "user_requested" or is_too_full(self._fill(turn.settings), turn.settings)
            # A server that has just refused the turn's request is there; asking it later would end the same way.
            may_cut = gives_no_summary(error) or (reason == "context_overflow" and may_pass(error))
            if needs_summary or not is_due or not may_cut:
                raise
            handover = self._cut(turn.settings, error)
        self._replace(turn, handover, mid_turn=mid_turn)
        after = self._fill(turn.settings).total
        services.note_cost(handover.cost, after)
        services.emit(events.ContextCompacted(before, after, handover.how, reason, handover.summary))
        services.history.append(*await services.hooks.runner.after_compaction(trigger, handover.summary))

    async def _hand_over(self, turn: TurnContext, focus: str, tokens: int) -> Handover:
        """What the history is replaced by: of the model for compactions, and where that fails of the turn's own."""
        services = self._services

        def request(summarized: TurnContext, way: CompactionWay) -> CompactionRequest:
            prompt = prompt_for(summarized, services.history, services.tools(), tokens=tokens)
            known = turn.settings.context_window or turn.settings.auto_compact_tokens
            limit = self._tokens_left_for_history(turn.settings) * BYTES_PER_TOKEN if known else MAX_SUMMARY_BYTES
            items, most = services.history.items, min(limit, MAX_SUMMARY_BYTES)
            return CompactionRequest(prompt, items, way, services.prompt_text, focus, most)

        other = services.summary_turn(turn)
        if other != turn:
            try:
                return await self._compactor.hand_over(request(other, "local"))
            except ModelError as error:
                if error.code == BUDGET_REACHED:
                    raise
                own = turn.settings.model
                self._warn(f"`{other.settings.model}` could not compact the conversation: {error}; `{own}` is asked")
        way = self._way or services.model.compaction_of(turn.settings.provider)
        handover = await self._compactor.hand_over(request(turn, way))
        # What did not work once is not tried again.
        self._way = way if handover.how == way else "local"
        return handover

    def _cut(self, settings: ModelSettings, error: ModelError) -> Handover:
        """The history without its oldest parts, in place of a summary that the model has not written."""
        cut = cut_history(self._services.history.items, self._tokens_left_for_history(settings) * BYTES_PER_TOKEN)
        what = cut.left_out or "nothing more could be"
        self._warn(f"the model wrote no summary of the conversation ({error}); left out instead: {what}")
        note = message("developer", f"The conversation grew too long, and the host left out of it: {what}.")
        return Handover((*cut.items, note), "cut", users=(), summary=f"left out: {what}")

    def _tokens_left_for_history(self, settings: ModelSettings) -> int:
        """The tokens that what replaces the history may take: half of the limit, with what comes before the history."""
        fill = self._fill(settings)
        limit = compaction_limit(settings.context_window, settings.auto_compact_tokens) or fill.total
        # What a server has refused is too long whatever its window is said to be.
        goal = (min(limit, fill.total) if self._reliefs else limit) // 2
        fixed = max(0, fill.total - estimate_tokens(self._services.history.weight_since(0)))
        # A second compaction in a row has to leave less.
        return max(goal - fixed, goal // 4) // (4 if self._reliefs == _MAX_REFUSALS else 1)

    def _replace(self, turn: TurnContext, handover: Handover, *, mid_turn: bool) -> None:
        services = self._services
        self._read_earlier_work()
        state = self._work.state
        survivors = new_history(
            services.history.items,
            handover,
            state,
            skills=self._turn_skills if mid_turn else (),
            window=turn.settings.context_window,
            tight=self._reliefs == _MAX_REFUSALS,
        )

        def begin(context: Sequence[ResponseItem]) -> None:
            services.history.replace([*context, *survivors])
            services.transcript.compacted(
                handover.summary, services.history.items, window=services.history.window, work_state=state.to_record()
            )

        services.context_tracker.send_all(begin)
        self._meter.restart()
        self._fresh, self._floor = True, 0

    def replace_refused(self, refusal: ModelError) -> bool:
        """Put plain texts in the place of the items that a server has refused; whether another request may fare better.

        The session file has the new history, so that a resumed session sends it too.
        """
        services = self._services
        items = services.history.items
        texts = {index: plain_texts(items[index], str(refusal)) for index in refusal.refused if index < len(items)}
        if not texts or any(items[index] in self._texts or plain == [items[index]] for index, plain in texts.items()):
            return False
        self._texts.update(text for plain in texts.values() for text in plain)
        self._replace_items(new for index, item in enumerate(items) for new in texts.get(index, [item]))
        self._warn(
            f"the server refused a part of the conversation, which it is sent as plain text from now on: {refusal}"
        )
        return True

    def remove_pictures(self, turn_state: TurnState) -> None:
        """Take the pictures that the server has refused out of the history and the session file."""
        if refused := turn_state.refused_pictures:
            items = self._services.history.items
            self._replace_items(ResponseItem(without_pictures(item.encoded, refused)) for item in items)
            turn_state.refused_pictures = set()

    def _replace_items(self, items: Iterable[ResponseItem]) -> None:
        services = self._services
        self._read_earlier_work()
        services.history.replace(list(items), compacted=False)
        record = self._work.state.to_record()
        services.transcript.compacted("", services.history.items, window=services.history.window, work_state=record)
        self._meter.restart()

    def _read_earlier_work(self) -> None:
        if self._unread:
            services = self._services
            earlier = work_state_of(services.history.items[: self._unread], services.cwd, services.skill_uses)
            self._work.state = self._earlier.then(earlier).then(self._work.state)
            self._unread = 0

    def _is_due(self, fill: Fill, settings: ModelSettings) -> bool:
        return not self._fresh and fill.total >= self._floor and is_too_full(fill, settings)

    def _fill(self, settings: ModelSettings, coming: int = 0) -> Fill:
        return self._meter.fill(settings, self._services.tools(), coming=coming)

    def _check_help(self, settings: ModelSettings, covered: int) -> None:
        """A compaction that leaves too much must not be followed by the next one at once.

        What came after the first `covered` items, such as a long output, is not its fault.
        """
        fill = self._fill(settings, -self._services.history.weight_since(covered))
        if is_too_full(fill, settings):
            self._floor = fill.total * 5 // 4
            self._warn(
                f"the conversation takes {fill.total:,} tokens even after it was compacted, more than the limit for"
                " compacting it allows; `model_auto_compact_token_limit` or a model with a larger window would help"
            )

    def _go_on_after(self, error: ModelError, settings: ModelSettings) -> None:
        total, window = self._fill(settings).total, settings.context_window
        # The next request shows whether the server is there, and whether it takes all of it.
        if window is not None and total >= window and not may_pass(error):
            raise ModelError(
                f"the conversation is too long for `{settings.model}` ({total:,} of {window:,} tokens), and compacting"
                f" it failed: {error}",
                retryable=False,
            ).counted_as(error.failure or "context_length") from error
        self._floor = total + max(total // 20, 1)
        self._warn(f"compacting the conversation failed: {error}; the turn goes on with all of it")

    def _warn(self, message: str) -> None:
        self._services.emit(events.Warned(message))


def _is_smaller(settings: ModelSettings, previous: ModelSettings) -> bool:
    window, before = settings.context_window, previous.context_window
    return window is not None and (before is None or window < before)
