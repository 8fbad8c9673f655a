"""Which server a model request goes to, and how it is treated: the built-in providers and the user's own."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from codex_py.config.model_sections import ProviderConfig
from codex_py.errors import ConfigError
from codex_py.model.retry import MAX_RETRIES
from codex_py.programs import ProgramFinder
from codex_py.protocol.usage import CompactionWay, WireApi
from codex_py.protocol.value import Value
from codex_py.text.address import is_loopback, is_plain_http
from codex_py.text.nearest import did_you_mean

OPENAI_URL: Final = "https://api.openai.com/v1"
DEFAULT_RETRIES: Final = 5
NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})
# A server on this machine that is not there now was not started: nothing is gained by waiting long.
_LOCAL_CONNECT_SECONDS: Final = 2.0
# One at an address of the user's may be starting again.
_LOOPBACK_CONNECT_SECONDS: Final = 5.0
_CONNECT_SECONDS: Final = 60.0
_LOCAL_PORTS: Final = {"ollama": 11434, "lmstudio": 1234}
_LOCAL_NAMES: Final = {"ollama": "Ollama", "lmstudio": "LM Studio"}
_BUILT_IN: Final = ("openai", *_LOCAL_PORTS)
_AZURE_HOSTS: Final = (".openai.azure.", ".cognitiveservices.azure.", ".aoai.azure.", ".azure-api.", ".azurefd.")


class HostedProvider(Value):
    """A provider with one public address. `env_key` is the variable of its key, empty for one without
    keys, `env_token` that of a bearer token, which is used if there is no key. `model` is the default; if it is
    empty, the user must choose one. `local` is for a server on this machine.
    """

    name: str
    base_url: str
    wire_api: WireApi
    env_key: str = ""
    env_token: str = ""
    model: str = ""
    local: bool = False


# How those of the Chat Completions API differ is in `chat_quirks.py`. `HOSTED_PROVIDERS` in `config/schema.py` lists
# the names too.
HOSTED: Final[Mapping[str, HostedProvider]] = MappingProxyType(
    {
        "anthropic": HostedProvider(
            "Anthropic",
            "https://api.anthropic.com/v1",
            "messages",
            "ANTHROPIC_API_KEY",
            env_token="ANTHROPIC_AUTH_TOKEN",
            model="claude-sonnet-5-5",
        ),
        "openrouter": HostedProvider("OpenRouter", "https://openrouter.ai/api/v1", "chat", "OPENROUTER_API_KEY"),
        "deepseek": HostedProvider("DeepSeek", "https://api.deepseek.com/v1", "chat", "DEEPSEEK_API_KEY"),
        "mistral": HostedProvider("Mistral", "https://api.mistral.ai/v1", "chat", "MISTRAL_API_KEY"),
        "groq": HostedProvider("Groq", "https://api.groq.com/openai/v1", "chat", "GROQ_API_KEY"),
        "gemini": HostedProvider(
            "Gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "chat", "GEMINI_API_KEY"
        ),
        "vllm": HostedProvider("vLLM", "http://localhost:8000/v1", "chat", local=True),
        "llamacpp": HostedProvider("llama.cpp", "http://localhost:8080/v1", "chat", local=True),
    }
)


# Those that run models on this machine, which cost nothing that anybody knows.
LOCAL_PROVIDERS: Final = frozenset((*_LOCAL_PORTS, *(name for name, hosted in HOSTED.items() if hosted.local)))


class Provider(Value):
    """A server with models. `base_url` has no trailing slash.

    `env_http_headers` names the variable of each header. `idle_timeout` is seconds of silence, before an answer and
    within it; `connect_retry_seconds` bounds how long a server that cannot be reached is tried, None for ever.
    `needs_key` asks for the OpenAI key or login of this machine; `is_openai` says that OpenAI itself answers, also at
    Azure; `local` says that it runs a model on this machine, which reads slowly. The token of `auth_command` is asked
    for again every `auth_refresh_interval` seconds, 0 for never unless it is refused; `auth_programs`
    finds the command, and where it is None, what suits the current directory does. `auth_file` has a token that
    another program renews. `compaction` is how the server compacts a history, if it can.
    """

    secret_fields: ClassVar[frozenset[str]] = frozenset({"bearer_token", "query_params", "http_headers"})

    id: str
    name: str
    base_url: str
    wire_api: WireApi = "responses"
    api_key_env: str | None = None
    env_key_instructions: str | None = None
    bearer_token: str | None = None
    auth_command: tuple[str, ...] = ()
    auth_file: Path | None = None
    auth_timeout: float = 5.0
    auth_cwd: Path | None = None
    auth_programs: ProgramFinder | None = None
    auth_refresh_interval: float = 300.0
    query_params: Mapping[str, str] = NO_NAMES
    http_headers: Mapping[str, str] = NO_NAMES
    env_http_headers: Mapping[str, str] = NO_NAMES
    request_max_retries: int = DEFAULT_RETRIES
    stream_max_retries: int = DEFAULT_RETRIES
    idle_timeout: float = 300.0
    connect_retry_seconds: float | None = _CONNECT_SECONDS
    needs_key: bool = False
    is_openai: bool = False
    local: bool = False
    ca_file: str | None = None
    compaction: CompactionWay = "local"


def resolve_provider(
    provider_id: str,
    *,
    configured: Mapping[str, ProviderConfig],
    env: Mapping[str, str],
    openai_base_url: str | None = None,
) -> Provider:
    """The provider of a name: `openai`, `ollama`, `lmstudio`, a hosted one, or one of `configured`.

    For `openai` the address is `openai_base_url`, else `OPENAI_BASE_URL`; for the local ones `CODEX_OSS_BASE_URL`, else
    the port in `CODEX_OSS_PORT`. Raises `ConfigError` for an unknown name and for a setting that cannot be used.
    """
    ca_file = _variable(env, "CODEX_CA_CERTIFICATE") or _variable(env, "SSL_CERT_FILE")
    if provider_id == "openai":
        record = configured.get(provider_id)
        provider = _openai(env, openai_base_url, ca_file)
        return provider.replace(compaction=record.compaction) if record and record.compaction else provider
    if provider_id in _LOCAL_PORTS:
        url, source = _local_url(provider_id, env)
        name = _LOCAL_NAMES[provider_id]
        return Provider(
            provider_id,
            name,
            checked_url(url, source),
            local=True,
            connect_retry_seconds=_LOCAL_CONNECT_SECONDS,
            ca_file=ca_file,
        )
    record, hosted = configured.get(provider_id), HOSTED.get(provider_id)
    if hosted is not None:
        return _hosted(provider_id, hosted, record, env, ca_file)
    if record is None:
        names = tuple(dict.fromkeys((*_BUILT_IN, *HOSTED, *sorted(configured))))
        raise ConfigError(
            f"unknown provider `{provider_id}`",
            hint=did_you_mean(provider_id, names) or f"known are {', '.join(f'`{name}`' for name in names)}",
        )
    return _custom(provider_id, record, ca_file)


def loopback_provider(provider_id: str, name: str, base_url: str) -> Provider:
    """A server this program has started itself; one that is gone does not come back, so no waiting for it."""
    return Provider(provider_id, name, base_url, local=True, connect_retry_seconds=0.0)


def endpoint_url(base_url: str, name: str, query_params: Mapping[str, str]) -> str:
    """An address below the base, then the base's own query and `query_params`."""
    scheme, netloc, path, query, _ = urlsplit(base_url)
    pairs = [*parse_qsl(query, keep_blank_values=True), *query_params.items()]
    return urlunsplit((scheme, netloc, f"{path.rstrip('/')}/{name}", urlencode(pairs), ""))


def checked_url(url: str, source: str) -> str:
    """An http or https address without a trailing slash; raises `ConfigError` naming where it comes from."""
    url = url.strip()
    try:
        address = urlsplit(url)
        usable = address.scheme in ("http", "https") and address.hostname and (address.port is None or address.port > 0)
        usable = usable and _may_be_host(address.hostname or "")
    except ValueError:
        usable = False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        # The address itself may hold a password.
        raise ConfigError(
            f"cannot use the address in {source}: not an http or https URL",
            hint="it looks like `https://models.example.com/v1`",
        )
    return url.rstrip("/")


def _may_be_host(host: str) -> bool:
    """Raises `ValueError` for what looks like an address or a name with other letters, and is none."""
    if host.count(".") == 3 and host.replace(".", "").isdigit():
        ipaddress.IPv4Address(host)
    if "xn--" in host:
        host.encode().decode("idna")
    return True


def _openai(env: Mapping[str, str], configured_url: str | None, ca_file: str | None) -> Provider:
    from_env = _variable(env, "OPENAI_BASE_URL")
    if configured_url:
        url = checked_url(configured_url, "`openai_base_url`")
    elif from_env:
        url = checked_url(from_env, "`OPENAI_BASE_URL`")
        if is_plain_http(url):
            raise ConfigError(
                f"`OPENAI_BASE_URL` would send the API key to `{urlsplit(url).hostname}` without encryption",
                hint="use https, or say so on purpose with `openai_base_url` in config.toml",
            )
    else:
        url = OPENAI_URL
    headers = {"OpenAI-Organization": "OPENAI_ORGANIZATION", "OpenAI-Project": "OPENAI_PROJECT"}
    return Provider(
        "openai",
        "OpenAI",
        url,
        env_http_headers=headers,
        connect_retry_seconds=_connect_seconds(url),
        needs_key=True,
        is_openai=True,
        ca_file=ca_file,
        compaction="in-band",
    )


def _local_url(provider_id: str, env: Mapping[str, str]) -> tuple[str, str]:
    if url := _variable(env, "CODEX_OSS_BASE_URL"):
        return url, "`CODEX_OSS_BASE_URL`"
    port = _variable(env, "CODEX_OSS_PORT") or str(_LOCAL_PORTS[provider_id])
    if not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
        raise ConfigError("`CODEX_OSS_PORT` is not a port number", hint="a number from 1 to 65535")
    return f"http://localhost:{port}/v1", "`CODEX_OSS_PORT`"


def _custom(
    provider_id: str, record: ProviderConfig, ca_file: str | None, hosted: HostedProvider | None = None
) -> Provider:
    table = f"model_providers.{provider_id}"
    base_url = record.base_url or (hosted.base_url if hosted else None)
    if not base_url:
        raise ConfigError(f"the model provider `{provider_id}` has no address", hint=f"set `{table}.base_url`")
    auth = record.auth or {}
    command = auth.get("command")
    idle = record.stream_idle_timeout_ms
    connect = record.connect_retry_seconds
    return Provider(
        id=provider_id,
        name=record.name or (hosted.name if hosted else provider_id),
        base_url=checked_url(base_url, f"`{table}.base_url`"),
        wire_api=record.wire_api or (hosted.wire_api if hosted else "responses"),
        api_key_env=record.env_key or None,
        env_key_instructions=record.env_key_instructions,
        bearer_token=record.experimental_bearer_token,
        auth_command=(str(command), *map(str, auth.get("args") or ())) if command else (),
        auth_file=None if command else _token_file(auth),
        auth_timeout=_seconds(auth.get("timeout_ms"), default=5.0),
        auth_cwd=Path(auth["cwd"]) if auth.get("cwd") else None,
        auth_refresh_interval=_seconds(auth.get("refresh_interval_ms"), default=300.0),
        query_params=dict(record.query_params),
        http_headers=dict(record.http_headers),
        env_http_headers=dict(record.env_http_headers),
        request_max_retries=_retries(record.request_max_retries),
        stream_max_retries=_retries(record.stream_max_retries),
        idle_timeout=300.0 if idle is None else idle / 1000,
        connect_retry_seconds=_connect_seconds(base_url) if connect is None else connect,
        needs_key=record.requires_openai_auth,
        is_openai=record.requires_openai_auth or _is_azure(record) or _host(record) == "api.openai.com",
        ca_file=ca_file,
        compaction=_compaction(record),
    )


def _compaction(record: ProviderConfig) -> CompactionWay:
    """Only the Responses API has more than a summary."""
    if record.wire_api not in (None, "responses"):
        return "local"
    return record.compaction or ("in-band" if _is_azure(record) else "local")


def _hosted(
    provider_id: str, hosted: HostedProvider, record: ProviderConfig | None, env: Mapping[str, str], ca_file: str | None
) -> Provider:
    """A hosted provider, with what the user's table of the same name says in place of what is known."""
    provider = Provider(
        provider_id,
        hosted.name,
        hosted.base_url,
        wire_api=hosted.wire_api,
        api_key_env=hosted.env_key or None,
        connect_retry_seconds=_LOCAL_CONNECT_SECONDS if hosted.local else _CONNECT_SECONDS,
        local=hosted.local,
        ca_file=ca_file,
    )
    token = _variable(env, hosted.env_token) if hosted.env_token else None
    if token and not _variable(env, hosted.env_key):
        provider = provider.replace(api_key_env=None, bearer_token=token)
    if record is None:
        return provider
    own = _custom(provider_id, record, ca_file, hosted)
    if hosted.local:
        seconds = _LOCAL_CONNECT_SECONDS if record.connect_retry_seconds is None else own.connect_retry_seconds
        own = own.replace(local=True, connect_retry_seconds=seconds)
    if own.api_key_env or own.bearer_token or own.auth_command or own.auth_file or own.needs_key:
        return own
    return own.replace(api_key_env=provider.api_key_env, bearer_token=provider.bearer_token)


def _is_azure(record: ProviderConfig) -> bool:
    """Whether the server is OpenAI's at Azure, which can do what OpenAI can."""
    host = _host(record)
    return (record.name or "").strip().lower() == "azure" or any(domain in host for domain in _AZURE_HOSTS)


def _connect_seconds(base_url: str) -> float:
    """How long a server that cannot be reached is tried, where no setting says."""
    return _LOOPBACK_CONNECT_SECONDS if is_loopback(urlsplit(base_url).hostname or "") else _CONNECT_SECONDS


def _host(record: ProviderConfig) -> str:
    return (urlsplit(record.base_url or "").hostname or "").lower()


def _retries(value: int | None) -> int:
    return DEFAULT_RETRIES if value is None else max(0, min(value, MAX_RETRIES))


def _token_file(auth: Mapping[str, Any]) -> Path | None:
    return Path(os.path.expanduser(auth["file"])).absolute() if auth.get("file") else None  # noqa: PTH111


def _seconds(milliseconds: int | None, *, default: float) -> float:
    return default if milliseconds is None else milliseconds / 1000


def _variable(env: Mapping[str, str], name: str) -> str | None:
    return env.get(name, "").strip() or None
