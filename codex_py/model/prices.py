"""What models cost: a table of prices that comes with the program, and the arithmetic of tiers.

`scripts/gen_docs --prices` makes `prices.jsonl` of the data of genai-prices; `codex-py models --update` puts a newer
one into CODEX_HOME. It is read when the first answer has come, and of it only the lines of one provider are decoded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from codex_py.config.model_sections import ModelEntry
from codex_py.protocol.encoding import as_list, as_object, decode_or_none
from codex_py.protocol.usage import TokenUsage
from codex_py.protocol.value import Value

FORMAT: Final = 2
TABLE: Final = Path(__file__).with_name("prices.jsonl")
_MILLION: Final = 1_000_000
_MAX_BYTES: Final = 16 * 1024 * 1024
# Providers that the table has under another name.
_OTHER_NAMES: Final[Mapping[str, str]] = MappingProxyType({"gemini": "google", "amazon-bedrock": "aws"})


class Rate(Value):
    """US dollars for a million tokens. A request with more input than a tier's start pays that tier for all tokens."""

    base: float
    tiers: tuple[tuple[int, float], ...] = ()

    def at(self, input_tokens: int) -> float:
        return next((price for start, price in reversed(self.tiers) if input_tokens > start), self.base)


class ModelPrice(Value):
    """The rates of a model. Cached input without a rate of its own costs what input costs, and so do writes."""

    input: Rate
    output: Rate
    cached_input: Rate | None = None
    cache_write: Rate | None = None

    def cost(self, usage: TokenUsage) -> float:
        """The cost of a request, in US dollars."""
        cached = min(usage.cached_input_tokens, usage.input_tokens)
        written = min(usage.cache_write_input_tokens, usage.input_tokens - cached)
        counted = (
            (usage.input_tokens - cached - written, self.input),
            (cached, self.cached_input or self.input),
            (written, self.cache_write or self.input),
            (usage.output_tokens, self.output),
        )
        total = sum(tokens * rate.at(usage.input_tokens) for tokens, rate in counted)
        return round(total / _MILLION, 12)

    @property
    def is_free(self) -> bool:
        return self.input == self.output == Rate(0.0)

    def at_least(self, input_tokens: int) -> float:
        """What a request with so much input costs at the least: all of it cached, and one token of output."""
        cached = self.cached_input or self.input
        return self.cost(TokenUsage(input_tokens, input_tokens if cached.base < self.input.base else 0, 1))


class PriceQuery(Value):
    """Whose price is asked for. `base_url` finds the provider where its id is the user's own."""

    model: str
    provider: str = ""
    base_url: str = ""
    service_tier: str | None = None


class PriceTable:
    """The prices of a table file. One that cannot be read has none."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._heads = [as_object(decode_or_none(line)) for line in lines[1::2]]
        self._entries: dict[PriceQuery, list[Any] | None] = {}

    @classmethod
    def read(cls, *paths: Path) -> PriceTable:
        """The table of the first of these files that is one."""
        for path in paths:
            try:
                with path.open("rb") as file:
                    lines = file.read(_MAX_BYTES).splitlines()
            except OSError:
                continue
            if lines and len(lines) % 2 and as_object(decode_or_none(lines[0])).get("format") == FORMAT:
                return cls(lines)
        return cls(())

    def find(self, query: PriceQuery, when: datetime | None = None) -> ModelPrice | None:
        """The price of a model at a moment (now); None where it is unknown."""
        entry = self._entry(query)
        if entry is None:
            return None
        moment = when or datetime.now(UTC)
        rates = _rates_at(as_list(entry[2]), moment)
        for tier, start, changed in (as_list(value) for value in (entry[3] if len(entry) > 3 else ())):
            if tier == query.service_tier and _has_begun(start, moment):
                rates = {**rates, **{key: rate for key, rate in as_object(changed).items() if key in "icwo"}}
                break
        return _price(rates)

    def _entry(self, query: PriceQuery) -> list[Any] | None:
        # Asked for at every request.
        if query not in self._entries:
            self._entries[query] = self._look_up(query)
        return self._entries[query]

    def _look_up(self, query: PriceQuery) -> list[Any] | None:
        # Google lists its models as `models/…`.
        name = query.model.strip().lower().removeprefix("models/")
        index = self._index_of(query)
        if index is not None:
            return self._in(index, name)
        # The servers of others offer models by the names of those who make them.
        for spelling in dict.fromkeys((name, name.rpartition("/")[2])):
            for index, head in enumerate(self._heads):
                if head.get("names") and _matches(as_list(head["names"]), spelling):
                    return self._in(index, spelling)
        return None

    def _index_of(self, query: PriceQuery) -> int | None:
        provider = _OTHER_NAMES.get(query.provider, query.provider)
        for index, head in enumerate(self._heads):
            if head.get("id") == provider:
                return index
        if not query.base_url or _is_near(query.base_url):
            return None
        for index, head in enumerate(self._heads):
            if re.match(str(head.get("url") or "(?!)"), query.base_url):
                return index
        return None

    def _in(self, index: int, name: str) -> list[Any] | None:
        also = [
            position
            for provider in as_list(self._heads[index].get("also"))
            for position, head in enumerate(self._heads)
            if head.get("id") == provider
        ]
        for position in (index, *also):
            for entry in map(as_list, as_list(decode_or_none(self._lines[2 * position + 2]))):
                if len(entry) > 2 and _matches(as_list(entry[0]), name):
                    return entry
        return None


def own_price(record: ModelEntry | None, listed: ModelPrice | None) -> ModelPrice | None:
    """The price with what the user says of it, which wins; None as long as input or output is unknown."""
    if record is None:
        return listed
    own = {
        "input": record.input_usd,
        "output": record.output_usd,
        "cached_input": record.cached_input_usd,
        "cache_write": record.cache_write_usd,
    }
    changes = {name: Rate(usd) for name, usd in own.items() if usd is not None}
    if listed is not None:
        if "input" in changes:
            # What the table knows of a cache belongs to its own price of the input.
            listed = listed.replace(cached_input=None, cache_write=None)
        return listed.replace(**changes)
    return ModelPrice(**changes) if {"input", "output"} <= changes.keys() else None


def _is_near(url: str) -> bool:
    """Whether a server is of this machine or its network by its address alone: the table has public ones only."""
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]
    return "." not in host or host[-1].isdigit()


def _matches(rule: Sequence[Any], name: str) -> bool:
    match rule:
        case ["|", *rules]:
            return any(_matches(as_list(inner), name) for inner in rules)
        case ["&", *rules]:
            return all(_matches(as_list(inner), name) for inner in rules)
        case ["=", str(text)]:
            return name == text
        case ["^", str(text)]:
            return name.startswith(text)
        case ["$", str(text)]:
            return name.endswith(text)
        case ["*", str(text)]:
            return text in name
        case ["~", str(pattern)]:
            return re.search(pattern, name) is not None
        case _:
            return False


def _rates_at(dated: Sequence[Any], moment: datetime) -> dict[str, Any]:
    """The rates in force: the last that have begun, else the first."""
    found: dict[str, Any] = {}
    for start, rates in (as_list(value)[:2] for value in dated):
        if not found or _has_begun(start, moment):
            found = as_object(rates)
    return found


def _has_begun(day: object, moment: datetime) -> bool:
    return not isinstance(day, str) or moment.astimezone(UTC).date().isoformat() >= day


def _price(rates: Mapping[str, Any]) -> ModelPrice | None:
    sent, received = _rate(rates.get("i")), _rate(rates.get("o"))
    if sent is None or received is None:
        return None
    return ModelPrice(sent, received, _rate(rates.get("c")), _rate(rates.get("w")))


def _rate(value: object) -> Rate | None:
    if isinstance(value, int | float):
        return Rate(float(value))
    base, *tiers = as_list(value) or [None]
    if not isinstance(base, int | float):
        return None
    return Rate(float(base), tuple((int(start), float(price)) for start, price in map(as_list, tiers)))
