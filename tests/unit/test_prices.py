"""What requests cost: documented examples to the cent, the whole table against the library it is made of, overrides."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from codex_py.config.model_sections import ModelEntry
from codex_py.model.prices import TABLE, ModelPrice, PriceQuery, PriceTable, Rate, own_price
from codex_py.protocol.usage import Spending, TokenUsage

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
PRICES = PriceTable.read(TABLE)


def usage(sent: int, cached: int = 0, received: int = 0, written: int = 0) -> TokenUsage:
    return TokenUsage(sent, cached, received, 0, sent + received, written)


# From the price pages of the providers: dollars for a million tokens, multiplied by hand.
EXAMPLES = [
    # platform.openai.com/docs/pricing: gpt-5 is 1.25 in, 0.125 cached, 10 out.
    ("openai", "gpt-5", usage(1_000_000, 0, 100_000), 2.25),
    ("openai", "gpt-5", usage(200_000, 150_000, 10_000), 0.0625 + 0.01875 + 0.1),
    # gpt-4.1 is 2 in, 0.5 cached, 8 out.
    ("openai", "gpt-4.1", usage(500_000, 400_000, 50_000), 0.2 + 0.2 + 0.4),
    # o3 is 2 in, 0.5 cached, 8 out since June 2025.
    ("openai", "o3", usage(100_000, 0, 20_000), 0.36),
    # docs.anthropic.com/pricing: Claude Sonnet 4.5 is 3 in, 0.3 cached, 3.75 written, 15 out up to 200k of input.
    ("anthropic", "claude-sonnet-4-5", usage(100_000, 0, 10_000), 0.45),
    ("anthropic", "claude-sonnet-4-5", usage(150_000, 100_000, 4_000, 50_000), 0.03 + 0.1875 + 0.06),
    # Claude Haiku 4.5 is 1 in, 0.1 cached, 1.25 written, 5 out.
    ("anthropic", "claude-haiku-4-5-20251001", usage(1_000_000, 900_000, 20_000, 50_000), 0.05 + 0.09 + 0.0625 + 0.1),
    # ai.google.dev/pricing: Gemini 2.5 Pro is 1.25 in, 10 out; above 200k of input 2.5 in, 15 out, for all of it.
    ("gemini", "gemini-2.5-pro", usage(200_000, 0, 10_000), 0.35),
    ("gemini", "gemini-2.5-pro", usage(200_001, 0, 10_000), 0.5 + 0.0000025 + 0.15),
    # Gemini 2.5 Flash is 0.3 in, 0.03 cached, 2.5 out.
    ("gemini", "gemini-2.5-flash", usage(1_000_000, 500_000, 100_000), 0.15 + 0.015 + 0.25),
]


@pytest.mark.parametrize(("provider", "model", "spent", "dollars"), EXAMPLES)
def test_documented_examples_to_the_cent(provider: str, model: str, spent: TokenUsage, dollars: float) -> None:
    price = PRICES.find(PriceQuery(model, provider), NOW)
    assert price is not None
    assert price.cost(spent) == pytest.approx(dollars, abs=1e-9)


def is_daily(model: Any) -> bool:
    """Whether a model costs another price at some hours of the day, which the table leaves out."""
    prices = model.prices if isinstance(model.prices, list) else []
    return any(hasattr(price.constraint, "start_time") for price in prices)


def test_the_table_says_what_the_library_says_of_every_model() -> None:
    genai_prices = pytest.importorskip("genai_prices")
    data = pytest.importorskip("genai_prices.data")
    chance, compared = random.Random(20), 0
    # A full run over all 2,300, made once after an update of the table, takes half a minute.
    listed = [(provider, model) for provider in data.providers for model in provider.models if not is_daily(model)]
    for provider, model in chance.sample(listed, 200):
        for _ in range(2):
            sent = chance.randrange(400_000)
            cached = chance.randrange(sent + 1)
            written = chance.randrange(sent - cached + 1)
            received = chance.randrange(30_000)
            when = NOW + timedelta(hours=chance.randrange(24))
            price = PRICES.find(PriceQuery(model.id, provider.id), when)
            found = provider.find_model(model.id, all_providers=data.providers)
            rates = found.get_prices(when) if found else None
            if rates is None or rates.input_mtok is None or rates.output_mtok is None:
                continue
            if any(getattr(rates, name) is not None for name in ("requests_kcount", "output_reasoning_mtok")):
                continue
            counts: dict[str, Any] = {
                "input_tokens": sent,
                "cache_read_tokens": cached,
                "cache_write_tokens": written,
                "output_tokens": received,
            }
            expected = genai_prices.calc_price(
                genai_prices.Usage(**counts), model.id, provider_id=provider.id, genai_request_timestamp=when
            )
            assert price is not None, (provider.id, model.id)
            ours = price.cost(usage(sent, cached, received, written))
            assert ours == pytest.approx(float(expected.total_price), abs=1e-9), (provider.id, model.id)
            compared += 1
    assert compared > 250


@pytest.mark.parametrize(
    ("query", "known"),
    [
        (PriceQuery("gpt-5", "my-proxy", "https://proxy.example.com/v1"), True),
        (PriceQuery("openai/gpt-5", "my-proxy", "https://proxy.example.com/v1"), True),
        (PriceQuery("claude-sonnet-4-5", "work", "http://127.0.0.1:1/v1"), True),
        (PriceQuery("anthropic/claude-sonnet-4.5", "mine", "https://openrouter.ai/api/v1"), True),
        (PriceQuery("models/gemini-2.5-pro", "gemini"), True),
        (PriceQuery("no-such-model", "openai"), False),
        (PriceQuery("my-model", "my-proxy"), False),
        (PriceQuery("", "openai"), False),
    ],
)
def test_a_price_is_found_by_provider_address_or_name(query: PriceQuery, known: bool) -> None:
    assert (PRICES.find(query, NOW) is not None) is known


def test_a_service_tier_has_a_price_of_its_own() -> None:
    usual, flex, unknown = (
        PRICES.find(PriceQuery("gpt-5", "openai", service_tier=tier), NOW) for tier in (None, "flex", "platinum")
    )
    assert usual is not None
    assert flex is not None
    assert unknown == usual
    assert flex.input.base < usual.input.base


def test_own_prices_win_and_half_a_price_is_none() -> None:
    listed = ModelPrice(Rate(1.0, ((100, 2.0),)), Rate(5.0), Rate(0.1), Rate(1.25))
    assert own_price(None, listed) == listed
    assert own_price(ModelEntry(), listed) == listed
    assert own_price(ModelEntry(input_usd=3.0), listed) == ModelPrice(Rate(3.0), Rate(5.0))
    assert own_price(ModelEntry(input_usd=3.0, cached_input_usd=0.5, output_usd=4.0), listed) == ModelPrice(
        Rate(3.0), Rate(4.0), Rate(0.5)
    )
    assert own_price(ModelEntry(cached_input_usd=0.2), listed) == listed.replace(cached_input=Rate(0.2))
    assert own_price(ModelEntry(input_usd=3.0), None) is None
    assert own_price(ModelEntry(output_usd=3.0), None) is None
    assert own_price(ModelEntry(input_usd=0.0, output_usd=0.0), None) == ModelPrice(Rate(0.0), Rate(0.0))


def test_counts_that_do_not_fit_together_cost_what_was_sent() -> None:
    price = ModelPrice(Rate(10.0), Rate(0.0), Rate(1.0), Rate(20.0))
    assert price.cost(usage(100, 500, 0, 700)) == 0.0001
    assert price.cost(usage(100, 60, 0, 700)) == pytest.approx(0.00006 + 0.0008)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"format":3}\n', b'{"format":2}\n{"id":"openai"}\n', b"\xff\xfe\n", b"[]\n[]\n[]\n"]
)
def test_a_table_that_is_none_gives_way_to_the_next(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "prices.jsonl").write_bytes(content)
    table = PriceTable.read(tmp_path / "prices.jsonl", TABLE)
    assert table.find(PriceQuery("gpt-5", "openai"), NOW) is not None
    assert PriceTable.read(tmp_path / "prices.jsonl", tmp_path).find(PriceQuery("gpt-5", "openai"), NOW) is None


def test_odd_entries_of_a_table_are_unknown_prices(tmp_path: Path) -> None:
    entries = b'[[["=","a"],null,[[null,{"i":"x","o":1}]]],5,[["=","b"]],[["?","c"],1,[]],[["=","d"],1,[]]]'
    (tmp_path / "p").write_bytes(b'{"format":2}\n{"id":"x"}\n' + entries + b"\n")
    table = PriceTable.read(tmp_path / "p")
    assert [table.find(PriceQuery(name, "x"), NOW) for name in "abcd"] == [None] * 4


@pytest.mark.parametrize(
    ("spending", "words"),
    [
        (Spending(), "$0.00"),
        (Spending(1, 10, 0.0, 1), "?"),
        (Spending(2, 10, 0.5, 1), "$0.5000 + ?"),
        (Spending(1, 10, 0.00123), "$0.0012"),
        (Spending(1, 10, 0.000001), "$0.000001"),
        (Spending(1, 10, 1234.567), "$1,234.57"),
    ],
)
def test_an_unknown_price_is_never_shown_as_nothing(spending: Spending, words: str) -> None:
    assert spending.in_words() == words
    assert Spending.from_record(spending.to_record()) == spending


def test_sums_of_prices_have_no_digits_of_floating_point() -> None:
    total = Spending()
    for _ in range(3):
        total += Spending(1, 1, 0.1)
    assert total == Spending(3, 3, 0.3)


def test_odd_records_count_as_nothing() -> None:
    for record in (None, [], "x", {"usd": "1"}, {"usd": True}, {"usd": -1}, {"usd": float("nan"), "requests": -2}):
        assert Spending.from_record(record) == Spending()
