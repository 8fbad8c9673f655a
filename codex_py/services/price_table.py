"""Making the table of prices: the data of genai-prices in the few words that `model/prices.py` reads."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from codex_py.errors import UserError
from codex_py.model.prices import FORMAT
from codex_py.paths import make_private_dir
from codex_py.protocol.encoding import as_list, as_object, encode_json
from codex_py.replace_file import replace_file
from codex_py.text.files import os_reason

USER_TABLE: Final = "prices.jsonl"
_KEYS: Final = {"input_mtok": "i", "cache_read_mtok": "c", "cache_write_mtok": "w", "output_mtok": "o"}
_TIERS: Final = ("flex", "priority", "fast")
_CLAUSES: Final = {"starts_with": "^", "ends_with": "$", "contains": "*", "equals": "=", "regex": "~"}


def update_table(home: Path, url: str | None = None) -> tuple[Path, int]:
    """Fetch the newest data and keep it in CODEX_HOME; its path, and how many models have a price.

    Raises `UserError` when there is no answer, or none with prices.
    """
    try:
        library: Any = import_module("genai_prices.update_prices")
    except ImportError as error:
        raise UserError("`genai-prices` is not installed", hint="`pip install genai-prices`") from error
    address = url or library.DEFAULT_UPDATE_URL
    http = library.httpx2
    try:
        snapshot = library.UpdatePrices(url=address).fetch()
        providers: list[Any] = snapshot.providers if snapshot else []
        table = encode_table(providers, source=address)
    except (OSError, ValueError, LookupError, AttributeError, http.HTTPError, http.InvalidURL) as error:
        raise UserError(f"cannot update the prices from `{address}`: {_reason(error)}") from error
    count = sum(bool(model.prices) for provider in providers for model in provider.models)
    if not count:
        raise UserError(f"cannot update the prices from `{address}`: there are none in the answer")
    return _save(home / USER_TABLE, table), count


def encode_table(providers: Sequence[Any], *, source: str) -> bytes:
    """The file: what it is, then for each provider a line that says who it is and one with its models."""
    lines: list[object] = [{"format": FORMAT, "source": source}]
    for provider in providers:
        head = {
            "id": provider.id,
            "url": provider.api_pattern,
            "names": _rule(provider.model_match),
            "also": provider.fallback_model_providers,
        }
        lines.append({name: value for name, value in head.items() if value})
        lines.append([entry for model in provider.models if (entry := _entry(model)) is not None])
    return b"".join(encode_json(line) + b"\n" for line in lines)


def _entry(model: Any) -> list[Any] | None:
    listed: list[Any] = [price for price in as_list(model.prices) if not _is_daily(price.constraint)]
    dated: list[Any] = [[_start(price.constraint), _rates(price.prices)] for price in listed] or [
        [None, _rates(model.prices)]
    ]
    variants = [
        [variant.when["service_tier"], _start(variant.constraint), _rates(variant.prices)]
        for variant in model.price_variants or ()
        if variant.when.keys() == {"service_tier"}
        and variant.when["service_tier"] in _TIERS
        and not _is_daily(variant.constraint)
    ]
    if not any({"i", "o"} <= set(as_object(rates)) for _, rates in dated):
        return None
    entry = [_rule(model.match), model.context_window, dated]
    return [*entry, variants] if variants else entry


def _rates(prices: Any) -> dict[str, Any]:
    known = {key: getattr(prices, name, None) for name, key in _KEYS.items()}
    return {key: _rate(value) for key, value in known.items() if value is not None}


def _rate(value: Any) -> Any:
    if not hasattr(value, "tiers"):
        return float(value)
    return [float(value.base), *([tier.start, float(tier.price)] for tier in value.tiers)]


def _is_daily(constraint: Any) -> bool:
    """Whether a price holds at some hours of the day only: it is left out, as few models have one."""
    return hasattr(constraint, "start_time")


def _start(constraint: Any) -> str | None:
    """The day from which on a price holds; None for always."""
    return None if constraint is None else constraint.start_date.isoformat()


def _rule(clause: object) -> list[Any] | None:
    """A rule for names, in lower case as names are."""
    if clause is None:
        return None
    fields = as_object(vars(clause))
    for name, mark in (("or_", "|"), ("and_", "&")):
        if name in fields:
            return [mark, *map(_rule, fields[name])]
    ((name, text),) = fields.items()
    return [_CLAUSES[name], text if name == "regex" else text.lower()]


def _save(path: Path, table: bytes) -> Path:
    try:
        make_private_dir(path.parent)
        replace_file(path, table)
    except OSError as error:
        raise UserError(f"cannot write `{path}`: {os_reason(error)}") from error
    return path


def _reason(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__
