"""Where a key is found, in which order, and that it is shown nowhere."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_py.auth.find_credentials import CHATGPT_URL, LoginRules, find_credentials
from codex_py.errors import UserError
from codex_py.model.credentials import Credentials
from codex_py.model.providers import Provider

OPENAI = Provider(
    "openai",
    "OpenAI",
    "https://api.openai.com/v1",
    env_http_headers={"OpenAI-Organization": "OPENAI_ORGANIZATION"},
    needs_key=True,
)
CUSTOM = Provider("mine", "Mine", "https://models.example/v1")
KEY_LOGIN = {"auth_mode": "apikey", "OPENAI_API_KEY": "sk-stored-key"}
CHATGPT_LOGIN = {
    "auth_mode": "chatgpt",
    "OPENAI_API_KEY": None,
    "tokens": {"id_token": "id", "access_token": "access-token", "refresh_token": "refresh", "account_id": "acc-1"},
    "last_refresh": "2026-01-01T00:00:00Z",
}


def store(home: Path, content: Any) -> Path:
    path = home / "auth.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    path.chmod(0o600)
    return path


def found(provider: Provider, home: Path, **env: str) -> Credentials:
    return find_credentials(provider, env=env, home=home)


def test_the_order_for_openai(tmp_path: Path) -> None:
    store(tmp_path, KEY_LOGIN)
    both = {"CODEX_API_KEY": "sk-codex-key", "OPENAI_API_KEY": "sk-openai-key"}
    assert found(OPENAI, tmp_path, **both) == Credentials(
        "sk-codex-key", secrets=("sk-codex-key",), source="CODEX_API_KEY"
    )
    assert found(OPENAI, tmp_path, OPENAI_API_KEY="sk-openai-key") == Credentials(
        "sk-openai-key", secrets=("sk-openai-key",), source="OPENAI_API_KEY"
    )
    assert found(OPENAI, tmp_path, OPENAI_API_KEY="  ") == Credentials(
        "sk-stored-key", secrets=("sk-stored-key",), source="auth.json"
    )


def test_a_chatgpt_login_brings_its_account_and_its_own_address(tmp_path: Path) -> None:
    store(tmp_path, CHATGPT_LOGIN)
    assert found(OPENAI, tmp_path) == Credentials(
        "access-token",
        {"chatgpt-account-id": "acc-1"},
        ("access-token", "refresh", "id"),
        CHATGPT_URL,
        "auth.json",
        "acc-1",
    )
    elsewhere = Provider("openai", "OpenAI", "https://gateway.example/v1", needs_key=True)
    assert found(elsewhere, tmp_path).base_url is None


@pytest.mark.parametrize(
    ("content", "token"),
    [
        ({"OPENAI_API_KEY": "sk-old-form"}, "sk-old-form"),
        ({"tokens": {"access_token": "access"}}, "access"),
        ({"auth_mode": "chatgpt", "OPENAI_API_KEY": "sk-left-over", "tokens": {"access_token": "access"}}, "access"),
        ({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-key", "tokens": {"access_token": "left-over"}}, "sk-key"),
        ({"auth_mode": "apikey", "OPENAI_API_KEY": " sk-key\n"}, "sk-key"),
        (b'\xef\xbb\xbf{"OPENAI_API_KEY":"sk-bom"}', "sk-bom"),
    ],
)
def test_forms_of_auth_json(tmp_path: Path, content: Any, token: str) -> None:
    store(tmp_path, content)
    assert found(OPENAI, tmp_path).token == token


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"auth_mode": "apikey", "OPENAI_API_KEY": None},
        {"auth_mode": "apikey", "OPENAI_API_KEY": ""},
        {"auth_mode": "apikey", "OPENAI_API_KEY": 7},
        {"auth_mode": "chatgpt", "tokens": None},
        {"auth_mode": "chatgpt", "tokens": {"access_token": None}},
        {"auth_mode": "apikey", "tokens": {"access_token": "left-over"}},
    ],
)
def test_no_key_at_all_names_the_two_likeliest_remedies(tmp_path: Path, content: Any) -> None:
    if content is not None:
        store(tmp_path, content)
    with pytest.raises(UserError) as caught:
        found(OPENAI, tmp_path)
    assert (str(caught.value), caught.value.status) == ("no API key for the model provider `openai`", 1)
    assert caught.value.hint == "sign in with `codex-py login`, or set OPENAI_API_KEY"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON: it is empty"),
        (b"{", 'not JSON: line 1 column 2: expected a key in "…"'),
        (b"\xff\xfe{}", "not JSON: it is not UTF-8"),
        (b"[" * 100_000, "not JSON: nested too deeply"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b" " * (1024 * 1024 + 1), "larger than 1 MiB"),
    ],
)
def test_a_broken_auth_json_is_named(tmp_path: Path, content: bytes, reason: str) -> None:
    path = store(tmp_path, content)
    with pytest.raises(UserError) as caught:
        found(OPENAI, tmp_path)
    assert str(caught.value) == f"cannot read `{path}`: {reason}"
    assert found(OPENAI, tmp_path, OPENAI_API_KEY="sk-openai-key").source == "OPENAI_API_KEY"


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "auth.json"
    path.mkdir()
    with pytest.raises(UserError) as caught:
        found(OPENAI, tmp_path)
    assert str(caught.value) == f"cannot read `{path}`: not a regular file"
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(UserError) as caught:
        found(OPENAI, tmp_path)
    assert str(caught.value) == f"cannot read `{path}`: not a regular file"


def test_loose_permissions_are_tightened(tmp_path: Path) -> None:
    path = store(tmp_path, KEY_LOGIN)
    path.chmod(0o644)
    found(OPENAI, tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_provider_of_the_users_own_asks_for_no_key_that_is_not_configured(tmp_path: Path) -> None:
    store(tmp_path, KEY_LOGIN)
    assert found(CUSTOM, tmp_path, OPENAI_API_KEY="sk-openai-key", CODEX_API_KEY="sk-codex-key") == Credentials()


def test_a_provider_of_the_users_own_may_want_the_openai_login(tmp_path: Path) -> None:
    store(tmp_path, KEY_LOGIN)
    provider = Provider("mine", "Mine", "https://models.example/v1", needs_key=True)
    assert found(provider, tmp_path).token == "sk-stored-key"
    with pytest.raises(UserError, match="no API key for the model provider `mine`"):
        found(provider, tmp_path / "empty")


def test_env_key_then_token_then_command(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "print('from-command')")
    by_command = CUSTOM.replace(auth_command=command)
    by_token = by_command.replace(bearer_token=" token-in-config ")
    by_variable = by_token.replace(api_key_env="MY_KEY")
    assert found(by_variable, tmp_path, MY_KEY="\tkey-in-env\r\n").token == "key-in-env"
    assert found(by_token, tmp_path).token == "token-in-config"
    assert found(by_command, tmp_path) == Credentials("from-command", secrets=("from-command",), source="auth.command")


@pytest.mark.parametrize("key", ["sk-ключ", "sk-\x1b[31m", "sk-a\nb", "sk a", "sk-\u200b", "sk-\udc80", "k" * 70_000])
def test_a_key_no_header_can_hold_is_refused_and_not_shown(tmp_path: Path, key: str) -> None:
    with pytest.raises(UserError) as caught:
        found(OPENAI, tmp_path, CODEX_API_KEY=key)
    assert str(caught.value).startswith("the key in the environment variable `CODEX_API_KEY` ")
    assert key not in str(caught.value) + (caught.value.hint or "")


@pytest.mark.parametrize(
    ("code", "timeout", "reason"),
    [
        ("import sys; sys.exit(3)", 60.0, "it ended with status 3"),
        ("print()", 60.0, "it printed nothing"),
        ("import signal; signal.pause()", 0.2, "no answer within 0.2 s"),
        ("while True: print('x' * 4096)", 60.0, "it printed more than 64 KiB"),
    ],
)
def test_a_command_that_gives_no_token(tmp_path: Path, code: str, timeout: float, reason: str) -> None:
    provider = Provider("m", "M", "https://a", auth_command=(sys.executable, "-c", code), auth_timeout=timeout)
    with pytest.raises(UserError) as caught:
        found(provider, tmp_path)
    assert str(caught.value) == f"cannot get a token from `{sys.executable}`: {reason}"


def test_a_token_counts_although_its_command_left_something_running(tmp_path: Path) -> None:
    """That holds the output open, so that the output has no end."""
    stop = tmp_path / "stop"
    os.mkfifo(stop)
    provider = Provider("m", "M", "https://a", auth_command=("sh", "-c", f"cat {stop} & echo token"), auth_timeout=60.0)
    try:
        assert found(provider, tmp_path).token == "token"
    finally:
        stop.write_text("")


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        found(Provider("m", "M", "https://a", auth_command=("/no/such/program",)), tmp_path)
    assert str(caught.value) == "cannot get a token from `/no/such/program`: no such file or directory"


def test_headers_from_the_configuration_and_the_environment(tmp_path: Path) -> None:
    provider = Provider(
        "m",
        "M",
        "https://me:url-password@a",
        http_headers={"X-Team": "core", "api-key": "header-secret", "Authorization": "Bearer other-secret"},
        env_http_headers={"X-Org": "ORG_ID", "X-Blank": "BLANK", "X-Unset": "UNSET"},
        query_params={"api-version": "v1", "key": "query-secret"},
    )
    assert found(provider, tmp_path, ORG_ID=" org-12345 ", BLANK="  ") == Credentials(
        headers={
            "x-team": "core",
            "api-key": "header-secret",
            "authorization": "Bearer other-secret",
            "x-org": "org-12345",
        },
        secrets=(
            "url-password",
            "header-secret",
            "Bearer other-secret",
            "other-secret",
            "org-12345",
            "query-secret",
        ),
    )


def test_openai_organization_is_sent_when_set(tmp_path: Path) -> None:
    credentials = found(OPENAI, tmp_path, OPENAI_API_KEY="sk-openai-key", OPENAI_ORGANIZATION="org-1")
    assert (credentials.headers, credentials.secrets) == ({"openai-organization": "org-1"}, ("sk-openai-key",))


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"bad name": "x"}, "`bad name` is not the name of an HTTP header"),
        ({"": "x"}, "`` is not the name of an HTTP header"),
        ({"x": "a\r\nevil: 1"}, "the value in the header `x` cannot stand in an HTTP header"),
        ({"x": "ü"}, "the value in the header `x` cannot stand in an HTTP header"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused(tmp_path: Path, headers: dict[str, str], message: str) -> None:
    with pytest.raises(UserError) as caught:
        found(Provider("m", "M", "https://a", http_headers=headers), tmp_path)
    assert str(caught.value) == message


def test_a_repr_shows_no_secret(tmp_path: Path) -> None:
    store(tmp_path, CHATGPT_LOGIN)
    shown = repr(found(OPENAI, tmp_path))
    assert "access-token" not in shown
    assert "acc-1" not in shown


def refusal(home: Path, rules: LoginRules, **env: str) -> str:
    with pytest.raises(UserError) as caught:
        find_credentials(OPENAI, env=env, home=home, rules=rules)
    return str(caught.value)


def test_the_only_login_method_is_the_only_one_that_counts(tmp_path: Path) -> None:
    store(tmp_path, CHATGPT_LOGIN)
    only_chatgpt, only_key = LoginRules(method="chatgpt"), LoginRules(method="api")
    env = {"OPENAI_API_KEY": "sk-openai-key"}
    assert find_credentials(OPENAI, env=env, home=tmp_path, rules=only_chatgpt).token == "access-token"
    assert find_credentials(OPENAI, env=env, home=tmp_path, rules=only_key).token == "sk-openai-key"
    assert "only an API key may be used here (`forced_login_method`)" in refusal(tmp_path, only_key)
    store(tmp_path, KEY_LOGIN)
    assert "only a ChatGPT login may be used here" in refusal(tmp_path, only_chatgpt, **env)
    (tmp_path / "auth.json").unlink()
    assert "no ChatGPT login" in refusal(tmp_path, only_chatgpt, **env)


def test_a_login_of_another_workspace_is_refused(tmp_path: Path) -> None:
    store(tmp_path, CHATGPT_LOGIN)
    assert "belongs to the workspace `acc-1`, and only `acc-2` may be used" in refusal(
        tmp_path, LoginRules(workspaces=("acc-2",))
    )
    allowed = LoginRules(workspaces=("acc-2", "acc-1"))
    assert find_credentials(OPENAI, env={}, home=tmp_path, rules=allowed).account == "acc-1"


@pytest.mark.parametrize(
    ("configured", "address"),
    [
        (None, CHATGPT_URL),
        ("https://proxy.example/backend-api", "https://proxy.example/backend-api/codex"),
        ("https://proxy.example/backend-api/codex/", "https://proxy.example/backend-api/codex"),
    ],
)
def test_the_back_end_of_a_chatgpt_login_may_be_elsewhere(tmp_path: Path, configured: str | None, address: str) -> None:
    store(tmp_path, CHATGPT_LOGIN)
    rules = LoginRules(chatgpt_url=configured)
    assert find_credentials(OPENAI, env={}, home=tmp_path, rules=rules).base_url == address
