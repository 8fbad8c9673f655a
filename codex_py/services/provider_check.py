"""Tests with one tiny request what works with a provider: streaming, tools, parallel calls, reasoning, pictures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.auth.find_credentials import find_credentials
from codex_py.config.schema import Config
from codex_py.core.model_setup import choose_model, configured_provider, connect_model, login_rules, read_own_catalog
from codex_py.errors import ModelError
from codex_py.model.catalog import ModelFacts, facts_for
from codex_py.model.client import (
    ArgumentsDelta,
    Completed,
    ItemDone,
    ModelClient,
    Prompt,
    StreamReasoningDelta,
    StreamTextDelta,
    TurnState,
)
from codex_py.model.failures import IncompleteAnswer
from codex_py.model.providers import HOSTED, LOCAL_PROVIDERS, Provider
from codex_py.model.repetition import REPETITION
from codex_py.model.wires import open_wire
from codex_py.protocol.encoding import as_object, decode_json, encode_json, uuid7
from codex_py.protocol.items import ToolCall, message_of_content
from codex_py.protocol.usage import TokenUsage
from codex_py.text.address import shown_url

_SECONDS: Final = 120.0
# How long the server may send nothing of an answer.
_SILENCE: Final = 20.0
_MAX_TOKENS: Final = 8192
_INSTRUCTIONS: Final = "This checks a connection. Do what the user asks, and nothing else."
_TASK: Final = (
    "Call the tool `report` twice in this one answer, in parallel: once with the check `first` and once with the check"
    " `second`. "
)
_ABOUT_PICTURE: Final = "In both calls `colour` is the colour of the picture, one English word in lower case."
_NO_PICTURE: Final = "In both calls `colour` is `none`."
# A square of 64 by 64 red points.
_PICTURE: Final = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAATUlEQVR42u3PQQkAAAgAseufzkhG8C0MVmBNvZaAgICAgI"
    "CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAwGUBknEAxDoOs3oAAAAASUVORK5CYII="
)
_COLOUR: Final = "red"
_NOT_SHOWN: Final = "not shown by the model"
_TOOL: Final = {
    "type": "function",
    "name": "report",
    "description": "Reports the result of a check.",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {"check": {"type": "string"}, "colour": {"type": "string"}},
        "required": ["check", "colour"],
        "additionalProperties": False,
    },
}


class Capability(NamedTuple):
    """One line of the report. `works` is None for what the model did not show, or need not be there; False is a fault
    of the server or the settings.
    """

    name: str
    text: str
    works: bool | None


class _Answer:
    """The answer to the request."""

    def __init__(self) -> None:
        self.pieces = 0
        self.thinking = False
        self.calls: list[ToolCall] = []
        self.usage: TokenUsage | None = None
        self.seconds = 0.0
        self.early_end = ""
        self.refused_picture = ""

    def colours(self) -> list[str]:
        """The colours in the well-formed calls of the tool."""
        return [colour for call in self.calls if (colour := _colour_of(call)) is not None]


async def check_provider(
    config: Config, name: str, *, model: str | None, env: Mapping[str, str], home: Path, patience: float = _SILENCE
) -> list[Capability]:
    """Ask the provider `name` once; its client asks once more without a picture if it refuses that.

    A server that sends nothing of an answer for `patience` seconds is a fault. Raises `UserError` when there is
    nothing to ask it with.
    """
    provider = configured_provider(config, env, name)
    rules = login_rules(config)
    credentials = find_credentials(provider, env=env, home=home, rules=rules)
    chosen = model or _model_of(config, provider)
    facts = facts_for(chosen, overrides=config.models, catalog=read_own_catalog(config))
    client = connect_model(provider, credentials, rules=rules, env=env, home=home, originator="codex_doctor")
    url = shown_url(credentials.base_url or provider.base_url)
    where = f"`{chosen}` of `{name}` at {url}, by the {open_wire(provider).api}"
    try:
        return [*await _ask(client, _prompt(config, chosen, facts), facts, where, patience)]
    finally:
        await client.aclose()


def _model_of(config: Config, provider: Provider) -> str:
    """The model that a session would use there. The configured model is not one of another provider that is built in.

    Raises `ConfigError` where a model must be named.
    """
    is_built_in = provider.id == "openai" or provider.id in HOSTED or provider.id in LOCAL_PROVIDERS
    own = config if config.model_provider == provider.id or not is_built_in else config.replace(model=None)
    return choose_model(own, provider)


def _prompt(config: Config, model: str, facts: ModelFacts) -> Prompt:
    return Prompt(
        model=model,
        instructions=_INSTRUCTIONS,
        input=[_message(picture=facts.images)],
        tools=encode_json([_TOOL]),
        thread_id=uuid7(),
        turn_id=uuid7(),
        effort=config.model_reasoning_effort or facts.effort,
        summary=config.model_reasoning_summary or facts.summary,
        max_output_tokens=min(facts.max_output_tokens or _MAX_TOKENS, _MAX_TOKENS),
    )


def _message(*, picture: bool) -> bytes:
    text = {"type": "input_text", "text": _TASK + (_ABOUT_PICTURE if picture else _NO_PICTURE)}
    pictures = [{"type": "input_image", "image_url": _PICTURE}] if picture else []
    return message_of_content("user", [*pictures, text]).encoded


async def _ask(client: ModelClient, prompt: Prompt, facts: ModelFacts, where: str, patience: float) -> list[Capability]:
    try:
        answer = await _answer_to(client, prompt, patience)
    except ModelError as error:
        return [Capability("answer", f"{where}: {error}", False)]
    ended = f"; {answer.early_end}" if answer.early_end else ""
    refusal = answer.refused_picture if facts.images else "the catalogue says that the model takes none"
    return [Capability("answer", f"{where}, in {answer.seconds:.1f} s{ended}", True), *_findings(answer, refusal)]


async def _answer_to(client: ModelClient, prompt: Prompt, patience: float) -> _Answer:
    """The answer, also one that a model has not brought to an end: its server works all the same."""
    answer, began, clock = _Answer(), time.monotonic(), asyncio.get_running_loop().time
    end = clock() + _SECONDS

    def warn(message: str) -> None:
        answer.refused_picture = message

    client.watch(add_secrets=lambda _: None, warn=warn)
    try:
        async with (
            asyncio.timeout(patience) as limit,
            aclosing(client.stream(prompt, turn_state=TurnState())) as events,
        ):
            async for event in events:
                limit.reschedule(min(clock() + patience, end))
                match event:
                    case StreamTextDelta() | ArgumentsDelta():
                        answer.pieces += 1
                    case StreamReasoningDelta():
                        answer.pieces += 1
                        answer.thinking = True
                    case ItemDone(item):
                        view = item.view()
                        answer.thinking = answer.thinking or item.type == "reasoning"
                        answer.calls += [view] if isinstance(view, ToolCall) else []
                    case Completed(usage):
                        answer.usage = usage
                    case _:
                        pass
    except TimeoutError as error:
        if clock() < end:
            silence = f"the server accepts the request and sends nothing more of an answer for {patience:g} s"
            raise ModelError(silence, retryable=True, streaming=True) from error
        answer.early_end = f"the model went on for more than {_SECONDS:g} s and was stopped"
    except ModelError as error:
        if not isinstance(error, IncompleteAnswer) and error.code != REPETITION:
            raise
        answer.early_end = str(error)
        answer.usage = error.usage if isinstance(error, IncompleteAnswer) else None
    answer.seconds = time.monotonic() - began
    return answer


def _findings(answer: _Answer, refusal: str) -> list[Capability]:
    colours, usage = answer.colours(), answer.usage
    thinks = answer.thinking or (usage is not None and usage.reasoning_output_tokens > 0)
    return [
        Capability("streaming", f"{answer.pieces} pieces", True)
        if answer.pieces > 1
        else Capability("streaming", "the answer came in one piece", None),
        _about_tools(answer, colours),
        Capability("parallel", f"{len(colours)} calls in one answer", True)
        if len(colours) > 1
        else Capability("parallel", f"{_NOT_SHOWN}: two calls were asked for, {len(colours)} came", None),
        Capability("reasoning", "the model thinks", True) if thinks else Capability("reasoning", _NOT_SHOWN, None),
        _about_picture(colours, refusal),
        _about_cache(usage),
    ]


def _about_tools(answer: _Answer, colours: list[str]) -> Capability:
    if colours:
        return Capability("tools", "the tool was called as its schema says", True)
    if answer.calls:
        wrong = answer.calls[0]
        call = f"`{wrong.name}` with `{wrong.arguments[:80]}`"
        return Capability("tools", f"{_NOT_SHOWN}: its call does not fit the schema of the tool: {call}", None)
    return Capability("tools", f"{_NOT_SHOWN}: it called no tool, without which a session can only talk", None)


def _about_picture(colours: list[str], refusal: str) -> Capability:
    if refusal:
        return Capability("pictures", refusal, None)
    if any(_COLOUR in colour.lower() for colour in colours):
        return Capability("pictures", "the model saw what is in one", True)
    seen = f"it saw `{colours[0][:40]}` in one, not `{_COLOUR}`" if colours else "the server took one"
    return Capability("pictures", f"{_NOT_SHOWN}: {seen}", None)


def _about_cache(usage: TokenUsage | None) -> Capability:
    if usage is None:
        return Capability("cache", "the server does not count tokens", None)
    if usage.cached_input_tokens or usage.cache_write_input_tokens:
        return Capability("cache", usage.in_words(), True)
    return Capability("cache", f"{usage.in_words()}: too short a request for most caches", None)


def _colour_of(call: ToolCall) -> str | None:
    try:
        fields: dict[str, Any] = as_object(decode_json(call.arguments))
    except ValueError:
        return None
    colour = fields.get("colour")
    return colour if call.name == _TOOL["name"] and isinstance(colour, str) and "check" in fields else None
