"""Logins at a server with an issuer of its own, from the first sign-in to the last renewal; and other authorization."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from codex_py.config.load import ConfigRequest, load_config
from codex_py.mcp.build import make_mcp_context
from codex_py.mcp.connections import McpConnections
from codex_py.mcp.host import McpContext, McpFailed
from codex_py.mcp.login import McpCheck, try_server
from codex_py.mcp.servers import McpServer, read_server
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.mcp.conformance_client import Host, Tokens, browse
from tests.support.mcp_http import McpOverHttp
from tests.support.mcp_servers import server
from tests.support.mcp_turns import output_parts, texts, warnings
from tests.support.process import run
from tests.support.session import scripted_session, watched_session

LOGIN_NEEDED = "the MCP server `notes` is not available: the server wants a login: `codex-py mcp login notes`"


class User:
    """Tries the server `notes` of the configuration, and signs in where they are asked to."""

    def __init__(self, place: Place) -> None:
        loaded = load_config(ConfigRequest(home=place.codex_home, cwd=place.repo, env=place.env))
        self.server: McpServer = read_server("notes", loaded.config.mcp_servers["notes"])
        self._where = make_mcp_context(loaded, home=place.codex_home, cwd=place.repo, env=place.env)

    async def tries(self) -> McpCheck:
        return await try_server(self.server, self._where)

    async def signs_in(self) -> McpCheck:
        browsing: list[asyncio.Task[None]] = []

        def show(url: str) -> None:
            browsing.append(asyncio.create_task(browse(url)))

        trial = await try_server(self.server, self._where, show=show)
        await asyncio.gather(*browsing)
        return trial


async def test_a_login_is_got_kept_and_renewed(place: Place) -> None:
    with McpOverHttp(login=True) as issuer:
        place.configure(server("notes", url=issuer.url))
        assert (await User(place).tries()).error == LOGIN_NEEDED
        assert issuer.paths == ["/mcp"], "nothing is registered where nobody signs in"

        assert (await User(place).signs_in()).error is None
        [registered] = issuer.forms("/issuer/register")
        [question] = issuer.forms("/issuer/authorize")
        assert (registered["client_name"], registered["redirect_uris"]) == ("codex-py", [question["redirect_uri"]])
        assert (question["resource"], question["scope"], question["client_id"]) == (
            issuer.url,
            "notes:read",
            "client-1",
        )
        kept = place.codex_home / "mcp-auth.json"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert "refresh-token-1" in kept.read_text()

        assert (await User(place).tries()).error is None
        # Refused before its time: the login itself still holds.
        issuer.revoke()
        assert (await User(place).tries()).error is None
        assert [form["grant_type"] for form in issuer.forms("/issuer/token")] == ["authorization_code", "refresh_token"]
        [entry] = json.loads(kept.read_text()).values()
        assert entry["tokens"]["refresh_token"] == "refresh-token-2"

        # Renewed by another program, which has used up the word for it.
        issuer.revoke()
        mine = kept.read_text()
        assert (await User(place).tries()).error is None
        theirs, refreshed = kept.read_text(), len(issuer.forms("/issuer/token"))
        kept.write_text(mine)
        issuer.when_refused = lambda: kept.write_text(theirs)
        assert (await User(place).tries()).error is None
        assert len(issuer.forms("/issuer/token")) == refreshed

        issuer.when_refused = None
        issuer.revoke()
        issuer.refreshes.clear()
        assert (await User(place).tries()).error == LOGIN_NEEDED
        assert len(issuer.forms("/issuer/register")) == 1


async def test_a_token_that_has_ended_is_renewed_before_it_is_used(place: Place) -> None:
    with McpOverHttp(login=True, lifetime=1) as issuer:
        place.configure(server("notes", url=issuer.url, scopes=["notes:write"]))
        assert (await User(place).signs_in()).error is None
        assert issuer.forms("/issuer/authorize")[0]["scope"] == "notes:write"
        before = len(issuer.requests)
        assert (await User(place).tries()).error is None
    assert issuer.paths[before : before + 2] == ["/issuer/token", "/mcp"]


@pytest.mark.parametrize(
    ("env", "error"),
    [
        ({"TOKEN": "t0ken", "ORG": "acme"}, None),
        ({"TOKEN": "wr0ng", "ORG": "acme"}, "the server refuses the token in `TOKEN` (HTTP 403)"),
        ({"TOKEN": "t0ken", "ORG": "other"}, "the server refuses the token in `TOKEN` (HTTP 403)"),
        ({"TOKEN": "t0ken"}, "the environment variable `ORG` is not set"),
    ],
)
async def test_requests_carry_the_configured_headers(place: Place, env: dict[str, str], error: str | None) -> None:
    wanted = {"Authorization": "Bearer t0ken", "X-Team": "core", "X-Org": "acme"}
    keys = {"bearer_token_env_var": "TOKEN", "http_headers": {"X-Team": "core"}, "env_http_headers": {"X-Org": "ORG"}}
    with McpOverHttp(headers=wanted) as remote:
        place.configure(server("notes", url=remote.url, **keys))
        trial = await User(place.with_env(**env)).tries()
    assert trial.error == (error and f"the MCP server `notes` is not available: {error}")


async def test_a_login_that_is_got_elsewhere_is_used_by_the_next_call_of_a_running_session(place: Place) -> None:
    calls = [call(f"c{number}", "mcp__notes__whoami", {}) for number in range(2)]
    script = [[calls[0]], [say("one")], [calls[1]], [say("two")]]
    with McpOverHttp(login=True) as issuer, FakeResponses(*script) as model:
        async with watched_session(place, model, server("notes", url=issuer.url)) as watched:
            await watched.say("go")
            assert (await User(place).signs_in()).error is None
            await watched.say("again")
    assert model.requests[1].output_of("c0") == LOGIN_NEEDED
    # The answer has the token in it, which is no more to be read than any secret.
    [answer] = texts(output_parts(model.requests[3].body, "c1"))
    assert answer.startswith("Bearer ")
    assert "access-token" not in answer
    assert warnings(watched) == [LOGIN_NEEDED]


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"bearer_token_env_var": "MY_TOKEN"}, "the token in `MY_TOKEN`"),
        ({"http_headers": {"Cookie": "a=b"}}, "the header `Cookie`"),
        ({"http_headers": {"X-Api-Key": "k"}}, "the header `X-Api-Key`"),
        ({"http_headers": {"authorization": "Basic x"}}, "the header `authorization`"),
        ({"env_http_headers": {"x-org": "MY_TOKEN"}}, "the header `x-org`"),
        ({"url": "http://user:pw@192.0.2.1/mcp"}, "the user name in its address"),
        ({"url": "http://192.0.2.1/mcp?api_key=k"}, "`api_key` in its address"),
    ],
)
async def test_no_credential_is_sent_over_plain_http(place: Place, keys: dict[str, Any], what: str) -> None:
    table = server("s", **{"url": "http://192.0.2.1/mcp", **keys})
    async with scripted_session(place.with_env(MY_TOKEN="t0ken-value"), [say("done")], top=table) as (_, watched):
        await watched.say("go")
    assert warnings(watched) == [
        f"the MCP server `s` is not available: {what} would be sent to `192.0.2.1` without encryption:"
        " use `https://`, or set `allow_insecure_http = true` for this server"
    ]


async def test_a_login_is_not_sent_over_plain_http(place: Place) -> None:
    place.configure(server("s", url="http://192.0.2.1/mcp"))
    ended = run(place, "mcp", "login", "s", "--no-browser")
    assert ended.status == 1
    assert "its login would be sent to `192.0.2.1` without encryption" in ended.err


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_this_machine_gets_its_credentials_over_plain_http(place: Place, host: str) -> None:
    with McpOverHttp() as remote, FakeResponses([call("c", "mcp__s__whoami", {})], [say("done")]) as model:
        table = server(
            "s",
            url=remote.url.replace("127.0.0.1", host),
            bearer_token_env_var="MY_TOKEN",
            default_tools_approval_mode="approve",
        )
        async with watched_session(place.with_env(MY_TOKEN="t0ken-value"), model, table) as watched:
            await watched.say("go")
    assert any(headers.get("authorization") == "Bearer t0ken-value" for _, headers, _ in remote.requests)


async def test_the_user_may_allow_credentials_over_plain_http(tmp_path: Path) -> None:
    # Nothing answers there: only the reason tells whether it was tried.
    place = McpContext(home=tmp_path, cwd=tmp_path, env={"T": "x"}, version="1", tokens=Tokens(), mark={})
    allowed = McpServer("s", url="http://localhost.invalid/mcp", bearer_token_env_var="T", allow_insecure_http=True)
    connections = McpConnections([allowed], place, Host(tmp_path))
    with pytest.raises(McpFailed) as failed:
        await connections.link("s")
    await connections.close()
    assert "without encryption" not in str(failed.value)
