"""How servers of the Chat Completions API differ: what each takes beside the fields that all of them take.

Where each difference is known from: the table in `docs/guides/providers.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

from codex_py.model.providers import HOSTED
from codex_py.protocol.value import Value

SchemaForm: TypeAlias = Literal["json_schema", "json_object", "prompt"]


class ChatQuirks(Value):
    """The features that a server supports. The defaults are for unknown servers.

    `limit` and `effort` are the fields for the limit on an answer and for how much to think, `effort` is `reasoning`
    for an object of that name. `reasoning` is the field in which a model gets its own reasoning back, empty for one
    that does not; `details` says that it gets `reasoning_details` back, `extras` the `extra_content` of its calls,
    `signed` whether with the signatures of the session.
    `parallel` says so when calls may be parallel, `cache_key` names the cache. `alternates` is for servers where
    a message of the user's must follow one of the model's. `id_length` is exact where `plain_ids` asks for letters and
    digits only. `echoes` says that the calls of an answer go back with its reasoning in the field that it came in.
    """

    usage: bool = True
    limit: str = "max_tokens"
    effort: str = "reasoning_effort"
    schema: SchemaForm = "json_schema"
    reasoning: str = ""
    echoes: bool = True
    details: bool = False
    extras: bool = False
    signed: bool = True
    parallel: bool = False
    cache_key: bool = False
    verbosity: bool = False
    alternates: bool = False
    id_length: int = 40
    plain_ids: bool = False
    streams: bool = True


UNKNOWN: Final = ChatQuirks()
_BY_HOST: Final[Mapping[str, ChatQuirks]] = MappingProxyType(
    {
        "api.openai.com": ChatQuirks(
            limit="max_completion_tokens", echoes=False, parallel=True, cache_key=True, verbosity=True
        ),
        "openrouter.ai": ChatQuirks(effort="reasoning", echoes=False, details=True, parallel=True),
        # It answers 400 to a call that comes back without the reasoning before it.
        "api.deepseek.com": ChatQuirks(schema="json_object", reasoning="reasoning_content"),
        # No unknown fields, ids of nine letters and digits, no user after a tool.
        "api.mistral.ai": ChatQuirks(
            usage=False, effort="", echoes=False, parallel=True, alternates=True, id_length=9, plain_ids=True
        ),
        # It does not bring a schema and tools together.
        "api.groq.com": ChatQuirks(limit="max_completion_tokens", schema="prompt", echoes=False, parallel=True),
        # Its calls come back with the signatures of their thoughts; a schema and tools are refused together.
        "generativelanguage.googleapis.com": ChatQuirks(schema="prompt", echoes=False, extras=True),
        "api.moonshot.ai": ChatQuirks(reasoning="reasoning_content", cache_key=True),
        "api.x.ai": ChatQuirks(echoes=False, parallel=True),
    }
)
_BY_PROVIDER: Final[Mapping[str, ChatQuirks]] = MappingProxyType(
    {
        # The templates of some models refuse two messages of the user's in a row; the server makes one call at a time
        # unless it is asked for more.
        "llamacpp": ChatQuirks(parallel=True, alternates=True),
        "vllm": ChatQuirks(alternates=True),
    }
)


def quirks_of(provider_id: str, base_url: str) -> ChatQuirks:
    """What is known about a server: by its host, else by the id of a built-in provider, wherever that is."""
    hosted = HOSTED.get(provider_id)
    addresses = (base_url, hosted.base_url) if hosted else (base_url,)
    hosts = [(urlsplit(address).hostname or "").lower() for address in addresses]
    found = [_BY_HOST[host] for host in hosts if host in _BY_HOST]
    return found[0] if found else _BY_PROVIDER.get(provider_id, UNKNOWN)


# What a refusal says, all of it in one message, and what is different from then on.
_LESSONS: Final[tuple[tuple[tuple[str, ...], dict[str, object]], ...]] = (
    (("stream_options",), {"usage": False}),
    (("parallel_tool_calls",), {"parallel": False}),
    (("reasoning_effort",), {"effort": ""}),
    (("prompt_cache_key",), {"cache_key": False}),
    (("verbosity",), {"verbosity": False}),
    (("response_format",), {"schema": "prompt"}),
    (("json_schema",), {"schema": "prompt"}),
    (("response mime type",), {"schema": "prompt"}),
    (("reasoning_content", "passed back"), {"reasoning": "reasoning_content"}),
    (("missing", "reasoning_content"), {"reasoning": "reasoning_content"}),
    (("missing", "thought", "signature"), {"extras": True}),
    (("thought", "signature"), {"signed": False, "details": False}),
    (("signature",), {"signed": False, "details": False}),
    (("reasoning_details",), {"details": False}),
    (("reasoning",), {"echoes": False}),
    (("thinking",), {"echoes": False}),
    (("roles must alternate",), {"alternates": True}),
    (("unexpected role 'user'",), {"alternates": True}),
    (("tool call id", "length of 9"), {"plain_ids": True, "id_length": 9}),
    (("stream", "tool"), {"streams": False}),
    (("streaming", "support"), {"streams": False}),
)
# What a template does not take comes as a 500 from some local servers.
_REFUSALS: Final = frozenset({400, 404, 422, 500, 501})


def learned(quirks: ChatQuirks, status: int, message: str) -> ChatQuirks | None:
    """What to do differently after a refusal; None when it says nothing that is not done already."""
    if status not in _REFUSALS:
        return None
    message = message.lower()
    for words, changes in _LESSONS:
        if all(word in message for word in words) and (changed := quirks.replace(**changes)) != quirks:
            return changed
    return None
