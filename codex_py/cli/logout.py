"""`codex-py logout`: forget the login of this machine, and tell its issuer."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from codex_py.cli import typer_options as options
from codex_py.cli.login_place import LoginHome, find_login_home
from codex_py.cli.typer_command import run_command
from codex_py.errors import ModelError, UserError
from codex_py.model.auth import KEY_VARIABLES
from codex_py.model.login_store import locked_login
from codex_py.model.login_tokens import stored_tokens
from codex_py.model.oauth import issuer_of, revoke_token
from codex_py.text.sanitize import sanitize_line


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py logout` with these arguments; give back the exit status."""
    return run_command(logout, arguments, name="logout")


def logout(overrides: options.Overrides = None, profile: options.Profile = None) -> int:
    """Forget the stored key or ChatGPT login; a ChatGPT login is also revoked, so that no copy of it works."""
    asyncio.run(_forget(find_login_home(overrides, profile)))
    for name in KEY_VARIABLES:
        if os.environ.get(name, "").strip():
            _tell(f"note: the environment variable `{name}` is still set, and still used")
    return 0


async def _forget(home: LoginHome) -> None:
    async with locked_login(home.path):
        warning = await _revoke(_stored(home))
        was_there = await asyncio.to_thread(home.store.remove)
    if warning:
        _tell(warning)
    _tell(f"signed out: the login in {home.store.where} is gone" if was_there else "not signed in")


def _stored(home: LoginHome) -> Mapping[str, Any]:
    try:
        return home.store.load()
    except UserError:
        # Broken, and about to be removed.
        return {}


async def _revoke(stored: Mapping[str, Any]) -> str | None:
    """Ask the issuer to end the login; gives back what went wrong."""
    tokens = stored_tokens(stored)
    if tokens is None or stored.get("auth_mode") == "apikey":
        return None
    try:
        issuer = issuer_of(stored, os.environ)
        if tokens.refresh:
            await revoke_token(issuer, tokens.refresh, kind="refresh_token")
        else:
            await revoke_token(issuer, tokens.access, kind="access_token")
    except (ModelError, UserError) as error:
        return f"warning: {error}; it is forgotten here, and ends by itself or at the issuer"
    return None


def _tell(line: str) -> None:
    print(sanitize_line(line), file=sys.stderr)
