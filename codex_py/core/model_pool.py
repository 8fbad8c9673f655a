"""The `ModelClient` of a session: the clients of the providers it asks, each opened when it is first asked.

Every request of the session and its agents passes here, so this is where they are counted and budgets are held.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final, TypeAlias

from codex_py.errors import ModelError
from codex_py.model.client import Admit, Completed, ModelClient, Prompt, ResponseEvent, TurnState, admit_always
from codex_py.model.failures import IncompleteAnswer
from codex_py.model.metering import Meter, request_cost, unknown_price
from codex_py.model.prices import ModelPrice
from codex_py.model.providers import Provider
from codex_py.model.retry import Pace, RetryBudget
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.usage import CompactionWay
from codex_py.protocol.value import Value


class Connected(Value):
    """A provider with the client that asks it, and the secrets it asks with."""

    provider: Provider
    client: ModelClient
    secrets: tuple[str, ...]


PriceOf: TypeAlias = Callable[[Provider, str, str | None], ModelPrice | None]
Connect: TypeAlias = Callable[[str], Connected]


class ModelPool:
    """`connect` opens the client of a provider by its id; it raises `UserError` for one that cannot be asked.

    `price_of` looks up the price of a model with a service tier. `pace` is shared with other processes: a server that
    asks one of them to wait is asked by none of them until then.
    """

    def __init__(
        self, first: Connected, *, meter: Meter, price_of: PriceOf, connect: Connect, pace: Pace | None = None
    ) -> None:
        self._first = first.provider.id
        self._clients = {first.provider.id: first}
        self.meter: Final = meter
        self._price_of = price_of
        self._connect = connect
        self._pace = pace
        self._watchers: list[tuple[Callable[[Sequence[str]], None], Callable[[str], None]]] = []

    def provider(self, provider_id: str) -> Provider:
        """A provider that can be asked from now on. Raises `UserError`."""
        return self._opened(provider_id).provider

    def require_price(self, provider_id: str, model: str, service_tier: str | None) -> None:
        """Raises `UserError` for a model without a known price, where a budget in dollars must be held."""
        if self.meter.has_limit("usd") and self._price_of(self.provider(provider_id), model, service_tier) is None:
            raise unknown_price(model)

    @property
    def compaction(self) -> CompactionWay:
        """As `ModelClient` says, of the provider the session began with."""
        return self._clients[self._first].client.compaction

    def compaction_of(self, provider_id: str) -> CompactionWay:
        """How another provider compacts a history."""
        return self._opened(provider_id).client.compaction

    def watch(self, *, add_secrets: Callable[[Sequence[str]], None], warn: Callable[[str], None]) -> None:
        """As `ModelClient` says."""
        self._watchers.append((add_secrets, warn))
        self.meter.warn = warn
        for other in self._clients.values():
            other.client.watch(add_secrets=add_secrets, warn=warn)

    def retry_budget(self, provider_id: str = "") -> RetryBudget:
        """As `ModelClient` says."""
        return self._opened(provider_id).client.retry_budget()

    async def stream(
        self, prompt: Prompt, *, turn_state: TurnState, admit: Admit = admit_always
    ) -> AsyncGenerator[ResponseEvent, None]:
        """As `ModelClient` says; `Completed` says what the request cost. Raises `ModelError` at the end of a budget."""
        opened = self._opened(prompt.provider)
        provider, client = opened.provider, opened.client
        meter = self.meter
        try:
            ours = partial(self._admit, provider, prompt, admit)
            async with aclosing(client.stream(prompt, turn_state=turn_state, admit=ours)) as events:
                async for event in events:
                    if isinstance(event, Completed):
                        spent = meter.note(prompt, event.usage, self._price(provider, prompt))
                        event = event.replace(cost=request_cost(prompt, provider.id, event.usage, spent))
                    yield event
        except ModelError as error:
            if self._pace is not None and error.retry_after is not None:
                self._pace.note_limit(time.time() + error.retry_after)
            if isinstance(error, IncompleteAnswer):
                spent = meter.note(prompt, error.usage, self._price(provider, prompt))
                error.cost = request_cost(prompt, provider.id, error.usage, spent)
            raise
        finally:
            meter.settle(prompt)

    async def compact(self, prompt: Prompt, *, admit: Admit = admit_always) -> list[ResponseItem]:
        """As `ModelClient` says. The endpoint does not say what it has used."""
        opened = self._opened(prompt.provider)
        provider, client = opened.provider, opened.client
        try:
            items = await client.compact(prompt, admit=partial(self._admit, provider, prompt, admit))
            self.meter.note(prompt, None, None)
        finally:
            self.meter.settle(prompt)
        return items

    async def count_tokens(self, prompt: Prompt) -> int | None:
        """As `ModelClient` says."""
        return await self._opened(prompt.provider).client.count_tokens(prompt)

    async def aclose(self) -> None:
        """As `ModelClient` says."""
        for other in self._clients.values():
            await other.client.aclose()

    async def _admit(self, provider: Provider, prompt: Prompt, admit: Admit) -> None:
        """Count a request that is about to be sent, when its server may be asked. Raises `ModelError`."""
        await admit()
        if self._pace is not None:
            await self._pace.wait()
        await self.meter.admit(prompt, self._price(provider, prompt) if self.meter.has_limit("usd") else None)

    def _price(self, provider: Provider, prompt: Prompt) -> ModelPrice | None:
        return self._price_of(provider, prompt.model, prompt.service_tier)

    def _opened(self, provider_id: str) -> Connected:
        provider_id = provider_id or self._first
        if provider_id not in self._clients:
            opened = self._connect(provider_id)
            for add_secrets, warn in self._watchers:
                add_secrets(opened.secrets)
                opened.client.watch(add_secrets=add_secrets, warn=warn)
            self._clients[provider_id] = opened
        return self._clients[provider_id]
