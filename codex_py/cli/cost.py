"""`codex-py cost`: what the stored sessions have cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, get_args

import typer

from codex_py.cli.console import load_local_config, print_json, print_note, print_table
from codex_py.cli.typer_command import Json, Overrides, Profile, Since, read_since, run_command
from codex_py.core.model_access import PriceBook
from codex_py.errors import UsageError
from codex_py.protocol.usage import Spending, TokenUsage
from codex_py.services.session_costs import CostRow, Grouping, group_costs, read_requests


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py cost` with these arguments; give back the exit status."""
    return run_command(cost, arguments, name="cost")


def cost(
    since: Since = None,
    by: Annotated[str, typer.Option("--by", metavar="GROUP", help="day, model, repo or skill.")] = "day",
    overrides: Overrides = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Add up what the requests of the stored sessions have cost, those of agents and compactions included.

    Requests of sessions that wrote no cost down are priced by today's table, at the prices of their day. `?` stands
    for requests whose price is unknown; `[models."NAME"] input_usd` and `output_usd` say it. A turn with several
    skills counts in equal parts for each.
    """
    groupings: tuple[Grouping, ...] = get_args(Grouping)
    grouping: Grouping | None = next((word for word in groupings if word == by), None)
    if grouping is None:
        raise UsageError(
            f"`{by}` is not a value of `--by`", hint=f"allowed are {', '.join(f'`{g}`' for g in groupings)}"
        )
    start = read_since(since)
    local = load_local_config(overrides, profile)
    prices = PriceBook(local.home, local.loaded.config.models)

    def price(provider: str, model: str, usage: TokenUsage, when: datetime) -> float | None:
        found = prices.find_at(provider, model, when)
        return None if found is None else found.cost(usage)

    rows = group_costs(read_requests(local.home, since=start, price=price), grouping)
    total = _total(rows)
    if as_json:
        print_json(
            {
                "by": by,
                "since": start and start.isoformat(),
                "rows": [_record(row, by) for row in rows],
                "total": _record(total, ""),
            },
        )
        return 0
    if not rows:
        print_note("no stored session has made a request" + (" since then" if since else ""))
        return 0
    shown = [*rows, *([total] if len(rows) > 1 else [])]
    head = (by.upper(), "REQUESTS", "INPUT", "CACHED", "OUTPUT", "COST")
    print_table(head, [_cells(row) for row in shown])
    return 0


def _total(rows: Sequence[CostRow]) -> CostRow:
    columns: list[Any] = [sum(column) for column in zip(*(row[1:] for row in rows), strict=True)] or [0] * 6
    return CostRow("total", *columns)


def _spending(row: CostRow) -> Spending:
    return Spending(round(row.requests), 0, row.usd, 0 if row.unpriced < 1e-9 else max(1, round(row.unpriced)))


def _cells(row: CostRow) -> tuple[str, ...]:
    counts = (row.requests, row.input_tokens, row.cached_input_tokens, row.output_tokens)
    return (row.name, *(f"{round(count):,}" for count in counts), _spending(row).in_words())


def _record(row: CostRow, by: str) -> dict[str, Any]:
    spending = _spending(row)
    return {
        **({by: row.name} if by else {}),
        "requests": _number(row.requests),
        "input_tokens": round(row.input_tokens),
        "cached_input_tokens": round(row.cached_input_tokens),
        "output_tokens": round(row.output_tokens),
        "cost_usd": spending.known_usd,
        "known_cost_usd": round(row.usd, 12),
        "unpriced_requests": _number(row.unpriced),
    }


def _number(requests: float) -> float:
    """A number of requests, whole unless several skills share one."""
    rounded = round(float(requests), 6)
    return int(rounded) if rounded.is_integer() else rounded
