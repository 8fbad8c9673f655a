"""How the models of a session are reached: its providers, the pool of their clients, prices and budgets."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from codex_py.auth.find_credentials import find_credentials
from codex_py.config.model_sections import BudgetConfig, DayBudget, ModelEntry, TimedBudget
from codex_py.core.model_pool import Connected, ModelPool
from codex_py.core.model_setup import configured_provider, connect_model, login_rules
from codex_py.core.session_request import SessionRequest
from codex_py.core.session_settings import choose_policy
from codex_py.errors import ModelError
from codex_py.model.credentials import Credentials
from codex_py.model.metering import DayLog, Meter, Span, unknown_price
from codex_py.model.prices import TABLE, ModelPrice, PriceQuery, PriceTable, Rate, own_price
from codex_py.model.providers import LOCAL_PROVIDERS, Provider
from codex_py.model.retry import PACE_VARIABLE, Pace
from codex_py.paths import make_private_dir, open_private
from codex_py.programs import program_finder
from codex_py.protocol.encoding import decode_json, encode_json
from codex_py.protocol.policy import extra_roots
from codex_py.protocol.usage import BudgetLimits, Spending
from codex_py.rollout.format import StoredSession
from codex_py.text.files import os_reason

_OFFLINE: Final = "offline"
_FREE: Final = ModelPrice(Rate(0.0), Rate(0.0))


def session_provider(request: SessionRequest, provider_id: str) -> Provider:
    """A provider by its id. Raises `ConfigError` for an unknown one and for settings that cannot be used."""
    config = request.loaded.config
    provider = configured_provider(config, request.env, provider_id)
    if not provider.auth_command:
        return provider
    writable = extra_roots(choose_policy(request.loaded, request.extra_roots))
    return provider.replace(auth_programs=program_finder(request.env, request.cwd, writable))


def open_pool(
    request: SessionRequest, provider: Provider, credentials: Credentials, *, model: str, stored: StoredSession | None
) -> ModelPool:
    """The clients of a session, which count its requests, those of an earlier run included.

    Raises `UserError` where a budget in dollars cannot be held, because the price of the model is unknown.
    """
    budgets = session_budgets(request)
    day = _DayFile(request.home / "spending") if any(span == "day" and limits for span, limits in budgets) else None
    earlier = stored.spending if stored and not request.forks else None
    meter = Meter(budgets, earlier=earlier, day=day)
    prices = PriceBook(request.home, request.loaded.config.models)
    if meter.has_limit("usd") and prices.find(provider, model, request.loaded.config.service_tier) is None:
        raise unknown_price(model)

    def connect(provider_id: str) -> Connected:
        other = session_provider(request, provider_id)
        found = find_credentials(other, env=request.env, home=request.home, rules=login_rules(request.loaded.config))
        return _connected(request, other, found)

    first = _connected(request, provider, credentials)
    pace_file = request.env.get(PACE_VARIABLE)
    pace = Pace(Path(pace_file)) if pace_file else None
    return ModelPool(first, meter=meter, price_of=prices.find, connect=connect, pace=pace)


def session_budgets(request: SessionRequest) -> Sequence[tuple[Span, BudgetLimits]]:
    """What may be spent: by the flags of this run, and by `[budget]`."""
    config: BudgetConfig = request.loaded.config.budget
    return (
        ("run", request.limits),
        ("turn", _limits(config.turn)),
        ("session", _limits(config.session)),
        ("day", _limits(config.day)),
    )


class PriceBook:
    """The prices of models: the user's own, then those of the table, which is read when it is first needed."""

    def __init__(self, home: Path, models: Mapping[str, ModelEntry]) -> None:
        self._home = home
        self._models = models
        self._table: PriceTable | None = None

    def find(self, provider: Provider, model: str, service_tier: str | None = None) -> ModelPrice | None:
        """The price of a model of a provider; None where it is unknown, as that of a server on this machine is."""
        if provider.id == _OFFLINE:
            return _FREE
        query = PriceQuery(model, provider.id, provider.base_url, service_tier)
        return own_price(self._models.get(model), None if provider.local else self.listed(query))

    def find_at(self, provider_id: str, model: str, when: datetime) -> ModelPrice | None:
        """The price that a model had at a moment, by what a session file says of it."""
        if provider_id in (_OFFLINE, *LOCAL_PROVIDERS):
            return _FREE if provider_id == _OFFLINE else own_price(self._models.get(model), None)
        return own_price(self._models.get(model), self.listed(PriceQuery(model, provider_id), when))

    def listed(self, query: PriceQuery, when: datetime | None = None) -> ModelPrice | None:
        """The price in the table."""
        if self._table is None:
            self._table = PriceTable.read(self._home / TABLE.name, TABLE)
        return self._table.find(query, when)


def _connected(request: SessionRequest, provider: Provider, credentials: Credentials) -> Connected:
    client = connect_model(
        provider,
        credentials,
        rules=login_rules(request.loaded.config),
        env=request.env,
        home=request.home,
        originator=request.originator,
    )
    return Connected(provider, client, (credentials.token or "", *credentials.secrets))


def _limits(budget: TimedBudget | DayBudget) -> BudgetLimits:
    seconds = budget.max_seconds if isinstance(budget, TimedBudget) else None
    return BudgetLimits(budget.max_usd, budget.max_tokens, budget.max_requests, seconds)


class _DayFile(DayLog):
    """A file a day, to which every session with such a budget appends what each of its requests cost."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = Path()
        self._read_to = 0
        self._total = Spending()

    def total(self) -> Spending:
        """The spending of today. Raises `ModelError` when the file cannot be read."""
        self._turn_page()
        try:
            with self._path.open("rb") as file:
                file.seek(self._read_to)
                added = file.read()
        except FileNotFoundError:
            return self._total
        except OSError as error:
            raise self._unusable(error) from error
        whole, newline, _ = added.rpartition(b"\n")
        for line in whole.splitlines():
            self._total += _spending_in(line)
        self._read_to += len(whole) + len(newline)
        return self._total

    def add(self, spending: Spending) -> None:
        """Raises `ModelError` when it cannot be written down."""
        self._turn_page()
        try:
            make_private_dir(self._directory)
            descriptor = open_private(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                os.write(descriptor, encode_json(spending.to_record()) + b"\n")
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self._unusable(error) from error

    def _turn_page(self) -> None:
        path = self._directory / f"{time.strftime('%Y-%m-%d')}.jsonl"
        if path != self._path:
            self._path, self._read_to, self._total = path, 0, Spending()

    def _unusable(self, error: OSError) -> ModelError:
        reason = f"the budget of the day cannot be held: `{self._path}`: {os_reason(error)}"
        return ModelError(reason, retryable=False).counted_as("budget")


def _spending_in(line: bytes) -> Spending:
    try:
        return Spending.from_record(decode_json(line))
    except ValueError:
        return Spending()
