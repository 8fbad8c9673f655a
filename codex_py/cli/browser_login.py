"""The two ways to sign in with ChatGPT: a browser on this machine, or a code that is typed on another one."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from codex_py.model.login_tokens import Tokens
from codex_py.model.oauth import Issuer, authorize_url, exchange_code, new_pkce
from codex_py.model.oauth_callback import listen_for_callback
from codex_py.model.oauth_device import CODE_MINUTES, request_device_code, wait_for_tokens
from codex_py.programs import program_finder
from codex_py.text.over_ssh import is_over_ssh

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
    """Send a browser to the issuer and wait for it to come back. Raises `ModelError` and `UserError`."""
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
    """Open an address; False where there is no browser for it, or nobody sits in front of it."""
    if is_over_ssh(os.environ):
        return False
    if sys.platform == "linux" and not any(os.environ.get(name) for name in _SCREENS):
        # What could be opened there is a text browser, on top of what this program says.
        return False
    # In a process of its own: it looks for browsers, and they for others, where commands may not write.
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
