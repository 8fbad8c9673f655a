"""`codex-py login` and `logout`: sign in with ChatGPT or an API key, show who is signed in, and sign out."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from codex_py.auth.find_credentials import KEY_ENV_NAMES, LoginRules, check_key, check_workspace, stored_credentials
from codex_py.auth.login_store import LoginStore, locked_login, open_store
from codex_py.auth.oauth import (
    Issuer,
    Tokens,
    account_of,
    chatgpt_login,
    expires_at,
    find_issuer,
    has_expired,
    key_login,
    stored_tokens,
)
from codex_py.auth.oauth_callback import CALLBACK_PORT
from codex_py.auth.sign_in import sign_in_with_browser, sign_in_with_code
from codex_py.cli.console import load_local_config, print_note, print_warnings
from codex_py.cli.typer_command import Json, Overrides, Profile, run_command
from codex_py.core.model_setup import login_rules
from codex_py.errors import ModelError, UsageError, UserError
from codex_py.protocol.encoding import timestamp
from codex_py.services.login import (
    find_keyed_provider,
    forget_login,
    keep_provider_key,
    provider_key_store,
    stored_provider_keys,
)
from codex_py.text.sanitize import sanitize_line


class LoginHome(NamedTuple):
    """`path` is CODEX_HOME."""

    path: Path
    rules: LoginRules
    store: LoginStore


def find_login_home(overrides: Sequence[str] | None, profile: str | None) -> LoginHome:
    """The login store and the login rules of the configuration."""
    home, _, loaded = load_local_config(overrides, profile)
    rules = login_rules(loaded.config)
    return LoginHome(home, rules, open_store(rules.store, home))


def masked_key(key: str) -> str:
    """A key with only enough of it shown to tell it from another one."""
    return f"{key[:8]}***{key[-5:]}" if len(key) > 20 else "***"


_MAX_KEY_BYTES: Final = 64 * 1024


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py login` or `codex-py login status`; give back the exit status."""
    words = list(arguments)
    index = next((index for index, word in enumerate(words) if word == "status"), None)
    if index is not None and words[index - 1 : index] not in (["-c"], ["--config"], ["-p"], ["--profile"]):
        return run_command(status, words[:index] + words[index + 1 :], name="login status")
    return run_command(login, words, name="login")


def login(
    with_api_key: Annotated[
        bool, typer.Option("--with-api-key", help="Read an API key from stdin and keep it; no browser.")
    ] = False,
    provider: Annotated[
        str | None,
        typer.Option("--provider", metavar="NAME", help="With --with-api-key: whose key it is; OpenAI unless named."),
    ] = None,
    with_access_token: Annotated[
        bool,
        typer.Option(
            "--with-access-token", help="Read the access token of a ChatGPT login from stdin; it is not renewed."
        ),
    ] = False,
    device_auth: Annotated[
        bool, typer.Option("--device-auth", help="Show a code to type on another device; for machines without browser.")
    ] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address; open it yourself.")] = False,
    overrides: Overrides = None,
    profile: Profile = None,
    issuer: Annotated[
        str | None, typer.Option("--issuer", "--experimental_issuer", metavar="URL", help="Sign in at another issuer.")
    ] = None,
    client_id: Annotated[
        str | None, typer.Option("--client-id", "--experimental_client-id", metavar="ID", hidden=True)
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, hidden=True)] = CALLBACK_PORT,
) -> int:
    """Sign in with a ChatGPT account, in a browser on this machine.

    `printenv OPENAI_API_KEY | codex-py login --with-api-key` keeps an API key instead, and with `--provider anthropic`
    that of another provider. `codex-py login status` says who is signed in, `codex-py logout` ends it. The login is
    shared with other programs that use the same CODEX_HOME.
    """
    if (with_api_key or with_access_token) and (device_auth or no_browser or issuer):
        flag, what = ("--with-api-key", "key") if with_api_key else ("--with-access-token", "token")
        raise UsageError(f"`{flag}` takes a {what} from stdin and signs in nowhere", hint="leave the others out")
    if with_api_key and with_access_token:
        raise UsageError("`--with-api-key` and `--with-access-token` both read stdin", hint="leave one out")
    if provider is not None and not with_api_key:
        raise UsageError("`--provider` goes with `--with-api-key`", hint="leave it out to sign in with ChatGPT")
    home = find_login_home(overrides, profile)
    if with_api_key:
        _save_key(home, provider or "openai")
        return 0
    if home.rules.method == "api":
        raise UserError(
            "only an API key may be used here (`forced_login_method`)", hint="use `codex-py login --with-api-key`"
        )
    if with_access_token:
        _save_access_token(home)
        return 0
    endpoint = find_issuer(os.environ, url=issuer, client_id=client_id)
    try:
        tokens = asyncio.run(_sign_in(home, endpoint, by_code=device_auth, open_browser=not no_browser, port=port))
        asyncio.run(_save_tokens(home, endpoint, tokens))
    except ModelError as error:
        raise UserError(str(error)) from error
    return 0


def status(
    overrides: Overrides = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Say how this machine is signed in; the exit status is 1 when it is not."""
    home = find_login_home(overrides, profile)
    if home.rules.method != "chatgpt":
        for name in _key_variables()[:1]:
            print_note(f"note: the environment variable `{name}` is set, and used before any stored login")
    for name, key in stored_provider_keys(provider_key_store(home.rules, home.path)).items():
        print_note(f"note: a key is stored for `{name}`: {masked_key(key)}")
    stored = home.store.load()
    found = stored_credentials(stored, home.store.where, home.rules)
    if found is None:
        print(json.dumps({"method": None}) if as_json else "not signed in; `codex-py login` changes that")
        return 1
    if not found.is_chatgpt:
        shown = masked_key(found.token or "")
        record = {"method": "api", "key": shown, "store": home.store.name}
        print(json.dumps(record) if as_json else f"API key configured: {shown} (in {home.store.where})")
        return 0
    tokens = stored_tokens(stored)
    account = account_of((tokens.identity or tokens.access) if tokens else "")
    record = {
        "method": "chatgpt",
        "email": account.email or None,
        "plan": account.plan or None,
        "workspace": found.account or None,
        "store": home.store.name,
    }
    known = ", ".join(filter(None, [account.email, account.plan and f"plan {account.plan}"]))
    line = "signed in with ChatGPT" + (f" as {known}" if known else "") + f" (in {home.store.where})"
    print(json.dumps(record) if as_json else sanitize_line(line))
    return 0


def run_logout(arguments: Sequence[str]) -> int:
    """Run `codex-py logout`; give back the exit status."""
    return run_command(logout, arguments, name="logout")


def logout(overrides: Overrides = None, profile: Profile = None) -> int:
    """Forget the stored key or ChatGPT login; a ChatGPT login is also revoked, so that no copy of it works."""
    asyncio.run(_forget(find_login_home(overrides, profile)))
    for name in _key_variables():
        print_note(f"note: the environment variable `{name}` is still set, and still used")
    return 0


async def _forget(home: LoginHome) -> None:
    was_there, warning = await forget_login(home.store, home=home.path, env=os.environ)
    keys = provider_key_store(home.rules, home.path)
    if await asyncio.to_thread(keys.remove):
        print_note(f"the keys of providers in {keys.where} are gone")
    if warning:
        print_note(warning)
    print_note(f"signed out: the login in {home.store.where} is gone" if was_there else "not signed in")


async def _sign_in(home: LoginHome, issuer: Issuer, *, by_code: bool, open_browser: bool, port: int) -> Tokens:
    if by_code:
        return await sign_in_with_code(issuer, notify=print_note)
    return await sign_in_with_browser(
        issuer, home.path, workspaces=home.rules.workspaces, open_browser=open_browser, port=port, notify=print_note
    )


async def _save_tokens(home: LoginHome, issuer: Issuer, tokens: Tokens) -> None:
    content = chatgpt_login(tokens, issuer=issuer.url, client_id=issuer.client_id)
    check_workspace(content["tokens"]["account_id"] or "", home.rules)
    await _save(home, content)
    account = account_of(tokens.identity or tokens.access)
    print_note("signed in with ChatGPT" + (f" as {account.email}" if account.email else ""))
    for name in _key_variables()[:1]:
        print_warnings(f"the environment variable `{name}` is set, and used before this login; unset it to use it")


def _save_key(home: LoginHome, provider: str) -> None:
    owner = find_keyed_provider(provider)
    if owner.id != "openai":
        key = _read_secret(
            "API key", f"printenv {owner.variable} | codex-py login --with-api-key --provider {owner.id}"
        )
        store = asyncio.run(keep_provider_key(owner, key, home=home.path, rules=home.rules))
        print_note(f"kept the API key {masked_key(key)} for {owner.name} in {store.where}")
        return
    if home.rules.method == "chatgpt":
        raise UserError("only a ChatGPT login may be used here (`forced_login_method`)", hint="use `codex-py login`")
    key = _read_secret("API key", "printenv OPENAI_API_KEY | codex-py login --with-api-key")
    asyncio.run(_save(home, key_login(key)))
    print_note(f"kept the API key {masked_key(key)} in {home.store.where}; it is checked when a request is sent")


def _save_access_token(home: LoginHome) -> None:
    token = _read_secret("access token", "printenv CODEX_ACCESS_TOKEN | codex-py login --with-access-token")
    if has_expired(token, now=time.time()):
        raise UsageError(
            "the access token on stdin has run out", hint="get a new one, or sign in with `codex-py login`"
        )
    issuer = find_issuer(os.environ)
    asyncio.run(_save_tokens(home, issuer, Tokens(token)))
    end = expires_at(token)
    until = f"until {timestamp(end)[:16].replace('T', ' ')} UTC" if end else "until the server refuses it"
    print_note(f"the access token is used {until}; it cannot be renewed")


def _read_secret(what: str, example: str) -> str:
    """Read the one line on stdin as a key."""
    if sys.stdin.isatty():
        print_note(f"paste the {what}, then press Enter and Ctrl-D")
    try:
        key = check_key(_read_stdin(), "stdin")
    except UserError as error:
        raise UsageError(str(error), hint=error.hint) from error
    if not key:
        raise UsageError(f"no {what} on stdin", hint=f"for example: `{example}`")
    return key


async def _save(home: LoginHome, content: dict[str, object]) -> None:
    async with locked_login(home.path):
        await asyncio.to_thread(home.store.save, content)


def _read_stdin() -> str:
    raw = sys.stdin.buffer.read(_MAX_KEY_BYTES + 2)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("the key on stdin is not text", hint="it is one line of visible ASCII characters") from error


def _key_variables() -> list[str]:
    """The environment variables with a key, the one that is used first."""
    return [name for name in KEY_ENV_NAMES if os.environ.get(name, "").strip()]
