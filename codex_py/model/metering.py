"""The cost of the requests of a session and its agents, and the budgets checked before each request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

from codex_py.errors import ConfigError, ModelError
from codex_py.model.client import Prompt
from codex_py.model.prices import ModelPrice
from codex_py.protocol.usage import BUDGET_REACHED, BudgetLimits, Costs, RequestCost, Spending, TokenUsage, describe_usd
from codex_py.protocol.value import Value

_WARNED_FROM: Final = 0.8
# A lower bound: text of every kind has more bytes to a token, base64 of sealed reasoning included.
_BYTES_PER_TOKEN: Final = 6

Span: TypeAlias = Literal["run", "turn", "session", "day"]
Unit: TypeAlias = Literal["usd", "tokens", "requests", "seconds"]
_SPANS: Final = {"run": "this run", "turn": "a turn", "session": "the session", "day": "the day"}


class Use(Value):
    """How much of one limit is used: `limit` and `used` are dollars, tokens, requests or seconds."""

    span: Span
    unit: Unit
    used: float
    limit: float

    def in_words(self) -> str:
        """For a person: `$0.81 of $1.00 for this run`."""
        match self.unit:
            case "usd":
                amounts = f"{describe_usd(self.used)} of {describe_usd(self.limit)}"
            case "seconds":
                amounts = f"{round(self.used, 1):,g} of {self.limit:,g} seconds"
            case _:
                amounts = f"{int(self.used):,} of {int(self.limit):,} {self.unit}"
        return f"{amounts} for {_SPANS[self.span]}"


class DayLog:
    """The spending of all sessions of this machine today. The default keeps no count."""

    def total(self) -> Spending:
        return Spending()

    def add(self, spending: Spending) -> None:
        pass


class Meter:
    """Counts the requests of a whole tree of agents; `earlier` is what runs of the session before this one cost.

    `ask` lets the user go on beyond a limit, which counts once more then; without it the limit ends the turn.
    """

    def __init__(
        self,
        budgets: Sequence[tuple[Span, BudgetLimits]] = (),
        *,
        earlier: Spending | None = None,
        day: DayLog | None = None,
    ) -> None:
        self._budgets = [budget for budget in budgets if budget[1]]
        self._earlier = earlier or Spending()
        self._day = day or DayLog()
        self._began = time.monotonic()
        self._total = Spending()
        self._threads: dict[str, Spending] = {}
        self._earlier_agents: dict[str, Spending] = {}
        self._turn_id = ""
        self._turn = Spending()
        self._turn_began = self._began
        self._turn_requests = self._requests = 0
        # The least that requests under way will cost, by thread.
        self._coming: dict[str, Spending] = {}
        self._input_tokens: dict[tuple[str, int], int] = {}
        self._extensions: dict[tuple[str, str], int] = {}
        self._warned: set[tuple[str, str, int]] = set()
        self._asking = asyncio.Lock()
        self.ask: Callable[[str], Awaitable[bool]] | None = None
        self.warn: Callable[[str], None] = _ignore

    def restore_agent(self, thread_id: str, spending: Spending) -> None:
        """Restore the cost of an agent in earlier runs, which is part of its session's cost."""
        self._earlier_agents[thread_id] = spending

    def begin_turn(self, turn_id: str) -> None:
        """A turn of the user's begins."""
        self._turn_id, self._turn, self._turn_requests = turn_id, Spending(), 0
        self._turn_began = time.monotonic()
        for key in [key for key in self._extensions if key[0] == "turn"]:
            del self._extensions[key]
        self._warned = {key for key in self._warned if key[0] != "turn"}

    def seconds_left(self) -> float | None:
        """How long the turn may take from now on, where nobody can be asked for more; None for no limit."""
        if self.ask is not None:
            return None
        left = [use.limit - use.used for use in self._uses(Spending()) if use.unit == "seconds"]
        return max(0.0, min(left)) if left else None

    def has_limit(self, unit: Literal["usd", "tokens"]) -> bool:
        """Whether any budget limits this."""
        return any(getattr(limits, unit) is not None for _, limits in self._budgets)

    async def admit(self, prompt: Prompt, price: ModelPrice | None) -> None:
        """Count a request that is about to be sent.

        Raises `ModelError` with the code `BUDGET_REACHED` where it would, at the least it can cost, exceed a budget.
        """
        least = self._least(prompt, price)
        while (exceeded := self._exceeded(least)) is not None:
            async with self._asking:
                # Another agent may have asked meanwhile.
                if (now := self._exceeded(least)) is None:
                    break
                if not await self._is_extended(now):
                    raise reached(exceeded)
        self._requests += 1
        if prompt.root_turn_id == self._turn_id:
            self._turn_requests += 1
        self._coming[prompt.thread_id] = least

    def settle(self, prompt: Prompt) -> None:
        """The request of a thread is over, whatever came of it."""
        self._coming.pop(prompt.thread_id, None)

    def note(self, prompt: Prompt, usage: TokenUsage | None, price: ModelPrice | None) -> Spending:
        """A request was answered; what it cost."""
        counted = usage or TokenUsage()
        if price is None or (usage is None and not price.is_free):
            spent = Spending(1, counted.total_tokens, 0.0, 1)
        else:
            spent = Spending(1, counted.total_tokens, price.cost(counted))
        self.settle(prompt)
        self._input_tokens[prompt.thread_id, prompt.window] = counted.input_tokens
        self._total += spent
        self._threads[prompt.thread_id] = self._threads.get(prompt.thread_id, Spending()) + spent
        if prompt.root_turn_id == self._turn_id:
            self._turn += spent
        self._day.add(spent)
        self._warn_of_limits()
        return spent

    def costs(self, thread_id: str, *, is_agent: bool = False) -> Costs:
        """The cost of the session of a thread, with its agents; for an agent, only its own cost."""
        own = self._threads.get(thread_id, Spending())
        if is_agent:
            return Costs(own, self._earlier_agents.get(thread_id, Spending()) + own)
        agents = [spent for thread, spent in self._threads.items() if thread != thread_id]
        return Costs(self._turn, self._earlier + self._total, sum(agents, Spending()))

    def reached_in_time(self) -> ModelError:
        """The time of the turn is over."""
        uses = [use for use in self._uses(Spending()) if use.unit == "seconds"]
        return reached(min(uses, key=lambda use: use.limit - use.used))

    def _least(self, prompt: Prompt, price: ModelPrice | None) -> Spending:
        if not (self.has_limit("usd") or self.has_limit("tokens")):
            return Spending(1)
        tokens = self._input_tokens.get((prompt.thread_id, prompt.window))
        if tokens is None or prompt.kind != "turn":
            tokens = (sum(map(len, prompt.input)) + len(prompt.instructions)) // _BYTES_PER_TOKEN
        if price is None:
            if self.has_limit("usd"):
                raise ModelError(
                    f"a budget in dollars cannot be held: the price of `{prompt.model}` is unknown; set"
                    f' `[models."{prompt.model}"] input_usd` and `output_usd`',
                    retryable=False,
                    code=BUDGET_REACHED,
                ).counted_as("budget")
            return Spending(1, tokens + 1, 0.0, 1)
        return Spending(1, tokens + 1, price.at_least(tokens))

    def _exceeded(self, least: Spending) -> Use | None:
        coming = sum(self._coming.values(), least)
        for now, then in zip(self._uses(Spending()), self._uses(coming), strict=True):
            if then.used > then.limit or (now.unit != "requests" and now.used >= now.limit):
                return now
        return None

    def _uses(self, coming: Spending) -> Iterator[Use]:
        """How far each limit is used, with what is on its way."""
        for span, limits in self._budgets:
            spent, requests, since = self._spent(span)
            amounts: tuple[tuple[Unit, float, float | None], ...] = (
                ("usd", spent.usd + coming.usd, limits.usd),
                ("tokens", spent.tokens + coming.tokens, limits.tokens),
                # Those under way are counted already.
                ("requests", requests + min(coming.requests, 1), limits.requests),
                ("seconds", time.monotonic() - since, limits.seconds),
            )
            for unit, used, limit in amounts:
                if limit is not None:
                    yield Use(span, unit, round(used, 12), limit * (1 + self._extensions.get((span, unit), 0)))

    def _spent(self, span: Span) -> tuple[Spending, int, float]:
        match span:
            case "run":
                return self._total, self._requests, self._began
            case "turn":
                return self._turn, self._turn_requests, self._turn_began
            case "session":
                return self._earlier + self._total, self._earlier.requests + self._requests, self._began
            case "day":
                day = self._day.total()
                return day, day.requests, self._began

    async def _is_extended(self, use: Use) -> bool:
        if self.ask is None or not await self.ask(use.in_words()):
            return False
        key = (use.span, use.unit)
        self._extensions[key] = self._extensions.get(key, 0) + 1
        return True

    def _warn_of_limits(self) -> None:
        for use in self._uses(Spending()):
            key = (use.span, use.unit, self._extensions.get((use.span, use.unit), 0))
            if use.limit * _WARNED_FROM <= use.used < use.limit and key not in self._warned:
                self._warned.add(key)
                self.warn(f"{use.used / use.limit:.0%} of a budget is used: {use.in_words()}")


def unknown_price(model: str) -> ConfigError:
    """The error of a model that a budget in dollars lets nobody ask."""
    return ConfigError(
        f"a budget in dollars cannot be held: the price of `{model}` is unknown",
        hint=f'set `[models."{model}"] input_usd` and `output_usd`, or limit the tokens',
    )


def reached(use: Use) -> ModelError:
    """The error that ends a turn."""
    return ModelError(
        f"the budget is used up: {use.in_words()}; the session can be resumed",
        retryable=False,
        code=BUDGET_REACHED,
    ).counted_as("budget")


def request_cost(prompt: Prompt, provider: str, usage: TokenUsage | None, spending: Spending) -> RequestCost:
    """The record of one answered request."""
    kind = "turn" if prompt.kind == "turn" else "compaction"
    return RequestCost(provider, prompt.model, kind, usage or TokenUsage(), spending)


def _ignore(_: str) -> None:
    pass
