"""The secrets of a session, in memory only, and the environment its commands run with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import is_
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from codex_py import __version__
from codex_py.config.schema import Config
from codex_py.model.providers import Provider
from codex_py.process.env import tool_environment, withheld_by_value
from codex_py.protocol import events, questions
from codex_py.protocol.encoding import decode_json, encode_json
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.status import AgentState
from codex_py.protocol.value import Value
from codex_py.text.display import first_names
from codex_py.text.redact import MIN_TYPED_LENGTH, HeldBack, Redactor
from codex_py.text.sanitize import sanitize_line
from codex_py.tools.spec import ToolOutput

# What of an event the model, a command or a server has written.
_TEXTS: Final[Mapping[type[Value], tuple[str, ...]]] = {
    events.Warned: ("message",),
    events.TurnStarted: ("messages",),
    events.Steered: ("messages",),
    events.MessageDone: ("text",),
    events.ReasoningDone: ("text",),
    events.CommandStarted: ("command",),
    events.CommandInput: ("command", "text"),
    events.CommandFinished: ("command", "output"),
    events.PatchStarted: ("changes",),
    events.PatchFinished: ("changes", "output"),
    events.PatchRejected: ("reason",),
    events.ApprovalMissing: ("reason",),
    events.FileChange: ("diff",),
    events.McpCallStarted: ("arguments",),
    events.McpCallProgress: ("message",),
    events.McpCallFinished: ("arguments", "output", "result", "error"),
    events.ToolCallFinished: ("arguments", "output"),
    events.PlanUpdated: ("steps", "explanation"),
    events.PlanStep: ("text",),
    events.PlanProposed: ("text",),
    events.WebSearched: ("query", "action"),
    events.AgentCallStarted: ("prompt",),
    events.AgentCallFinished: ("agents", "prompt", "error"),
    events.AgentChanged: ("agent",),
    AgentState: ("task", "message", "activity"),
    events.QuestionRaised: ("question",),
    questions.ApprovalQuestion: ("command", "reason", "justification", "changes"),
    questions.PermissionsQuestion: ("reason",),
    questions.ChoiceQuestion: ("header", "question", "options", "form", "asks"),
    questions.ModelAsks: ("questions",),
    questions.ModelQuestion: ("id", "header", "question", "options"),
    questions.McpForm: ("message", "schema", "url"),
    questions.QuestionOption: ("description",),
    events.Retrying: ("message",),
    events.ContextCompacted: ("summary",),
    events.TurnCompleted: ("last_message",),
    events.TurnFailed: ("message",),
}

_V = TypeVar("_V", bound=Value)


class SecretStore:
    """The secrets of a session and of the agents it starts."""

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        self.values: dict[str, str | None] = {}


class Secrets:
    """Knows every secret of the session and takes it out of what leaves it."""

    def __init__(self, store: SecretStore) -> None:
        self.store: Final = store
        self._text = HeldBack()
        self._reasoning = HeldBack()
        self._commands: dict[str, HeldBack] = {}

    def add_values(self, values: Mapping[str, str | None], *, typed: bool = False) -> None:
        """Take values of variables, None for one that was left open; they count for the rest of the session.

        Of those the user `typed` shorter ones are kept secret too.
        """
        self.store.values |= values
        known = [value for value in values.values() if value]
        redactor = self.store.redactor
        self.store.redactor = redactor.with_typed(known) if typed else redactor.with_secrets(known)

    def add_secrets(self, values: Iterable[str]) -> None:
        """Keep these from leaving the session from now on."""
        self.store.redactor = self.store.redactor.with_secrets(values)

    def was_requested(self, name: str) -> bool:
        return name in self.store.values

    def has(self, name: str) -> bool:
        return bool(self.store.values.get(name))

    def is_hidden(self, name: str) -> bool:
        """Whether the value the user typed is long enough to be taken out of what is shown and stored."""
        return len((self.store.values.get(name) or "").strip()) >= MIN_TYPED_LENGTH

    @property
    def env(self) -> dict[str, str]:
        """The variables a tool's process gets."""
        return {name: value for name, value in self.store.values.items() if value}

    def redact(self, text: str) -> str:
        return self.store.redactor.redact(text)

    def redactor_with(self, more: Iterable[str]) -> Redactor:
        """A redactor that removes these secrets too."""
        return self.store.redactor.with_secrets(more)

    def redact_bytes(self, encoded: bytes) -> bytes:
        """The same for encoded JSON."""
        return self.store.redactor.redact_bytes(encoded)

    def without(self, output: ToolOutput) -> ToolOutput:
        text = self.redact(output.text)
        redacted_parts = tuple(
            {**part, "text": self.redact(part["text"])} if "text" in part else part for part in output.parts
        )
        same = text == output.text and redacted_parts == output.parts
        return output if same else output.replace(text=text, parts=redacted_parts)

    def without_in_item(self, item: ResponseItem) -> ResponseItem:
        """The item as it is stored and emitted; what the model is sent is left alone."""
        clean = self.redact_bytes(item.encoded)
        return item if clean is item.encoded else ResponseItem(clean)

    def without_in(self, event: events.Event) -> tuple[events.Event, ...]:
        """What listeners get in place of an event: a script that reads our events must not find a secret there.

        A command or the model can give one away. Of a text that is still coming, the end that may be the beginning of
        a secret is kept until more is known; then nothing is emitted, or later something before the event.
        """
        match event:
            case events.TextDelta(text):
                shown = self._text.feed(text, self.store.redactor)
                return (events.TextDelta(shown),) if shown else ()
            case events.ReasoningDelta(text):
                shown = self._reasoning.feed(text, self.store.redactor)
                return (events.ReasoningDelta(shown),) if shown else ()
            case events.CommandOutput(call_id, text):
                shown = self._commands.setdefault(call_id, HeldBack()).feed(text, self.store.redactor)
                return (events.CommandOutput(call_id, shown),) if shown else ()
            case events.CommandFinished(call_id):
                # The whole output follows, so that the end that was kept needs no event of its own.
                self._commands.pop(call_id, None)
                return (self._clean(event),)
            case events.ItemRecorded(item):
                # Without secrets already.
                return (*self._rest(item.type), event)
            case events.Retrying() | events.TurnCompleted() | events.TurnFailed() | events.TurnInterrupted():
                return (*self._rest("reasoning"), *self._rest("message"), self._clean(event))
            case _:
                return (self._clean(event),)

    def _rest(self, stream: str) -> tuple[events.Event, ...]:
        """Release the text that was held back until an item of this kind ended."""
        if stream == "message" and (rest := self._text.end(self.store.redactor)):
            return (events.TextDelta(rest),)
        if stream == "reasoning" and (rest := self._reasoning.end(self.store.redactor)):
            return (events.ReasoningDelta(rest),)
        return ()

    def _clean(self, value: _V) -> _V:
        """A value without the secrets in its texts; the same one when there are none."""
        changed = {
            name: clean
            for name in _TEXTS.get(type(value), ())
            if (clean := self._clean_text(text := getattr(value, name))) is not text
        }
        return value.replace(**changed) if changed else value

    def _clean_text(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Value):
            return self._clean(value)
        if isinstance(value, tuple):
            items = cast("tuple[Any, ...]", value)
            clean = tuple(map(self._clean_text, items))
            return items if all(map(is_, clean, items)) else clean
        if isinstance(value, dict):
            return decode_json(self.redact_bytes(encode_json(value)))
        return value


_MAX_NAMES: Final = 8


def key_names(config: Config, provider: Provider | None = None) -> frozenset[str]:
    """The variables that hold a provider's key: no command gets them."""
    configured = [record.env_key for record in config.model_providers.values()]
    own = provider.api_key_env if provider else None
    return frozenset(filter(None, ["OPENAI_API_KEY", "CODEX_API_KEY", own, *configured]))


def command_env(
    config: Config, env: Mapping[str, str], keys: frozenset[str], extra: Mapping[str, str], home: Path
) -> dict[str, str]:
    """The environment of commands: the user's variables that the settings let through, and `extra`."""
    extra = {**extra, "CODEX_VERSION": __version__}
    return tool_environment(env, config.shell_environment_policy, secrets=keys, extra=extra, home=home)


class WithheldCredentials(Value):
    """Variables kept from commands because of their values: these values, and one line for the user, "" for none."""

    values: tuple[str, ...] = ()
    notice: str = ""


def withheld_credentials(config: Config, env: Mapping[str, str], keys: frozenset[str]) -> WithheldCredentials:
    """Which variables are withheld because their values hold credentials; the notice names them and no value."""
    names = [name for name in withheld_by_value(env, config.shell_environment_policy) if name not in keys]
    if not names:
        return WithheldCredentials()
    shown = first_names([f"`{sanitize_line(name)}`" for name in names], _MAX_NAMES)
    verb = "holds a credential and is" if len(names) == 1 else "hold credentials and are"
    notice = (
        f"{shown} {verb} not passed to commands; to pass one on:"
        f' `shell_environment_policy.allow = ["{sanitize_line(names[0])}"]`'
    )
    return WithheldCredentials(tuple(env[name] for name in names), notice)
