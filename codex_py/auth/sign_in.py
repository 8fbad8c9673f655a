"""Signing in with ChatGPT: in a browser on this machine, or with a code that is typed on another one."""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from codex_py.auth.oauth import Issuer, Tokens, authorize_url, error_message, exchange_code, new_pkce
from codex_py.auth.oauth_callback import listen_for_callback
from codex_py.errors import ModelError
from codex_py.model.json_request import JsonAnswer, JsonRequest, fetch_json
from codex_py.programs import is_over_ssh, program_finder

CODE_MINUTES: Final = 15
_DEFAULT_INTERVAL: Final = 5.0
_SHORTEST_INTERVAL: Final = 0.1
_MAX_INTERVAL: Final = 60.0
# Answers that mean: the user has not typed the code yet.
_WAITING: Final = (403, 404)


class DeviceCode(NamedTuple):
    """The code the user types and the page to type it on; `interval` is the seconds between two polls of the issuer."""

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
    """The issuer's answer; None while the user has not signed in, and after a temporary failure."""
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


_SCREENS: Final = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME")
_OPEN: Final = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"


async def sign_in_with_browser(
    issuer: Issuer,
    home: Path,
    *,
    workspaces: Sequence[str],
    open_browser: bool,
    port: int,
    notify: Callable[[str], None],
) -> Tokens:
    """Open the issuer in a browser and wait for the redirect. Raises `ModelError` and `UserError`."""
    pkce, state = new_pkce(), secrets.token_urlsafe(32)
    async with listen_for_callback(state, home, port=port) as callback:
        url = authorize_url(
            issuer, redirect_uri=callback.uri, challenge=pkce.challenge, state=state, workspaces=workspaces
        )
        notify("sign in with your browser at this address:")
        notify(f"  {url}")
        if open_browser and not await asyncio.to_thread(show_in_browser, url):
            notify(_no_browser(callback.uri))
        notify("waiting for the browser; Ctrl-C gives up")
        code = await callback.wait()
        return await exchange_code(issuer, code, verifier=pkce.verifier, redirect_uri=callback.uri)


async def sign_in_with_code(issuer: Issuer, *, notify: Callable[[str], None]) -> Tokens:
    """Show a code and wait until it is typed at the issuer. Raises `ModelError`."""
    code = await request_device_code(issuer)
    notify(f"open {code.url} on any device and sign in")
    notify(f"then type this code, which is good for {CODE_MINUTES} minutes: {code.user_code}")
    notify("go on only if you started this yourself: whoever sends you such a code wants your account")
    return await wait_for_tokens(issuer, code)


def show_in_browser(url: str) -> bool:
    """Open an address in a browser; False where there is none, or the user is on another machine."""
    if is_over_ssh(os.environ):
        return False
    if sys.platform == "linux" and not any(os.environ.get(name) for name in _SCREENS):
        # Only a text browser could be opened, over this program's output.
        return False
    # In its own process, with a PATH of directories that commands may not write.
    trusted = program_finder(os.environ, Path.cwd()).trusted_path()
    opening = subprocess.run([sys.executable, "-I", "-c", _OPEN, url], env={**os.environ, "PATH": trusted}, check=False)
    return opening.returncode == 0


def _no_browser(callback: str) -> str:
    port = urlsplit(callback).port
    if is_over_ssh(os.environ):
        return (
            "over ssh no browser is opened: `codex-py login --device-auth` works with one on any machine; this address "
            f"only with what it comes back to on this one, as `ssh -L {port}:localhost:{port}` has it"
        )
    return "no browser could be opened: open it yourself, or use `codex-py login --device-auth`"
