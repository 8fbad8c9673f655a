"""The tables about providers, models and what they may cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

from codex_py.config.keys import KeyPath
from codex_py.config.value_types import (
    ConfigRecord,
    FilePath,
    Flag,
    Integer,
    ListOf,
    MapOf,
    Reading,
    RecordSection,
    Seconds,
    Shape,
    Text,
    Url,
    ValueType,
    WordChoice,
    WrongValue,
    setting,
)
from codex_py.protocol.usage import CompactionWay, WireApi

REASONING_EFFORT = WordChoice("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra", "persistent")
REASONING_SUMMARY = WordChoice("auto", "concise", "detailed", "none")
VERBOSITY = WordChoice("low", "medium", "high")
_RETRIES = Integer(0, 100)

PROVIDER_AUTH = Shape(
    {
        "command": Text(),
        "file": FilePath(),
        "args": ListOf(Text()),
        "cwd": FilePath(),
        "timeout_ms": Integer(1),
        "refresh_interval_ms": Integer(0),
    }
)


class Amount(ValueType):
    """A number, such as of dollars; `above` 0 where nothing makes no sense."""

    def __init__(self, *, above: bool = False) -> None:
        self._above = above

    def check(self, value: object, path: KeyPath, reading: Reading) -> float:
        least = "above 0" if self._above else "from 0 up"
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise WrongValue(path, value, f"it must be a number {least}")
        if value < 0 or (self._above and value == 0):
            raise WrongValue(path, value, f"it must be a number {least}")
        return float(value)


class ProviderConfig(ConfigRecord):
    """`[model_providers.<id>]`: a Responses server."""

    name: str | None = setting(Text(), "the name shown to people", default=None, sample="Example")
    base_url: str | None = setting(
        Url(), "the address before `/responses`", default=None, sample="https://models.example.com/v1"
    )
    env_key: str | None = setting(
        Text(), "the environment variable with the API key", default=None, sample="EXAMPLE_API_KEY"
    )
    env_key_instructions: str | None = setting(
        Text(lines=True),
        "what to tell a user who has not set that variable",
        default=None,
        sample="ask the platform team",
    )
    experimental_bearer_token: str | None = setting(
        Text(secret=True), "the key itself; a variable is the safer place", default=None, sample="…"
    )
    auth: Mapping[str, Any] | None = setting(
        PROVIDER_AUTH,
        "a command that prints the bearer token, or a `file` that another program keeps up to date",
        default=None,
        sample={
            "command": "print-token",
            "args": ["--fresh"],
            "cwd": "~",
            "timeout_ms": 5000,
            "refresh_interval_ms": 300000,
        },
    )
    aws: Mapping[str, Any] | None = setting(
        Shape({"profile": Text(), "region": Text()}),
        "the AWS profile to sign with",
        default=None,
        sample={"profile": "work", "region": "us-east-1"},
    )
    wire_api: WireApi | None = setting(
        WordChoice(*get_args(WireApi)), "the API the server speaks", default=None, sample="responses"
    )
    query_params: Mapping[str, str] = setting(
        MapOf(Text(), secret_by_name=True), "added to every address", default={}, sample={"api-version": "2026-01-01"}
    )
    http_headers: Mapping[str, str] = setting(
        MapOf(Text(secret=True)), "headers sent as they are", default={}, sample={"x-team": "core"}
    )
    env_http_headers: Mapping[str, str] = setting(
        MapOf(Text()),
        "headers whose value is in a variable; left out when it is empty",
        default={},
        sample={"x-org": "ORG_ID"},
    )
    request_max_retries: int | None = setting(
        _RETRIES, "retries of a request that got no answer", default=None, sample=4
    )
    stream_max_retries: int | None = setting(_RETRIES, "retries after an answer broke off", default=None, sample=5)
    stream_idle_timeout_ms: int | None = setting(
        Integer(1), "how long a server may say nothing, in milliseconds", default=None, sample=300000
    )
    connect_retry_seconds: float | None = setting(
        Seconds(), "how long a refused connection is tried again", default=None, sample=60.0
    )
    websocket_connect_timeout_ms: int | None = setting(
        Integer(1), "accepted for other programs; there is no WebSocket here", default=None, sample=15000
    )
    compaction: CompactionWay | None = setting(
        WordChoice("local", "remote", "in-band"),
        "how a long history is compacted: by a summary of the model, by the server's `/responses/compact`, or by an"
        " item the server answers with; the last for OpenAI and Azure, the first for others",
        default=None,
        sample="local",
    )
    edit_tool: Literal["patch", "edit"] | None = setting(
        WordChoice("patch", "edit"), "the tools its models change files with; see `models`", default=None, sample="edit"
    )
    requires_openai_auth: bool = setting(Flag(), "send the OpenAI login or key of this machine", default=False)
    supports_websockets: bool = setting(
        Flag(), "accepted for other programs; there is no WebSocket here", default=False
    )


class ModelEntry(ConfigRecord):
    """`[models.<name>]`: what is known about a model, for those that are not in the catalogue."""

    context_window: int | None = setting(Integer(1), "tokens the model can read", default=None, sample=128000)
    auto_compact_token_limit: int | None = setting(
        Integer(1), "compact above this many tokens", default=None, sample=100000
    )
    reasoning_effort: str | None = setting(
        REASONING_EFFORT, "the effort when none is chosen", default=None, sample="medium"
    )
    reasoning_summary: str | None = setting(
        REASONING_SUMMARY, "the summary when none is chosen", default=None, sample="auto"
    )
    verbosity: str | None = setting(VERBOSITY, "the verbosity when none is chosen", default=None, sample="low")
    apply_patch: Literal["freeform", "function"] | None = setting(
        WordChoice("freeform", "function"), "the form of the patch tool", default=None, sample="function"
    )
    edit_tool: Literal["patch", "edit"] | None = setting(
        WordChoice("patch", "edit"),
        "the tools it changes files with: patches, or plain edits and whole files for models that fail at patches",
        default=None,
        sample="edit",
    )
    parallel_tool_calls: bool | None = setting(
        Flag(), "whether it may call several tools at once", default=None, sample=True
    )
    images: bool | None = setting(Flag(), "whether it can see images", default=None, sample=True)
    tool_output_token_limit: int | None = setting(Integer(1), "tokens of one tool output", default=None, sample=10000)
    max_output_tokens: int | None = setting(
        Integer(1),
        "tokens of one answer, reasoning included; 32768 for models that are unknown; not sent to OpenAI or Azure",
        default=None,
        sample=32768,
    )
    input_usd: float | None = setting(
        Amount(), "its price: US dollars for a million tokens of input", default=None, sample=1.25
    )
    cached_input_usd: float | None = setting(
        Amount(), "of input out of the provider's cache; as `input_usd`", default=None, sample=0.125
    )
    cache_write_usd: float | None = setting(
        Amount(), "of input written to the cache; as `input_usd`", default=None, sample=1.5
    )
    output_usd: float | None = setting(Amount(), "of output, reasoning included", default=None, sample=10.0)


class DayBudget(ConfigRecord):
    """`[budget.day]`: the limits for one day, agents included. A limit that is not set does not apply."""

    max_usd: float | None = setting(Amount(above=True), "US dollars", default=None, sample=1.5)
    max_tokens: int | None = setting(Integer(1), "tokens of input and output", default=None, sample=2000000)
    max_requests: int | None = setting(Integer(1), "requests to the model, retries included", default=None, sample=200)


class TimedBudget(ConfigRecord):
    """`[budget.turn]` and `[budget.session]`: the same, and the time it may take."""

    max_usd: float | None = setting(Amount(above=True), "US dollars", default=None, sample=1.5)
    max_tokens: int | None = setting(Integer(1), "tokens of input and output", default=None, sample=2000000)
    max_requests: int | None = setting(Integer(1), "requests to the model, retries included", default=None, sample=200)
    max_seconds: float | None = setting(Amount(above=True), "seconds", default=None, sample=1800.0)


class BudgetConfig(ConfigRecord):
    """`[budget]`."""

    turn: TimedBudget = setting(RecordSection(TimedBudget), "the limits for one turn", default=TimedBudget())
    session: TimedBudget = setting(
        RecordSection(TimedBudget),
        "the limits for a session, its earlier runs included; the seconds are those of one run",
        default=TimedBudget(),
    )
    day: DayBudget = setting(
        RecordSection(DayBudget),
        "the limits per day for all sessions of this machine that have such a budget",
        default=DayBudget(),
    )
