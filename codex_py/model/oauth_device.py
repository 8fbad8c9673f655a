"""Signing in with a code that is typed on another device: for machines without a browser."""

from __future__ import annotations

import asyncio
import math
from typing import Final, NamedTuple

from codex_py.errors import ModelError
from codex_py.model.json_request import JsonAnswer, JsonRequest, fetch_json
from codex_py.model.login_tokens import Tokens
from codex_py.model.oauth import Issuer, error_message, exchange_code

CODE_MINUTES: Final = 15
_DEFAULT_INTERVAL: Final = 5.0
_SHORTEST_INTERVAL: Final = 0.1
_MAX_INTERVAL: Final = 60.0
# Answers that mean: the user has not typed the code yet.
_WAITING: Final = (403, 404)


class DeviceCode(NamedTuple):
    """What the user types, and where; `interval` is seconds between two questions to the issuer."""

    id: str
    user_code: str
    interval: float
    url: str


async def request_device_code(issuer: Issuer) -> DeviceCode:
    """Ask for a code. Raises `ModelError`, with advice where the issuer does not do this."""
    url = f"{issuer.url}/api/accounts/deviceauth/usercode"
    answer = await fetch_json(JsonRequest(url, json={"client_id": issuer.client_id}), ca_file=issuer.ca_file)
    if answer.status == 404:
        raise ModelError(
            "the issuer does not offer sign-in with a device code: it may have to be switched on for the account; "
            "use `codex-py login` without `--device-auth`",
            retryable=False,
        )
    id_, user_code = answer.body.get("device_auth_id"), answer.body.get("user_code") or answer.body.get("usercode")
    if not answer.is_success or not isinstance(id_, str) or not isinstance(user_code, str):
        raise ModelError(f"the issuer gave no device code: {error_message(answer)}", retryable=False)
    return DeviceCode(id_, user_code, _interval(answer.body.get("interval")), f"{issuer.url}/codex/device")


async def wait_for_tokens(issuer: Issuer, code: DeviceCode, *, seconds: float = CODE_MINUTES * 60) -> Tokens:
    """Ask until the user has typed the code; raises `ModelError` when they refuse, or after `seconds`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while (answer := await _poll(issuer, code)) is None:
        if loop.time() + code.interval > deadline:
            raise ModelError(f"nobody typed the code within {math.ceil(seconds / 60)} minutes", retryable=False)
        await asyncio.sleep(code.interval)
    authorization, verifier = answer.body.get("authorization_code"), answer.body.get("code_verifier")
    if not isinstance(authorization, str) or not isinstance(verifier, str):
        raise ModelError(f"the sign-in failed: {error_message(answer)}", retryable=False)
    return await exchange_code(
        issuer, authorization, verifier=verifier, redirect_uri=f"{issuer.url}/deviceauth/callback"
    )


async def _poll(issuer: Issuer, code: DeviceCode) -> JsonAnswer | None:
    """The issuer's answer; None while there is nothing to tell, a passing trouble included."""
    url = f"{issuer.url}/api/accounts/deviceauth/token"
    question = JsonRequest(url, json={"device_auth_id": code.id, "user_code": code.user_code})
    try:
        answer = await fetch_json(question, ca_file=issuer.ca_file)
    except ModelError as error:
        if error.retryable:
            return None
        raise
    if answer.is_success:
        return answer
    if answer.status in _WAITING or answer.status >= 500:
        return None
    raise ModelError(f"the sign-in was refused: {error_message(answer)}", retryable=False)


def _interval(value: object) -> float:
    """Seconds, which come as text or as a number."""
    try:
        seconds = float(value) if isinstance(value, str | int | float) else _DEFAULT_INTERVAL
    except ValueError:
        seconds = _DEFAULT_INTERVAL
    return min(max(seconds, _SHORTEST_INTERVAL), _MAX_INTERVAL) if math.isfinite(seconds) else _DEFAULT_INTERVAL
