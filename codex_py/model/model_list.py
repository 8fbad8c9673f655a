"""Which models a provider offers, as it says itself, and which one of a local server is asked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from codex_py.errors import ModelError, UserError
from codex_py.model.credentials import Credentials, Renewal
from codex_py.model.error_bodies import on_one_line
from codex_py.model.failures import MAX_ERROR_BODY, Server, http_failure
from codex_py.model.json_request import JsonAnswer, JsonRequest, fetch_json
from codex_py.model.providers import Provider, endpoint_url
from codex_py.model.wires import open_wire
from codex_py.protocol.encoding import as_list, as_object, decode_or_none
from codex_py.protocol.value import Value
from codex_py.text.address import shown_url
from codex_py.text.display import first_names
from codex_py.text.redact import Redactor

# The back end of ChatGPT logins shows a client the models that its generation knows.
_CLIENT_GENERATION: Final = "0.169.0"
_MAX_MODELS: Final = 10_000
_PAGE: Final = "1000"
# The names under which servers tell how much a model reads, the ones that hold for this very server first.
_WINDOW_KEYS: Final = (
    *("context_window", "n_ctx", "loaded_context_length", "max_model_len", "context_length", "max_context_length"),
    *("max_input_tokens", "n_ctx_train"),
)


class OfferedModel(Value):
    """A model of a provider. `context_window` is in tokens; None and empty where the server does not say."""

    id: str
    context_window: int | None = None
    description: str = ""


class _Refused(ModelError):
    """A 401."""


async def list_models(
    provider: Provider, credentials: Credentials, *, renewal: Renewal | None = None, seconds: float = 30.0
) -> list[OfferedModel]:
    """Ask a provider for its models, in its own order. Raises `ModelError`, whose text shows no secret.

    `renewal` renews the credentials when that is due, and when they are refused.
    """
    if renewal is not None and renewal.is_due(credentials):
        renewed = await renewal.renew(credentials, refused=False)
        credentials = renewed.credentials if renewed else credentials
    while True:
        try:
            return await _list(provider, credentials, seconds)
        except _Refused:
            renewed = await renewal.renew(credentials, refused=True) if renewal is not None else None
            if renewed is None:
                raise
            credentials = renewed.credentials
            renewal = None if renewed.is_last else renewal


async def _list(provider: Provider, credentials: Credentials, seconds: float) -> list[OfferedModel]:
    try:
        models: list[OfferedModel] | None = None
        if provider.id == "ollama":
            # Tells more than the list in the shape of OpenAI.
            models = await _ask(_ollama_url(provider.base_url), provider, credentials, seconds, optional=True)
        if not models:
            base_url = credentials.base_url or provider.base_url
            query = dict(provider.query_params)
            if provider.wire_api == "messages":
                # Else the list comes in pages of twenty.
                query["limit"] = _PAGE
            if credentials.is_chatgpt:
                query["client_version"] = _CLIENT_GENERATION
            models = await _ask(endpoint_url(base_url, "models", query), provider, credentials, seconds)
        return models or []
    except ModelError as error:
        shown = Redactor((credentials.token or "", *credentials.secrets)).redact(str(error))
        raise type(error)(shown, retryable=error.retryable, unreachable=error.unreachable) from error.__cause__


async def _ask(
    url: str, provider: Provider, credentials: Credentials, seconds: float, *, optional: bool = False
) -> list[OfferedModel] | None:
    headers = dict(credentials.headers)
    wire = open_wire(provider)
    if credentials.token:
        headers |= wire.auth_headers(credentials.token)
    answer = await fetch_json(JsonRequest(url, headers=headers, seconds=seconds), ca_file=provider.ca_file)
    if answer.is_success and (optional or _is_list(answer)):
        return list(read_models(answer))
    if optional:
        return None
    if answer.is_success:
        raise ModelError(f"`{shown_url(url)}` answered with something else than a list of models", retryable=False)
    failure = http_failure(
        answer.status,
        answer.headers,
        answer.raw[:MAX_ERROR_BODY],
        server=Server(shown_url(url), api=wire.api, on_401=credentials.advice),
        now=time.time(),
    )
    raise _Refused(str(failure), retryable=False) if answer.status == 401 else failure


def read_models(answer: JsonAnswer) -> Iterator[OfferedModel]:
    """The models in an answer: `data` of OpenAI and most others, `models` of ChatGPT and Ollama, or a bare array."""
    body = answer.body
    entries = (
        as_list(body.get("data"))
        or as_list(body.get("models"))
        or as_list(decode_or_none(answer.raw.decode("utf-8", "replace")))
    )
    seen: set[str] = set()
    for entry in entries[:_MAX_MODELS]:
        model = _read_model(as_object(entry))
        if model is not None and model.id not in seen:
            seen.add(model.id)
            yield model


def _is_list(answer: JsonAnswer) -> bool:
    """Whether an answer is about models at all, and no page of some other program."""
    return "data" in answer.body or "models" in answer.body or answer.raw.lstrip().startswith(b"[")


def _read_model(entry: Mapping[str, Any]) -> OfferedModel | None:
    name = next((value for key in ("slug", "id", "model", "name") if isinstance(value := entry.get(key), str)), "")
    name = on_one_line(name, 200)
    if not name or entry.get("visibility") == "hide":
        return None
    return OfferedModel(name, _window(entry), on_one_line(_description(entry), 200))


def _window(entry: Mapping[str, Any]) -> int | None:
    tables = (entry, as_object(entry.get("meta")))
    for key in _WINDOW_KEYS:
        for table in tables:
            value = table.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def _description(entry: Mapping[str, Any]) -> str:
    for key in ("description", "display_name"):
        if isinstance(text := entry.get(key), str) and text.strip():
            return text
    details, size = as_object(entry.get("details")), entry.get("size")
    words = [text for key in ("parameter_size", "quantization_level") if isinstance(text := details.get(key), str)]
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        words.append(f"{size / 1e9:.1f} GB")
    return ", ".join(words)


def _ollama_url(base_url: str) -> str:
    """Its own list of models is beside `/v1`, not below it."""
    scheme, netloc, path, _, _ = urlsplit(base_url)
    return urlunsplit((scheme, netloc, path.removesuffix("/v1") + "/api/tags", "", ""))


_PROBE_SECONDS: Final = 5.0
_MAX_SHOWN: Final = 12
_START: Final = {
    "ollama": "start it with `ollama serve`, or see https://ollama.com",
    "lmstudio": "start its server with `lms server start`, or see https://lmstudio.ai",
}
_FETCH: Final = {"ollama": "ollama pull", "lmstudio": "lms get"}


class LocalChoice(Value):
    """The model to ask; `notice` tells a user who named none, `context_window` is what the server says."""

    model: str
    notice: str | None = None
    context_window: int | None = None


async def choose_local_model(provider: Provider, *, requested: str, default: str, insist: bool) -> LocalChoice:
    """The model that is `requested`; when the user does not `insist` on it, also the default one or another.

    Raises `UserError` when no server answers or it does not have the model. A server that does not list its models is
    taken at its word later.
    """
    try:
        offered = await list_models(provider, Credentials(), seconds=_PROBE_SECONDS)
    except ModelError as error:
        if error.unreachable:
            raise UserError(
                f"no {provider.name} server answers at `{shown_url(provider.base_url)}`",
                hint=f"{_START.get(provider.id, 'start it')}; `CODEX_OSS_BASE_URL` names another address",
            ) from error
        return LocalChoice(requested)
    if found := _find(offered, requested):
        return LocalChoice(requested, context_window=found.context_window)
    if not insist:
        other = _find(offered, default) or next((model for model in offered if "embed" not in model.id.lower()), None)
        if other is not None:
            notice = f"{provider.name} does not have `{requested}`: `{other.id}` is asked; choose another one with -m"
            return LocalChoice(other.id, notice, other.context_window)
    raise _missing(provider, requested, offered)


def _find(offered: Sequence[OfferedModel], name: str) -> OfferedModel | None:
    # Ollama calls the usual variant of a model `latest`, and lets one leave that out.
    spellings = {name, f"{name}:latest"}
    return next((model for model in offered if model.id in spellings), None)


def _missing(provider: Provider, name: str, offered: Sequence[OfferedModel]) -> UserError:
    fetch = f"`{_FETCH[provider.id]} {name}` fetches it" if provider.id in _FETCH else "choose one with -m"
    if not offered:
        return UserError(f"{provider.name} has no model at all", hint=fetch)
    shown = first_names([f"`{model.id}`" for model in offered], _MAX_SHOWN)
    return UserError(f"{provider.name} does not have the model `{name}`: it has {shown}", hint=fetch)
