"""Where a login is kept: the file, its lock, and what is in a token."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from codex_py.auth.login_store import FileStore, locked_login, open_store
from codex_py.auth.oauth import Tokens, account_of, claims_of, expires_at, has_expired, renewed_login, should_renew
from codex_py.errors import UserError
from tests.support.fake_issuer import make_jwt

LOGIN = {"auth_mode": "apikey", "OPENAI_API_KEY": "sk-0123456789", "later": [1, {"two": None}]}


def names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def test_a_login_is_private_and_comes_back_whole(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    store = FileStore(home)
    assert (store.load(), store.remove()) == ({}, False)
    store.save(LOGIN)
    store.save({**LOGIN, "more": True})
    path = home / "auth.json"
    assert store.load() == {**LOGIN, "more": True}
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(home.stat().st_mode)) == (0o600, 0o700)
    assert names(home) == ["auth.json"]
    assert (store.remove(), store.load(), names(home)) == (True, {}, [])


def test_a_login_that_cannot_be_saved_leaves_the_old_one(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.save(LOGIN)
    (tmp_path / "auth.json").unlink()
    (tmp_path / "auth.json").mkdir()
    with pytest.raises(UserError, match="cannot save the login"):
        store.save({"OPENAI_API_KEY": "sk-new"})
    assert names(tmp_path) == ["auth.json"]


async def test_who_holds_the_lock_is_alone(tmp_path: Path) -> None:
    inside, most = 0, 0

    async def change() -> None:
        nonlocal inside, most
        async with locked_login(tmp_path):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(change() for _ in range(3)))
    assert (inside, most) == (0, 1)
    assert stat.S_IMODE((tmp_path / "auth.json.lock").stat().st_mode) == 0o600


async def test_a_home_that_takes_no_lock_is_worked_in_without_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with locked_login(tmp_path / "file"):
        pass


def test_a_store_that_forgets_at_once_says_so(tmp_path: Path) -> None:
    store = open_store("ephemeral", tmp_path)
    assert (store.load(), store.remove()) == ({}, False)
    with pytest.raises(UserError, match="would be forgotten at once"):
        store.save(LOGIN)


@pytest.mark.parametrize(
    "token",
    ["", "a.b", "a.b.c.d", "sk-key", "a.!!!.c", "a.e30", "a.W10.c", "é.é.é", f"a.{'A' * 100_000}.c", "a.bnVsbA.c"],
)
def test_what_is_no_token_has_no_claims(token: str) -> None:
    assert (claims_of(token), expires_at(token), has_expired(token, now=0.0)) == ({}, None, False)


@pytest.mark.parametrize(
    ("claims", "moment"),
    [({"exp": 1000}, 1000.0), ({"exp": 1000.5}, 1000.5), ({"exp": "1000"}, None), ({"exp": True}, None), ({}, None)],
)
def test_a_token_says_when_it_ends(claims: dict[str, Any], moment: float | None) -> None:
    assert expires_at(make_jwt(claims)) == moment


@pytest.mark.parametrize(
    ("access", "refreshed", "now", "due"),
    [
        (make_jwt({"exp": 10_000}), "", 9_699.0, False),
        (make_jwt({"exp": 10_000}), "", 9_700.0, True),
        (make_jwt({"exp": 10_000}), "", 20_000.0, True),
        ("opaque", "1970-01-01T00:00:00.123456789Z", 8 * 86400.0 - 1, False),
        ("opaque", "1970-01-01T00:00:00Z", 8 * 86400.0, True),
        ("opaque", "yesterday", 1e9, False),
        ("opaque", "", 1e9, False),
    ],
)
def test_a_login_is_renewed_before_its_end_and_in_old_age(access: str, refreshed: str, now: float, due: bool) -> None:
    login = {"tokens": {"access_token": access}, "last_refresh": refreshed}
    assert should_renew(login, now=now) == due


def test_a_renewed_login_keeps_what_it_does_not_know() -> None:
    login = {"auth_mode": "chatgpt", "x": 1, "tokens": {"access_token": "a", "refresh_token": "r", "y": [2]}}
    renewed = renewed_login(login, Tokens("b"))
    assert renewed.pop("last_refresh").endswith("Z")
    assert renewed == {**login, "tokens": {"access_token": "b", "refresh_token": "r", "y": [2]}}
    assert json.dumps(login).count('"a"') == 1


def test_the_account_of_a_token_without_one_is_nobody() -> None:
    account = account_of(make_jwt({"https://api.openai.com/auth": 7, "email": ["x"]}))
    assert (account.id, account.email, account.plan) == ("", "", "")
