"""Which server a provider's name stands for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codex_py.config.model_sections import ProviderConfig
from codex_py.config.schema import HOSTED_PROVIDERS
from codex_py.errors import UserError
from codex_py.model.providers import HOSTED, Provider, checked_url, endpoint_url, loopback_provider, resolve_provider
from codex_py.protocol.usage import CompactionWay
from codex_py.text.address import shown_url

OPENAI_HEADERS = {"OpenAI-Organization": "OPENAI_ORGANIZATION", "OpenAI-Project": "OPENAI_PROJECT"}


def settings(**fields: Any) -> ProviderConfig:
    return ProviderConfig(**{"base_url": "https://models.example/v1", "wire_api": "responses", **fields})


def resolve(
    name: str, *, env: Mapping[str, str] | None = None, url: str | None = None, **own: ProviderConfig
) -> Provider:
    return resolve_provider(name, configured=own, env=env or {}, openai_base_url=url)


def openai(base_url: str) -> Provider:
    headers = OPENAI_HEADERS
    return Provider(
        "openai", "OpenAI", base_url, env_http_headers=headers, needs_key=True, is_openai=True, compaction="in-band"
    )


@pytest.mark.parametrize(
    ("env", "url", "expected", "seconds"),
    [
        ({}, None, "https://api.openai.com/v1", 60.0),
        ({"OPENAI_BASE_URL": " https://proxy.example/v1/ "}, None, "https://proxy.example/v1", 60.0),
        ({"OPENAI_BASE_URL": "https://proxy.example/v1"}, "http://gateway.lan/v1//", "http://gateway.lan/v1", 60.0),
        ({"OPENAI_BASE_URL": "  "}, None, "https://api.openai.com/v1", 60.0),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:99/v1"}, None, "http://127.0.0.1:99/v1", 5.0),
        ({"OPENAI_BASE_URL": "http://localhost:99"}, None, "http://localhost:99", 5.0),
        ({"OPENAI_BASE_URL": "http://[::1]:99"}, None, "http://[::1]:99", 5.0),
    ],
)
def test_openai_and_its_address(env: dict[str, str], url: str | None, expected: str, seconds: float) -> None:
    assert resolve("openai", env=env, url=url) == openai(expected).replace(connect_retry_seconds=seconds)


def test_a_variable_alone_does_not_send_the_key_unencrypted() -> None:
    with pytest.raises(UserError, match="without encryption"):
        resolve("openai", env={"OPENAI_BASE_URL": "http://proxy.example/v1"})


@pytest.mark.parametrize(
    ("name", "env", "expected"),
    [
        (
            "ollama",
            {},
            Provider("ollama", "Ollama", "http://localhost:11434/v1", local=True, connect_retry_seconds=2.0),
        ),
        (
            "lmstudio",
            {},
            Provider("lmstudio", "LM Studio", "http://localhost:1234/v1", local=True, connect_retry_seconds=2.0),
        ),
        (
            "ollama",
            {"CODEX_OSS_PORT": "8080"},
            Provider("ollama", "Ollama", "http://localhost:8080/v1", local=True, connect_retry_seconds=2.0),
        ),
        (
            "lmstudio",
            {"CODEX_OSS_PORT": "8080", "CODEX_OSS_BASE_URL": "http://192.168.1.5:1234/v1/"},
            Provider("lmstudio", "LM Studio", "http://192.168.1.5:1234/v1", local=True, connect_retry_seconds=2.0),
        ),
    ],
)
def test_the_local_servers(name: str, env: dict[str, str], expected: Provider) -> None:
    assert resolve(name, env=env) == expected


@pytest.mark.parametrize("port", ["x", "0", "-1", "65536", "8080/v1", "9" * 5000, "٣"])
def test_a_wrong_port_is_named(port: str) -> None:
    with pytest.raises(UserError, match="`CODEX_OSS_PORT` is not a port number"):
        resolve("ollama", env={"CODEX_OSS_PORT": port})


def test_a_provider_of_the_users_own_with_everything() -> None:
    record = settings(
        name="Azure",
        base_url="https://x.openai.azure.com/openai/",
        env_key="AZURE_KEY",
        env_key_instructions="ask IT",
        experimental_bearer_token="tok",
        auth={"command": "get-token", "args": ["-q"], "timeout_ms": 250, "cwd": "/tmp"},
        query_params={"api-version": "v"},
        http_headers={"a": "b"},
        env_http_headers={"c": "D"},
        request_max_retries=2,
        stream_max_retries=1000,
        stream_idle_timeout_ms=1500,
        connect_retry_seconds=0.5,
        requires_openai_auth=True,
    )
    assert resolve("azure", azure=record, env={"SSL_CERT_FILE": "/ca.pem"}) == Provider(
        id="azure",
        name="Azure",
        base_url="https://x.openai.azure.com/openai",
        api_key_env="AZURE_KEY",
        env_key_instructions="ask IT",
        bearer_token="tok",
        auth_command=("get-token", "-q"),
        auth_timeout=0.25,
        auth_cwd=Path("/tmp"),
        query_params={"api-version": "v"},
        http_headers={"a": "b"},
        env_http_headers={"c": "D"},
        request_max_retries=2,
        stream_max_retries=100,
        idle_timeout=1.5,
        connect_retry_seconds=0.5,
        needs_key=True,
        is_openai=True,
        ca_file="/ca.pem",
        compaction="in-band",
    )


@pytest.mark.parametrize(
    ("record", "way"),
    [
        (settings(), "local"),
        (settings(compaction="remote"), "remote"),
        (settings(base_url="https://x.openai.azure.com/openai"), "in-band"),
        (settings(base_url="https://openai.azure.example/v1"), "local"),
        (settings(name="Azure", compaction="local"), "local"),
        (settings(name="azure"), "in-band"),
    ],
)
def test_how_a_server_compacts_is_said_or_known(record: ProviderConfig, way: CompactionWay) -> None:
    assert resolve("mine", mine=record).compaction == way


@pytest.mark.parametrize(
    ("record", "is_openai"),
    [
        (settings(), False),
        (settings(base_url="http://localhost:11434/v1"), False),
        (settings(base_url="https://api.openai.com.example/v1"), False),
        (settings(base_url="https://api.openai.com/v1"), True),
        (settings(base_url="https://x.openai.azure.com/openai"), True),
        (settings(name="azure", compaction="local"), True),
        (settings(requires_openai_auth=True), True),
    ],
)
def test_which_servers_are_openais(record: ProviderConfig, is_openai: bool) -> None:
    assert resolve("mine", mine=record).is_openai == is_openai


def test_a_provider_of_the_users_own_with_nothing_but_an_address() -> None:
    assert resolve("mine", mine=settings()) == Provider("mine", "mine", "https://models.example/v1")


def test_zero_retries_and_no_time_are_choices_too() -> None:
    provider = resolve("m", m=settings(request_max_retries=0, stream_max_retries=0, connect_retry_seconds=0.0))
    assert (provider.request_max_retries, provider.stream_max_retries, provider.connect_retry_seconds) == (0, 0, 0.0)


@pytest.mark.parametrize(
    ("url", "seconds"),
    [
        ("https://models.example/v1", 60.0),
        ("http://127.0.0.1:8000/v1", 5.0),
        ("http://localhost:8000/v1", 5.0),
        ("http://[::1]:8000/v1", 5.0),
        ("http://192.168.1.5:8000/v1", 60.0),
    ],
)
def test_a_server_on_this_machine_is_not_waited_for_long(url: str, seconds: float) -> None:
    assert resolve("mine", mine=settings(base_url=url)).connect_retry_seconds == seconds
    assert resolve("mine", mine=settings(base_url=url, connect_retry_seconds=9.0)).connect_retry_seconds == 9.0
    assert resolve("openai", url=url).connect_retry_seconds == seconds


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UserError) as caught:
        resolve("opneai", zeta=settings(), alpha=settings())
    assert str(caught.value) == "unknown provider `opneai`"
    assert caught.value.hint == "did you mean `openai`?"
    with pytest.raises(UserError) as caught:
        resolve("nobody", zeta=settings(), alpha=settings())
    assert caught.value.hint == (
        "known are `openai`, `ollama`, `lmstudio`, `anthropic`, `openrouter`, `deepseek`, `mistral`, `groq`, `gemini`, "
        "`vllm`, `llamacpp`, `alpha`, `zeta`"
    )


def test_a_provider_without_an_address_says_which_key_to_set() -> None:
    with pytest.raises(UserError) as caught:
        resolve("mine", mine=settings(base_url=None))
    assert (str(caught.value), caught.value.hint) == (
        "the model provider `mine` has no address",
        "set `model_providers.mine.base_url`",
    )


@pytest.mark.parametrize(
    "url",
    [
        "",
        "models.example/v1",
        "ftp://models.example",
        "file:///etc/passwd",
        "https://",
        "https:///v1",
        "http://[::1",
        "http://a:99999",
        "http://a:0",
        "http://a:b",
        "http://a b/v1",
        "http://a/\x00",
        "http://a/\nx",
        "http://bücher.example",
        "http://xn--a.invalid",
        "http://256.1.1.1",
        "://x",
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(UserError) as caught:
        checked_url(url, "`somewhere`")
    assert str(caught.value) == "cannot use the address in `somewhere`: not an http or https URL"


@pytest.mark.parametrize(
    ("base", "params", "expected"),
    [
        ("https://a/v1", {}, "https://a/v1/responses"),
        ("https://a", {}, "https://a/responses"),
        (
            "https://a/v1",
            {"api-version": "2026-01-01", "q": "a b&c"},
            "https://a/v1/responses?api-version=2026-01-01&q=a+b%26c",
        ),
        ("https://a/v1/?k=1&e=", {"x": "2"}, "https://a/v1/responses?k=1&e=&x=2"),
        ("https://a/v1#frag", {}, "https://a/v1/responses"),
    ],
)
def test_the_address_of_a_request(base: str, params: dict[str, str], expected: str) -> None:
    assert endpoint_url(base, "responses", params) == expected


def test_a_shown_address_keeps_no_secret() -> None:
    assert shown_url("https://me:pass@a:8/v1/responses?key=secret#x") == "https://a:8/v1/responses"


def test_a_providers_repr_shows_no_secret() -> None:
    provider = Provider(
        "x", "x", "https://a", bearer_token="s3cret", http_headers={"k": "s3cret"}, query_params={"k": "s3cret"}
    )
    assert "s3cret" not in repr(provider)


def test_a_server_of_this_program_is_not_waited_for() -> None:
    provider = loopback_provider("offline", "offline rules", "http://127.0.0.1:5/v1")
    assert (provider.id, provider.base_url, provider.needs_key, provider.connect_retry_seconds) == (
        "offline",
        "http://127.0.0.1:5/v1",
        False,
        0.0,
    )


def anthropic(**changes: Any) -> Provider:
    provider = Provider("anthropic", "Anthropic", "https://api.anthropic.com/v1", wire_api="messages")
    return provider.replace(api_key_env="ANTHROPIC_API_KEY").replace(**changes)


@pytest.mark.parametrize(
    ("env", "record", "expected"),
    [
        ({}, None, anthropic()),
        ({"ANTHROPIC_API_KEY": "k", "ANTHROPIC_AUTH_TOKEN": "t"}, None, anthropic()),
        ({"ANTHROPIC_AUTH_TOKEN": "t"}, None, anthropic(api_key_env=None, bearer_token="t")),
        (
            {"ANTHROPIC_AUTH_TOKEN": "t"},
            settings(base_url=None, wire_api=None, stream_max_retries=1),
            anthropic(api_key_env=None, bearer_token="t", stream_max_retries=1),
        ),
        (
            {},
            settings(wire_api=None, env_key="MY_KEY"),
            anthropic(base_url="https://models.example/v1", api_key_env="MY_KEY"),
        ),
        (
            {},
            settings(base_url=None, wire_api=None, experimental_bearer_token="b"),
            anthropic(api_key_env=None, bearer_token="b"),
        ),
    ],
)
def test_a_hosted_provider_is_known_and_a_table_of_its_name_changes_it(
    env: dict[str, str], record: ProviderConfig | None, expected: Provider
) -> None:
    own: dict[str, Any] = {} if record is None else {"anthropic": record}
    assert resolve("anthropic", env=env, **own) == expected


@pytest.mark.parametrize(
    ("name", "base_url", "key"),
    [
        ("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        ("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
        ("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
        ("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
        ("vllm", "http://localhost:8000/v1", None),
        ("llamacpp", "http://localhost:8080/v1", None),
    ],
)
def test_servers_of_the_chat_completions_api_are_known(name: str, base_url: str, key: str | None) -> None:
    provider = resolve(name)
    assert (provider.base_url, provider.wire_api, provider.api_key_env) == (base_url, "chat", key)
    record = settings(base_url="http://127.0.0.1:9/v1", wire_api="responses", env_key="MINE")
    own = resolve_provider(name, configured={name: record}, env={})
    assert (own.base_url, own.wire_api, own.api_key_env) == ("http://127.0.0.1:9/v1", "responses", "MINE")
    assert own.local == provider.local


def test_the_configuration_knows_every_hosted_provider() -> None:
    assert set(HOSTED_PROVIDERS) == set(HOSTED)
