"""ChatGPT logins: their tokens, the contents of auth.json, and the requests that get, renew and revoke them.

The signature of a token is not checked: it came from the issuer over TLS, and decides nothing here but when to renew.

Formats: RFC 6749, RFC 7636 (PKCE with S256), and what the reference client sends.
"""

from __future__ import annotations

import binascii
import hashlib
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlencode, urlsplit

from codex_py.errors import ModelError, UserError
from codex_py.model.error_bodies import on_one_line
from codex_py.model.json_request import JsonAnswer, JsonRequest, fetch_json
from codex_py.model.providers import checked_url
from codex_py.protocol.encoding import as_object, decode_json, timestamp
from codex_py.protocol.value import Value
from codex_py.text.address import is_plain_http

# Covers a request that is about to start, and a slightly wrong clock.
_EARLY_SECONDS: Final = 300.0
# For a token without an expiry time.
_MAX_LIFETIME: Final = 8 * 86400.0
_MAX_BYTES: Final = 64 * 1024
_NAMES: Final = ("id_token", "access_token", "refresh_token")


class Tokens(Value):
    """The tokens of a login. A renewal may leave out those that have not changed."""

    access: str
    refresh: str | None = None
    identity: str | None = None


class Account(Value):
    """The account in an identity token."""

    id: str = ""
    email: str = ""
    plan: str = ""


def claims_of(token: str) -> dict[str, Any]:
    """The claims of a JSON web token, unchecked; empty for anything else."""
    segments = token.split(".")
    if len(segments) != 3 or len(token) > _MAX_BYTES:
        return {}
    try:
        return as_object(decode_json(urlsafe_b64decode(segments[1] + "=" * (-len(segments[1]) % 4))))
    except (ValueError, binascii.Error):
        return {}


def account_of(identity: str) -> Account:
    """The account in an identity token."""
    claims = claims_of(identity)
    auth, profile = (
        as_object(claims.get("https://api.openai.com/auth")),
        as_object(claims.get("https://api.openai.com/profile")),
    )
    return Account(
        id=_text(auth.get("chatgpt_account_id")),
        email=_text(claims.get("email")) or _text(profile.get("email")),
        plan=_text(auth.get("chatgpt_plan_type")),
    )


def expires_at(access: str) -> float | None:
    """When an access token expires, in seconds since the epoch; None when it does not say."""
    moment = claims_of(access).get("exp")
    return float(moment) if isinstance(moment, int | float) and not isinstance(moment, bool) else None


def has_expired(access: str, *, now: float) -> bool:
    """Whether a request with the token cannot succeed any more."""
    moment = expires_at(access)
    return moment is not None and moment <= now


def should_renew(login: Mapping[str, Any], *, now: float) -> bool:
    """Whether a stored login expires so soon, or is so old, that it is renewed before it is used."""
    tokens = as_object(login.get("tokens"))
    moment = expires_at(_text(tokens.get("access_token")))
    if moment is not None:
        return moment <= now + _EARLY_SECONDS
    refreshed = _moment(_text(login.get("last_refresh")))
    return refreshed is not None and refreshed + _MAX_LIFETIME <= now


def read_tokens(answer: Mapping[str, Any]) -> Tokens | None:
    """The tokens in an issuer's answer; None when there is no access token in it."""
    identity, access, refresh = (_text(answer.get(name)) for name in _NAMES)
    return Tokens(access, refresh or None, identity or None) if access else None


def stored_tokens(login: Mapping[str, Any]) -> Tokens | None:
    """The tokens of a stored login."""
    return read_tokens(as_object(login.get("tokens")))


def key_login(key: str) -> dict[str, Any]:
    """The contents of auth.json for an API key."""
    return {"auth_mode": "apikey", "OPENAI_API_KEY": key}


def chatgpt_login(tokens: Tokens, *, issuer: str, client_id: str) -> dict[str, Any]:
    """The contents of auth.json for a ChatGPT login."""
    return {
        "auth_mode": "chatgpt",
        "OPENAI_API_KEY": None,
        "tokens": {
            "id_token": tokens.identity or "",
            "access_token": tokens.access,
            "refresh_token": tokens.refresh or "",
            "account_id": account_of(tokens.identity or "").id or account_of(tokens.access).id or None,
            "oauth_provenance": {"issuer": issuer, "client_id": client_id},
        },
        "last_refresh": timestamp(),
    }


def renewed_login(login: Mapping[str, Any], tokens: Tokens) -> dict[str, Any]:
    """The same login with new tokens; whatever else is in it stays."""
    renewed = {"id_token": tokens.identity, "access_token": tokens.access, "refresh_token": tokens.refresh}
    stored = as_object(login.get("tokens"))
    new = {**stored, **{name: value for name, value in renewed.items() if value}}
    return {**login, "tokens": new, "last_refresh": timestamp()}


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _moment(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text[:19] + "+00:00").timestamp()
    except ValueError:
        return None


ISSUER_URL: Final = "https://auth.openai.com"
# Public by nature: it says which program asks.
CLIENT_ID: Final = "app_EMoamEEZ73f0CkXaXp7hrann"
_SCOPES: Final = "openid profile email offline_access api.connectors.read api.connectors.invoke"
_ORIGINATOR: Final = "codex_cli_rs"

RefreshReason = Literal["proactive_expiry", "unauthorized_recovery"]


class Issuer(Value):
    """An issuer of tokens. `refresh_url` and `revoke_url` are below `url` unless the environment overrides them."""

    url: str = ISSUER_URL
    client_id: str = CLIENT_ID
    refresh_url: str = ""
    revoke_url: str = ""
    ca_file: str | None = None

    @property
    def token_url(self) -> str:
        return f"{self.url}/oauth/token"


class Pkce(NamedTuple):
    """The secret of one sign-in, and its hash, which is sent first."""

    verifier: str
    challenge: str


class RefreshRefused(ModelError):
    """The issuer refuses to renew this login: the user has to sign in again."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retryable=False)
        self.failure = "auth"


def find_issuer(env: Mapping[str, str], *, url: str | None = None, client_id: str | None = None) -> Issuer:
    """The issuer at `url`, else the usual one. Raises `UserError` for an address that is not safe to sign in at."""
    base = _safe_url(url, "the issuer") if url else ISSUER_URL
    refresh, revoke = "CODEX_REFRESH_TOKEN_URL_OVERRIDE", "CODEX_REVOKE_TOKEN_URL_OVERRIDE"
    return Issuer(
        base,
        client_id or CLIENT_ID,
        _safe_url(env[refresh], f"`{refresh}`") if env.get(refresh) else f"{base}/oauth/token",
        _safe_url(env[revoke], f"`{revoke}`") if env.get(revoke) else f"{base}/oauth/revoke",
        env.get("CODEX_CA_CERTIFICATE") or env.get("SSL_CERT_FILE") or None,
    )


def issuer_of(login: Mapping[str, Any], env: Mapping[str, str]) -> Issuer:
    """The issuer that a stored login came from."""
    origin = as_object(as_object(login.get("tokens")).get("oauth_provenance"))
    url, client_id = origin.get("issuer"), origin.get("client_id")
    return find_issuer(
        env,
        url=url if isinstance(url, str) and url else None,
        client_id=client_id if isinstance(client_id, str) and client_id else None,
    )


def new_pkce() -> Pkce:
    """A fresh verifier of 64 random bytes and its SHA-256."""
    verifier = secrets.token_urlsafe(64)
    digest = hashlib.sha256(verifier.encode()).digest()
    return Pkce(verifier, urlsafe_b64encode(digest).rstrip(b"=").decode())


def authorize_url(
    issuer: Issuer, *, redirect_uri: str, challenge: str, state: str, workspaces: Sequence[str] = ()
) -> str:
    """The address at which the user signs in."""
    query = {
        "response_type": "code",
        "client_id": issuer.client_id,
        "redirect_uri": redirect_uri,
        "scope": _SCOPES,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "id_token_add_organizations": "true",
        "codex_cli_simplified_flow": "true",
        "state": state,
        "originator": _ORIGINATOR,
    }
    if workspaces:
        query["allowed_workspace_id"] = ",".join(workspaces)
    return f"{issuer.url}/oauth/authorize?{urlencode(query)}"


async def exchange_code(issuer: Issuer, code: str, *, verifier: str, redirect_uri: str) -> Tokens:
    """Turn the code of a sign-in into tokens. Raises `ModelError`."""
    form = {
        "grant_type": "authorization_code",
        "client_id": issuer.client_id,
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": verifier,
    }
    answer = await fetch_json(JsonRequest(issuer.token_url, form=form), ca_file=issuer.ca_file)
    tokens = read_tokens(answer.body) if answer.is_success else None
    if tokens is None:
        raise ModelError(f"the sign-in was refused: {error_message(answer)}", retryable=False)
    return tokens


async def refresh_tokens(issuer: Issuer, refresh_token: str, *, reason: RefreshReason) -> Tokens:
    """Renew a login. Raises `RefreshRefused` when the issuer refuses, and `ModelError` when it cannot be reached."""
    body = {
        "client_id": issuer.client_id,
        "grant_type": "refresh_token",
        "refresh_reason": reason,
        "refresh_token": refresh_token,
    }
    answer = await fetch_json(JsonRequest(issuer.refresh_url, json=body), ca_file=issuer.ca_file)
    tokens = read_tokens(answer.body) if answer.is_success else None
    if tokens is not None:
        return tokens
    if answer.status in (400, 401, 403):
        raise RefreshRefused(f"the ChatGPT login has ended: {_refusal(answer)}; sign in again with `codex-py login`")
    raise ModelError(
        f"the ChatGPT login could not be renewed: {error_message(answer)}",
        retryable=answer.status == 429 or answer.status >= 500,
    )


async def revoke_token(issuer: Issuer, token: str, *, token_type: Literal["refresh_token", "access_token"]) -> None:
    """Make a token worthless. Raises `ModelError` when the issuer does not say that it is."""
    body = {"token": token, "token_type_hint": token_type, "client_id": issuer.client_id}
    answer = await fetch_json(JsonRequest(issuer.revoke_url, json=body, seconds=10.0), ca_file=issuer.ca_file)
    if not answer.is_success:
        raise ModelError(f"the issuer did not revoke the login: {error_message(answer)}", retryable=False)


def error_message(answer: JsonAnswer) -> str:
    """The status and the reason of an answer that is not what was asked for; no part of a token."""
    code, text = refusal_in(answer)
    reason = text or code
    if answer.is_success:
        return "no token in the answer" + (f" ({reason})" if reason else "")
    return f"{answer.status} {reason}".strip()


def refusal_in(answer: JsonAnswer) -> tuple[str, str]:
    """Code and description of an OAuth error, or of an API error; empty where it has none."""
    error = answer.body.get("error")
    if isinstance(error, str):
        return on_one_line(error, 80), on_one_line(str(answer.body.get("error_description") or ""), 300)
    found = as_object(error)
    code = found.get("code") or found.get("type") or answer.body.get("code") or ""
    return on_one_line(str(code), 80), on_one_line(str(found.get("message") or answer.body.get("message") or ""), 300)


def _refusal(answer: JsonAnswer) -> str:
    code, text = refusal_in(answer)
    match code:
        case "refresh_token_reused":
            return "another program has used its refresh token"
        case "refresh_token_expired":
            return "it was not used for too long"
        case "refresh_token_invalidated" | "refresh_token_revoked":
            return "it was revoked"
        case _:
            return text or code or f"the issuer answered {answer.status}"


def _safe_url(url: str, source: str) -> str:
    checked = checked_url(url, source)
    if is_plain_http(checked):
        raise UserError(
            f"{source} would send a login to `{urlsplit(checked).hostname}` without encryption", hint="use https"
        )
    return checked
