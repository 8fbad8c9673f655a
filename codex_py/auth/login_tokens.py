"""What is in a ChatGPT login: reading its tokens, and the contents of auth.json with new ones.

The signature of a token is not checked: it came from the issuer over TLS, and decides nothing here but when to renew.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from codex_py.protocol.encoding import as_object, decode_json, timestamp
from codex_py.protocol.value import Value

# Long enough for a request that is about to start, and for a clock that is a little wrong.
_EARLY_SECONDS: Final = 300.0
# A token that does not say when it runs out.
_MAX_LIFETIME: Final = 8 * 86400.0
_MAX_BYTES: Final = 64 * 1024
_NAMES: Final = ("id_token", "access_token", "refresh_token")


class Tokens(Value):
    """What the issuer gives out. A renewal may leave out what stays as it was."""

    access: str
    refresh: str | None = None
    identity: str | None = None


class Account(Value):
    """Whose login it is, as far as its identity token says."""

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
    """When an access token runs out, in seconds since the epoch; None when it does not say."""
    moment = claims_of(access).get("exp")
    return float(moment) if isinstance(moment, int | float) and not isinstance(moment, bool) else None


def has_expired(access: str, *, now: float) -> bool:
    """Whether a request with the token cannot succeed any more."""
    moment = expires_at(access)
    return moment is not None and moment <= now


def should_renew(login: Mapping[str, Any], *, now: float) -> bool:
    """Whether a stored login is so near its end, or so old, that it is renewed before it is used."""
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
