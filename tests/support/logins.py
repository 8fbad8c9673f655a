"""Stored logins for tests."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from tests.support.fake_issuer import Json
from tests.support.home import Place


def stored_login(tokens: Json, *, account: str = "acc-1", **more: Any) -> Json:
    """The contents of auth.json for a ChatGPT login, as the reference client writes it."""
    return {
        "auth_mode": "chatgpt",
        "OPENAI_API_KEY": None,
        "tokens": {**tokens, "account_id": account},
        "last_refresh": "2026-11-01T12:00:00.000Z",
        **more,
    }


def auth_file(place: Place) -> Path:
    return place.codex_home / "auth.json"


def save_login(place: Place, login: Json) -> None:
    auth_file(place).write_text(json.dumps(login))
    auth_file(place).chmod(0o600)


def read_login(place: Place) -> Json:
    login: Json = json.loads(auth_file(place).read_text())
    return login


def mode(path: Path) -> int:
    """Its permissions."""
    return stat.S_IMODE(path.stat().st_mode)
