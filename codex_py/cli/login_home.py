"""Where the login of this machine is stored and what the configuration allows, for the commands that change it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from codex_py.config.load import ConfigRequest, load_config
from codex_py.core.model_connection import login_rules
from codex_py.model.auth import LoginRules
from codex_py.model.login_store import LoginStore, open_store
from codex_py.paths import codex_home
from codex_py.text.sanitize import sanitize_line


class LoginHome(NamedTuple):
    """`path` is CODEX_HOME."""

    path: Path
    rules: LoginRules
    store: LoginStore


def find_login_home(overrides: Sequence[str] | None, profile: str | None) -> LoginHome:
    """The store and the rules that the configuration names; its warnings go to stderr."""
    path = codex_home(os.environ)
    loaded = load_config(
        ConfigRequest(home=path, cwd=Path.cwd(), env=os.environ, overrides=tuple(overrides or ()), profile=profile)
    )
    for warning in loaded.warnings:
        print(sanitize_line(f"warning: {warning}"), file=sys.stderr)
    rules = login_rules(loaded.config)
    return LoginHome(path, rules, open_store(rules.store, path))


def masked_key(key: str) -> str:
    """Enough of a key to distinguish it from another one."""
    return f"{key[:8]}***{key[-5:]}" if len(key) > 20 else "***"
