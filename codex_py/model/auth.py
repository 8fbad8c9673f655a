"""The key or login a request carries: where it is found, and that its value is never shown."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from codex_py.errors import UserError
from codex_py.model.providers import OPENAI_URL, Provider
from codex_py.protocol.encoding import as_object, decode_json

CHATGPT_URL: Final = "https://chatgpt.com/backend-api/codex"
_MAX_FILE: Final = 1024 * 1024
_MAX_TOKEN: Final = 64 * 1024
_HEADER_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}"
_SECRET_NAME: Final = r"(?i)auth|key|token|secret|password|cookie|credential|signature"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request carries to be let in. `headers` are those of the provider, with values from the environment.

    `base_url` replaces the provider's where a login belongs to another address. `secrets` are the values that must
    appear nowhere; `source` says where the key was found.
    """

    token: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    base_url: str | None = None
    source: str = ""


def find_credentials(provider: Provider, *, env: Mapping[str, str], home: Path) -> Credentials:
    """Find what `provider` asks for.

    A provider of the user's own: its `env_key`, its token, its command, in this order; without any of them nothing is
    sent. One that needs the OpenAI key: `CODEX_API_KEY`, `OPENAI_API_KEY`, then `auth.json` in `home`, whose
    permissions are tightened. Raises `UserError` when there is none or it cannot be used.
    """
    headers = _headers(provider, env)
    login = _own_login(provider, env)
    if login is None:
        login = _openai_login(provider, env, home) if provider.needs_key else Credentials()
    return replace(
        login,
        headers={**headers, **login.headers},
        secrets=_secrets(provider, headers, login.token),
        base_url=login.base_url if provider.base_url == OPENAI_URL else None,
    )


def _own_login(provider: Provider, env: Mapping[str, str]) -> Credentials | None:
    if name := provider.api_key_env:
        key = _clean_key(env.get(name, ""), f"the environment variable `{name}`")
        if not key:
            raise UserError(
                f"missing environment variable `{name}` with the key for the model provider `{provider.id}`",
                hint=provider.env_key_instructions or f"set `{name}`",
            )
        return Credentials(key, source=name)
    setting = f"model_providers.{provider.id}"
    if token := _clean_key(provider.bearer_token or "", f"`{setting}.experimental_bearer_token`"):
        return Credentials(token, source="experimental_bearer_token")
    if provider.auth_command:
        return Credentials(_ask_command(provider, env, f"{setting}.auth"), source="auth.command")
    return None


def _openai_login(provider: Provider, env: Mapping[str, str], home: Path) -> Credentials:
    for name in ("CODEX_API_KEY", "OPENAI_API_KEY"):
        if key := _clean_key(env.get(name, ""), f"the environment variable `{name}`"):
            return Credentials(key, source=name)
    path = home / "auth.json"
    if login := _stored_login(_read_login(path), path):
        return login
    raise UserError(
        f"no API key for the model provider `{provider.id}`",
        hint="set OPENAI_API_KEY or CODEX_API_KEY, keep a key in `auth.json`, run a local model with `--oss`, "
        "or try `--offline`, which needs no model",
    )


def _stored_login(stored: Mapping[str, Any], path: Path) -> Credentials | None:
    tokens = as_object(stored.get("tokens"))
    key, access = stored.get("OPENAI_API_KEY"), tokens.get("access_token")
    where = f"`{path}`"
    if isinstance(key, str) and key.strip() and stored.get("auth_mode") != "chatgpt":
        return Credentials(_clean_key(key, where), source="auth.json")
    if isinstance(access, str) and access.strip() and stored.get("auth_mode") != "apikey":
        account = tokens.get("account_id")
        account_id = _clean_key(account, where) if isinstance(account, str) else ""
        headers = {"chatgpt-account-id": account_id} if account_id else {}
        return Credentials(_clean_key(access, where), headers, base_url=CHATGPT_URL, source="auth.json")
    return None


def _read_login(path: Path) -> Mapping[str, Any]:
    """The contents of auth.json, empty when there is none."""
    try:
        content = _read_private(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(path, str(error.strerror).lower()) from error
    if len(content) > _MAX_FILE:
        raise _unreadable(path, "larger than 1 MiB")
    try:
        stored = decode_json(content.decode("utf-8-sig"))
    except ValueError as error:
        raise _unreadable(path, "not JSON") from error
    if not isinstance(stored, dict):
        raise _unreadable(path, "not a JSON object")
    return as_object(cast("object", stored))


def _read_private(path: Path) -> bytes:
    """A file of ours, made private if it is not; cut off a little beyond the size that counts as too large."""
    # O_NONBLOCK: a named pipe in its place must not stop the program.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _unreadable(path, "not a regular file")
        if status.st_mode & 0o077:
            with suppress(OSError):
                os.fchmod(descriptor, 0o600)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(_MAX_FILE + 1)
    finally:
        os.close(descriptor)


def _unreadable(path: Path, reason: str) -> UserError:
    return UserError(
        f"cannot read `{path}`: {reason}",
        hint="mend or remove the file, or set OPENAI_API_KEY",
    )


def _ask_command(provider: Provider, env: Mapping[str, str], setting: str) -> str:
    command = provider.auth_command[0]
    try:
        done = subprocess.run(
            provider.auth_command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=provider.auth_timeout,
            cwd=provider.auth_cwd,
            env=dict(env),
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"no answer within {provider.auth_timeout:g} s"
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error).lower()
    else:
        output = done.stdout.decode("utf-8", "replace")
        token = _clean_key(output, f"the output of `{command}`") if done.returncode == 0 else ""
        if token:
            return token
        reason = f"it ended with status {done.returncode}" if done.returncode else "it printed nothing"
    raise UserError(f"cannot get a token from `{command}`: {reason}", hint=f"see `{setting}` in config.toml")


def _clean_key(value: str, source: str) -> str:
    """The key without the white space a paste brings along; raises `UserError` for what no header may hold."""
    key = value.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UserError(
            f"the key in {source} holds characters that no key has",
            hint="copy it again: only visible ASCII characters, no white space inside",
        )
    if len(key) > _MAX_TOKEN:
        raise UserError(f"the key in {source} is larger than 64 KiB")
    return key


def _headers(provider: Provider, env: Mapping[str, str]) -> dict[str, str]:
    """The provider's headers by lower-case name; those from variables that are unset or blank are left out."""
    headers: dict[str, str] = {}
    for name, value in provider.http_headers.items():
        headers[_checked_name(name, provider)] = _checked_value(value, f"the header `{name}`")
    for name, variable in provider.env_http_headers.items():
        if value := env.get(variable, "").strip():
            headers[_checked_name(name, provider)] = _checked_value(value, f"the environment variable `{variable}`")
    return headers


def _checked_name(name: str, provider: Provider) -> str:
    if not re.fullmatch(_HEADER_NAME, name):
        raise UserError(f"`{name[:80]}` is not the name of an HTTP header", hint=f"see `model_providers.{provider.id}`")
    return name.lower()


def _checked_value(value: str, source: str) -> str:
    value = value.strip()
    if not value.isascii() or not value.replace("\t", " ").isprintable():
        raise UserError(f"the value in {source} cannot stand in an HTTP header", hint="only visible ASCII characters")
    return value


def _secrets(provider: Provider, headers: Mapping[str, str], token: str | None) -> tuple[str, ...]:
    from_env = {name.lower() for name in provider.env_http_headers if not name.lower().startswith("openai-")}
    found = [token or "", urlsplit(provider.base_url).password or ""]
    for name, value in headers.items():
        if name in from_env or re.search(_SECRET_NAME, name):
            # `Bearer sk-…`: the part after the scheme is the secret.
            found += [value, value.rpartition(" ")[2]]
    found += [value for name, value in provider.query_params.items() if re.search(_SECRET_NAME, name)]
    return tuple(dict.fromkeys(value for value in found if value))
