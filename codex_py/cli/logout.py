"""`codex-py logout`: forget the login of this machine, and revoke it at its issuer."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

from codex_py.auth.find_credentials import KEY_ENV_NAMES
from codex_py.cli.login import LoginHome, find_login_home
from codex_py.cli.typer_command import Overrides, Profile, run_command
from codex_py.services.login import forget_login
from codex_py.text.sanitize import sanitize_line


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py logout` with these arguments; give back the exit status."""
    return run_command(logout, arguments, name="logout")


def logout(overrides: Overrides = None, profile: Profile = None) -> int:
    """Forget the stored key or ChatGPT login; a ChatGPT login is also revoked, so that no copy of it works."""
    asyncio.run(_forget(find_login_home(overrides, profile)))
    for name in KEY_ENV_NAMES:
        if os.environ.get(name, "").strip():
            _print_note(f"note: the environment variable `{name}` is still set, and still used")
    return 0


async def _forget(home: LoginHome) -> None:
    was_there, warning = await forget_login(home.store, home=home.path, env=os.environ)
    if warning:
        _print_note(warning)
    _print_note(f"signed out: the login in {home.store.where} is gone" if was_there else "not signed in")


def _print_note(line: str) -> None:
    print(sanitize_line(line), file=sys.stderr)
