"""Finds the key or login that requests are sent with, and collects its secrets for redaction."""

from __future__ import annotations

import os
import re
import select
import stat
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from codex_py.auth.login_store import AUTH_FILE, PROVIDER_KEYS_FILE, StoreType, open_store, read_login
from codex_py.errors import LoginNeeded, UserError
from codex_py.model.credentials import FROM_COMMAND, FROM_FILE, Credentials
from codex_py.model.providers import HOSTED, OPENAI_URL, Provider, checked_url
from codex_py.programs import program_finder
from codex_py.protocol.encoding import as_object
from codex_py.protocol.value import Value
from codex_py.text.credentials import is_secret_name
from codex_py.text.files import os_reason

LoginMethod: TypeAlias = Literal["chatgpt", "api"]

KEY_ENV_NAMES: Final = ("CODEX_API_KEY", "OPENAI_API_KEY")
CHATGPT_URL: Final = "https://chatgpt.com/backend-api/codex"
_MAX_TOKEN: Final = 64 * 1024
# A command that has ended may have left something running that holds its output open.
_TOKEN_POLL_SECONDS: Final = 0.05
_HEADER_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}"


class LoginRules(Value):
    """The settings about logins: where one is stored, and which are allowed.

    `method` is the only allowed one, `workspaces` are the only ones that a ChatGPT login may belong to (empty: any);
    `chatgpt_url` replaces the address that such a login is used for.
    """

    store: StoreType = "file"
    method: LoginMethod | None = None
    workspaces: tuple[str, ...] = ()
    chatgpt_url: str | None = None


def find_credentials(
    provider: Provider, *, env: Mapping[str, str], home: Path, rules: LoginRules | None = None
) -> Credentials:
    """Find the credentials for `provider`.

    For the user's own provider: its `env_key`, its token, its command, in this order, or none at all; for a hosted one
    a stored key stands in for the variable. For one that needs an OpenAI key: `CODEX_API_KEY`, `OPENAI_API_KEY`, then
    the stored login, in `auth.json` of `home` (whose permissions are tightened) or in the keyring. Raises `UserError`
    when credentials are missing, invalid or not allowed.
    """
    rules = rules or LoginRules()
    login = _own_login(provider, env, home, rules)
    if login is None:
        login = _openai_login(provider, env, home, rules) if provider.needs_key else Credentials()
    return for_provider(login, provider, env)


def for_provider(login: Credentials, provider: Provider, env: Mapping[str, str]) -> Credentials:
    """A login with the headers and secrets that requests to `provider` also have."""
    headers = _headers(provider, env)
    return login.replace(
        headers={**headers, **login.headers},
        secrets=_secrets(provider, headers, login),
        base_url=login.base_url if provider.base_url == OPENAI_URL else None,
    )


def stored_credentials(stored: Mapping[str, Any], where: str, rules: LoginRules) -> Credentials | None:
    """The login in the contents of auth.json, kept in `where`; None when there is none.

    Raises `UserError` for one that cannot be used or that `rules` do not allow.
    """
    tokens = as_object(stored.get("tokens"))
    key, access = stored.get("OPENAI_API_KEY"), tokens.get("access_token")
    if isinstance(key, str) and key.strip() and stored.get("auth_mode") != "chatgpt":
        _check_method("api", where, rules)
        return Credentials(check_key(key, where))
    if isinstance(access, str) and access.strip() and stored.get("auth_mode") != "apikey":
        _check_method("chatgpt", where, rules)
        return _chatgpt_login(tokens, where, rules)
    return None


def check_workspace(account: str, rules: LoginRules) -> None:
    """Raise `UserError` for a ChatGPT account that is not among the allowed ones."""
    if rules.workspaces and account not in rules.workspaces:
        allowed = ", ".join(f"`{workspace}`" for workspace in rules.workspaces)
        raise UserError(
            f"the ChatGPT login belongs to the workspace `{account}`, and only {allowed} may be used here",
            hint="sign in to the right one with `codex-py login`, or see `forced_chatgpt_workspace_id` in config.toml",
            failure="auth",
        )


def stored_key(name: str, *, home: Path, rules: LoginRules) -> Credentials | None:
    """The key that is stored for a hosted provider, by the name of its variable."""
    if rules.store == "file":
        path = home / PROVIDER_KEYS_FILE
        keys, where, source = read_login(path), f"`{path}`", path.name
    else:
        store = open_store(rules.store, home, PROVIDER_KEYS_FILE)
        keys, where, source = store.load(), store.where, store.name
    key = keys.get(name)
    checked = check_key(key, where) if isinstance(key, str) else ""
    return Credentials(checked, source=source) if checked else None


def _own_login(provider: Provider, env: Mapping[str, str], home: Path, rules: LoginRules) -> Credentials | None:
    if name := provider.api_key_env:
        key = check_key(env.get(name, ""), f"the environment variable `{name}`")
        if not key and (hosted := HOSTED.get(provider.id)) and hosted.env_key == name:
            if found := stored_key(name, home=home, rules=rules):
                return found
            raise LoginNeeded(
                f"missing environment variable `{name}` with the key for the model provider `{provider.id}`",
                hint=provider.env_key_instructions
                or f"set `{name}`, or store a key with `codex-py login --with-api-key --provider {provider.id}`",
            )
        if not key:
            raise UserError(
                f"missing environment variable `{name}` with the key for the model provider `{provider.id}`",
                hint=provider.env_key_instructions or f"set `{name}`",
                failure="auth",
            )
        return Credentials(key, source=name)
    setting = f"model_providers.{provider.id}"
    if token := check_key(provider.bearer_token or "", f"`{setting}.experimental_bearer_token`"):
        return Credentials(token, source="experimental_bearer_token")
    if provider.auth_command:
        return Credentials(run_token_command(provider, env), source=FROM_COMMAND)
    if provider.auth_file:
        return Credentials(read_token_file(provider.auth_file), source=FROM_FILE)
    return None


def _openai_login(provider: Provider, env: Mapping[str, str], home: Path, rules: LoginRules) -> Credentials:
    if rules.method != "chatgpt":
        for name in KEY_ENV_NAMES:
            if key := check_key(env.get(name, ""), f"the environment variable `{name}`"):
                return Credentials(key, source=name)
    if rules.store == "file":
        path = home / AUTH_FILE
        login, source = stored_credentials(read_login(path), f"`{path}`", rules), path.name
    else:
        store = open_store(rules.store, home)
        login, source = stored_credentials(store.load(), store.where, rules), store.name
    if login is not None:
        return login.replace(source=source)
    if rules.method == "chatgpt":
        raise UserError(
            f"no ChatGPT login for the model provider `{provider.id}`, and `forced_login_method` allows nothing else",
            hint="sign in with `codex-py login`",
            failure="auth",
        )
    raise LoginNeeded(
        f"no API key for the model provider `{provider.id}`",
        hint="sign in with `codex-py login`, or set OPENAI_API_KEY",
    )


def _check_method(method: LoginMethod, where: str, rules: LoginRules) -> None:
    if rules.method is None or rules.method == method:
        return
    wanted, found = ("an API key", "a ChatGPT login") if rules.method == "api" else ("a ChatGPT login", "an API key")
    command = "codex-py login --with-api-key" if rules.method == "api" else "codex-py login"
    raise UserError(
        f"only {wanted} may be used here (`forced_login_method`), and {where} holds {found}",
        hint=f"sign in with `{command}`",
        failure="auth",
    )


def _chatgpt_login(tokens: Mapping[str, Any], where: str, rules: LoginRules) -> Credentials:
    account = tokens.get("account_id")
    account_id = check_key(account, where) if isinstance(account, str) else ""
    check_workspace(account_id, rules)
    return Credentials(
        check_key(str(tokens["access_token"]), where),
        {"chatgpt-account-id": account_id} if account_id else {},
        # The refresh token gives access to the account.
        secrets=tuple(str(tokens[name]) for name in ("refresh_token", "id_token") if tokens.get(name)),
        base_url=chatgpt_base(rules.chatgpt_url),
        account=account_id,
    )


def chatgpt_base(configured: str | None) -> str:
    """The address that a ChatGPT login is used for; `configured` is the back end's, with or without `/codex`."""
    if not configured:
        return CHATGPT_URL
    url = checked_url(configured, "`chatgpt_base_url`")
    return url if url.endswith("/codex") else f"{url}/codex"


def check_key(value: str, source: str) -> str:
    """The key without surrounding white space; raises `UserError` for one that is not valid in a header."""
    key = value.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UserError(
            f"the key in {source} contains invalid characters",
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


def _secrets(provider: Provider, headers: Mapping[str, str], login: Credentials) -> tuple[str, ...]:
    from_env = {name.lower() for name in provider.env_http_headers if not name.lower().startswith("openai-")}
    found = [login.token or "", *login.secrets, urlsplit(provider.base_url).password or ""]
    for name, value in headers.items():
        if name in from_env or is_secret_name(name):
            # `Bearer sk-…`: the part after the scheme is the secret.
            found += [value, value.rpartition(" ")[2]]
    found += [value for name, value in provider.query_params.items() if is_secret_name(name)]
    return tuple(dict.fromkeys(value for value in found if value))


def read_token_file(path: Path) -> str:
    """The token in a file. Raises `UserError` for one that has none or is not a regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            reason = "" if stat.S_ISREG(os.fstat(descriptor).st_mode) else "not a regular file"
            content = b"" if reason else file.read(_MAX_TOKEN + 3)
    except OSError as error:
        reason, content = os_reason(error), b""
    token = check_key(content.decode("utf-8", "replace"), f"`{path}`")
    if not token:
        hint = "see `auth` of the model provider in config.toml"
        raise UserError(f"cannot read a token from `{path}`: {reason or 'it is empty'}", hint=hint, failure="auth")
    return token


def run_token_command(provider: Provider, env: Mapping[str, str]) -> str:
    """Run the provider's token command; gives back the token that it prints. Raises `UserError` if it fails.

    The command and the programs that it starts run outside the sandbox, so none may be one that commands can write.
    At most 64 KiB are read, within `auth_timeout`.
    """
    command = provider.auth_command[0]
    try:
        printed, status = _printed_by(provider, env)
    except TimeoutError:
        reason = f"no answer within {provider.auth_timeout:g} s"
    except OSError as error:
        reason = str(error.strerror or error).lower()
    except ValueError as error:
        reason = str(error)
    else:
        token = check_key(printed.decode("utf-8", "replace"), f"the output of `{command}`") if status == 0 else ""
        if token:
            return token
        reason = f"it ended with status {status}" if status else "it printed nothing"
    hint = f"see `model_providers.{provider.id}.auth` in config.toml"
    raise UserError(f"cannot get a token from `{command}`: {reason}", hint=hint, failure="auth")


def _printed_by(provider: Provider, env: Mapping[str, str]) -> tuple[bytes, int]:
    """The command's output and exit status. Raises `TimeoutError`, and `ValueError` for too much output."""
    deadline = time.monotonic() + provider.auth_timeout
    programs = provider.auth_programs or program_finder(env, Path.cwd())
    name, *arguments = provider.auth_command
    process = subprocess.Popen(
        [programs.find_chosen(name, f"`model_providers.{provider.id}.auth`"), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=provider.auth_cwd,
        env={**env, "PATH": programs.trusted_path()},
    )
    with process:
        try:
            assert process.stdout is not None
            printed = _read(process, process.stdout.fileno(), deadline)
            return printed, process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise TimeoutError from error
        finally:
            # Has no effect on a process that has ended.
            process.kill()


def _read(process: subprocess.Popen[bytes], descriptor: int, deadline: float) -> bytes:
    printed = bytearray()
    poll = select.poll()
    poll.register(descriptor)
    while (left := deadline - time.monotonic()) > 0:
        has_ended = process.poll() is not None
        if not poll.poll(min(left, _TOKEN_POLL_SECONDS) * 1000):
            if has_ended:
                return bytes(printed)
            continue
        chunk = os.read(descriptor, _MAX_TOKEN)
        printed += chunk
        if not chunk:
            return bytes(printed)
        if len(printed) > _MAX_TOKEN:
            raise ValueError("it printed more than 64 KiB")
    raise TimeoutError
