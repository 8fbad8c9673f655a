"""Logins at MCP servers: kept, renewed where they came from, forgotten."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx2
import pytest

from codex_py.mcp.host import McpContext, auth_status, forget_login, login_key, login_secrets, renew_login
from codex_py.mcp.oauth import ServerLogin
from codex_py.mcp.servers import McpServer

SERVER = McpServer("srv", url="https://mcp.example/mcp")
METADATA = {
    "issuer": "https://id.example/",
    "authorization_endpoint": "https://id.example/authorize",
    "token_endpoint": "https://id.example/deep/token",
}


class Tokens:
    """The store, in memory."""

    def __init__(self, **entry: Any) -> None:
        self.kept: dict[str, Any] = {login_key(SERVER): entry} if entry else {}

    def load(self) -> Mapping[str, Any]:
        return self.kept

    def save(self, login: Mapping[str, Any]) -> None:
        self.kept = dict(login)


def kept(*, ends_in: float) -> Tokens:
    return Tokens(
        tokens={"access_token": "old-access", "token_type": "Bearer", "expires_in": 60, "refresh_token": "old-refresh"},
        client={"client_id": "client-1"},
        ends_at=time.time() + ends_in,
        issuer={"metadata": METADATA, "server": "https://id.example/"},
    )


async def used(tokens: Tokens) -> list[httpx2.Request]:
    """The requests that one request to the server comes to."""
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        if request.url.path == "/deep/token":
            return httpx2.Response(200, json={"access_token": "new-access", "token_type": "Bearer", "expires_in": 600})
        return httpx2.Response(200, json={})

    place = McpContext(home=Path(), cwd=Path(), env={}, version="1", tokens=tokens, mark={})
    async with httpx2.AsyncClient(auth=ServerLogin(SERVER, place), transport=httpx2.MockTransport(answer)) as client:
        await client.post("https://mcp.example/mcp", json={})
    return seen


async def test_a_login_that_holds_is_used_as_it_is() -> None:
    [request] = await used(kept(ends_in=600))
    assert request.headers["authorization"] == "Bearer old-access"


async def test_a_login_that_has_ended_is_renewed_where_it_came_from_and_kept() -> None:
    tokens = kept(ends_in=-5)
    renewal, request = await used(tokens)
    assert str(renewal.url) == "https://id.example/deep/token"
    form = parse_qs(renewal.content.decode())
    assert (form["grant_type"], form["refresh_token"]) == (["refresh_token"], ["old-refresh"])
    assert request.headers["authorization"] == "Bearer new-access"
    entry = tokens.kept[login_key(SERVER)]
    assert (entry["tokens"]["access_token"], entry["tokens"]["refresh_token"]) == ("new-access", "old-refresh")
    assert entry["ends_at"] > time.time() + 500
    assert login_secrets(SERVER, tokens) == ("new-access", "old-refresh")


@pytest.mark.parametrize("junk", [{"tokens": 7}, {"tokens": {"access_token": 1}}, {"issuer": [], "client": "x"}, {}])
async def test_what_is_no_login_counts_as_none(junk: dict[str, Any]) -> None:
    [request] = await used(Tokens(**junk))
    assert "authorization" not in request.headers


def test_a_login_is_forgotten_and_others_are_kept() -> None:
    tokens = kept(ends_in=600)
    tokens.kept["other|1"] = {"tokens": {}}
    assert auth_status(SERVER, tokens) == "o_auth"
    assert forget_login(SERVER, tokens)
    assert not forget_login(SERVER, tokens)
    assert tokens.kept == {"other|1": {"tokens": {}}}
    assert auth_status(SERVER, tokens) == "not_logged_in"
    assert auth_status(SERVER.replace(bearer_token_env_var="T"), tokens) == "bearer_token"
    assert auth_status(McpServer("x", command="x"), tokens) == "unsupported"


def test_a_login_is_put_back_when_there_is_no_new_one() -> None:
    tokens = kept(ends_in=600)
    before = dict(tokens.kept)
    with pytest.raises(KeyboardInterrupt), renew_login(SERVER, tokens):
        assert tokens.kept == {}
        raise KeyboardInterrupt
    assert tokens.kept == before
    with renew_login(SERVER, tokens):
        pass
    assert tokens.kept == {}
