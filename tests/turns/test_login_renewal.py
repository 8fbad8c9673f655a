"""A ChatGPT login that runs out, is refused, or is renewed by somebody else; and commands that print tokens."""

from __future__ import annotations

import asyncio
import json
import stat

import pytest

from codex_py.protocol import events
from tests.support.fake_issuer import FakeIssuer, Json, make_jwt, make_tokens
from tests.support.fake_responses import FakeResponses, Play, Request, Stream, api_error, call, say
from tests.support.home import Place
from tests.support.logins import auth_file, read_login, save_login, stored_login
from tests.support.session import scripted_session, watched_session


def bearer(request: Request) -> str:
    return request.headers["authorization"].removeprefix("Bearer ")


def only_for(token: str, answer: Stream) -> Play:
    """An answer for the right token; a 401 for any other."""
    return lambda request: answer if bearer(request) == token else [api_error(401, f"bad token {bearer(request)}")]


def signed_in(place: Place, issuer: FakeIssuer) -> Place:
    """A place whose login is the issuer's latest."""
    save_login(place, stored_login(issuer.give(), my_field={"kept": True}))
    return place.with_env(CODEX_REFRESH_TOKEN_URL_OVERRIDE=issuer.token_url)


async def test_a_login_near_its_end_is_renewed_before_it_is_used(place: Place) -> None:
    with FakeIssuer(lifetime=60) as issuer, FakeResponses([say("done")]) as model:
        place = signed_in(place, issuer)
        async with watched_session(place, model, requires_openai_auth=True) as watched:
            ended = await watched.say("go")

        assert isinstance(ended, events.TurnCompleted)
        new = issuer.issued_tokens[-1]
        assert [issuer.requests, bearer(model.requests[0]), len(issuer.issued_tokens)] == [
            [
                (
                    "/oauth/token",
                    {
                        "client_id": "app_EMoamEEZ73f0CkXaXp7hrann",
                        "grant_type": "refresh_token",
                        "refresh_reason": "proactive_expiry",
                        "refresh_token": "refresh-token-1",
                    },
                )
            ],
            new["access_token"],
            2,
        ]
        stored = read_login(place)
        assert stored["tokens"] == {**new, "account_id": "acc-1"}
        assert stored["my_field"] == {"kept": True}
        assert stored["last_refresh"] > "2026-11-01"
        assert stat.S_IMODE(auth_file(place).stat().st_mode) == 0o600


async def test_a_login_that_still_holds_is_left_alone(place: Place) -> None:
    with FakeIssuer() as issuer, FakeResponses([say("done")]) as model:
        place = signed_in(place, issuer)
        async with watched_session(place, model, requires_openai_auth=True) as watched:
            await watched.say("go")

        assert issuer.requests == []
        assert model.requests[0].headers["chatgpt-account-id"] == "acc-1"


async def test_a_refused_login_is_renewed_once_and_the_request_is_sent_again(place: Place) -> None:
    with FakeIssuer() as issuer:
        fresh = issuer.tokens(2)["access_token"]
        with FakeResponses(api_error(401, "expired"), only_for(fresh, [say("done")])) as model:
            place = signed_in(place, issuer)
            async with watched_session(place, model, requires_openai_auth=True) as watched:
                ended = await watched.say("go")
                retried = watched.of(events.Retrying)

        assert isinstance(ended, events.TurnCompleted)
        assert retried == []
        assert [fields["refresh_reason"] for _, fields in issuer.requests] == ["unauthorized_recovery"]


async def test_a_login_that_is_refused_even_when_renewed_ends_the_turn(place: Place) -> None:
    with FakeIssuer() as issuer, FakeResponses(api_error(401, "no"), api_error(401, "no")) as model:
        place = signed_in(place, issuer)
        async with watched_session(place, model, requires_openai_auth=True) as watched:
            ended = await watched.say("go")

        assert isinstance(ended, events.TurnFailed)
        assert ended.message == "401 Unauthorized: no; sign in again with `codex-py login`"
        assert len(issuer.requests) == 1


async def test_a_login_that_another_program_has_renewed_is_taken_over(place: Place) -> None:
    with FakeIssuer() as issuer:
        old, new = issuer.give(), issuer.give()
        save_login(place, stored_login(old))

        def renew_elsewhere(request: Request) -> Stream:
            save_login(place, stored_login(new))
            return [api_error(401, "expired")]

        with FakeResponses(renew_elsewhere, only_for(new["access_token"], [say("done")])) as model:
            place = place.with_env(CODEX_REFRESH_TOKEN_URL_OVERRIDE=issuer.token_url)
            async with watched_session(place, model, requires_openai_auth=True) as watched:
                ended = await watched.say("go")

        assert isinstance(ended, events.TurnCompleted)
        assert issuer.requests == []


async def test_two_sessions_renew_one_login_once(place: Place) -> None:
    with FakeIssuer(lifetime=3600) as issuer:
        save_login(place, stored_login({**issuer.give(), "access_token": make_jwt({"exp": 1})}))
        place = place.with_env(CODEX_REFRESH_TOKEN_URL_OVERRIDE=issuer.token_url)
        fresh = issuer.tokens(2)["access_token"]
        both = {"threads"}
        with FakeResponses(*[only_for(fresh, [say("done")])] * 2, excuse=both) as model:
            async with (
                watched_session(place, model, requires_openai_auth=True) as one,
                watched_session(place, model, requires_openai_auth=True) as other,
            ):
                ended = await asyncio.gather(one.say("go"), other.say("go"))

        assert [type(event) for event in ended] == [events.TurnCompleted] * 2
        assert len(issuer.requests) == 1


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("refresh_token_reused", "another program has used its refresh token"),
        ("refresh_token_expired", "it was not used for too long"),
        ("refresh_token_invalidated", "it was revoked"),
    ],
)
async def test_a_login_that_cannot_be_renewed_is_one_clear_error(place: Place, code: str, reason: str) -> None:
    refuse = {"/oauth/token": (401, {"error": {"code": code, "message": "no"}})}
    with FakeIssuer(lifetime=-10, refuse=refuse) as issuer, FakeResponses() as model:
        place = signed_in(place, issuer)
        async with watched_session(place, model, requires_openai_auth=True) as watched:
            ended = await watched.say("go")

    assert isinstance(ended, events.TurnFailed)
    assert ended.message == f"the ChatGPT login has ended: {reason}; sign in again with `codex-py login`"
    assert (len(issuer.requests), model.requests) == (1, [])


async def test_an_issuer_in_trouble_does_not_stop_a_login_that_still_holds(place: Place) -> None:
    refuse: dict[str, tuple[int, Json]] = {"/oauth/token": (503, {})}
    with FakeIssuer(lifetime=60, refuse=refuse) as issuer, FakeResponses([say("one")], [say("two")]) as model:
        place = signed_in(place, issuer)
        async with watched_session(place, model, requires_openai_auth=True) as watched:
            ended = [await watched.say("go"), await watched.say("on")]

    assert [type(event) for event in ended] == [events.TurnCompleted] * 2
    # Not asked again before every request.
    assert len(issuer.requests) == 1


async def test_a_login_that_changed_hands_is_not_used(place: Place) -> None:
    with FakeIssuer() as issuer:
        place = signed_in(place, issuer)

        def change_account(request: Request) -> Stream:
            save_login(place, stored_login(make_tokens(7), account="acc-2"))
            return [api_error(401, "expired")]

        async with scripted_session(place, change_account, requires_openai_auth=True) as (_, watched):
            ended = await watched.say("go")

    assert isinstance(ended, events.TurnFailed)
    assert "changed to another account" in ended.message


async def test_new_tokens_are_secrets_from_the_moment_they_are_there(place: Place) -> None:
    with FakeIssuer(lifetime=60) as issuer:
        secret = issuer.tokens(2)
        leak = call("c1", "exec_command", {"cmd": f"echo {secret['refresh_token']}-x"})
        with FakeResponses([leak], [say(f"found {secret['refresh_token']}")]) as model:
            place = signed_in(place, issuer)
            async with watched_session(place, model, requires_openai_auth=True) as watched:
                ended = await watched.say("go")

    assert isinstance(ended, events.TurnCompleted)
    assert ended.last_message == "found [redacted]"
    [rollout] = place.rollouts()
    kept = rollout.read_text()
    assert [value for value in secret.values() if value in kept] == []
    assert model.requests[1].output_of("c1").endswith("[redacted]-x\n")


async def test_a_linked_login_stays_linked(place: Place) -> None:
    with FakeIssuer(lifetime=60) as issuer:
        place = signed_in(place, issuer)
        target = place.codex_home / "elsewhere" / "auth.json"
        target.parent.mkdir()
        auth_file(place).rename(target)
        auth_file(place).symlink_to(target)

        async with scripted_session(place, [say("done")], requires_openai_auth=True) as (_, watched):
            await watched.say("go")

        assert auth_file(place).is_symlink()
        assert json.loads(target.read_text())["tokens"]["refresh_token"] == "refresh-token-2"


def token_command(place: Place, *lines: str) -> list[str]:
    """A command that prints one of these, the next one each time."""
    script = place.home / "token.sh"
    count = place.home / "count"
    cases = "\n".join(f"{number}) echo {line} ;;" for number, line in enumerate(lines))
    script.write_text(f"n=$(cat {count} 2>/dev/null || echo 0)\necho $((n + 1)) > {count}\ncase $n in\n{cases}\nesac\n")
    return ["/bin/sh", str(script)]


async def test_a_refused_token_is_asked_for_again(place: Place) -> None:
    command, *arguments = token_command(place, "token-number-one", "token-number-two")
    with FakeResponses(api_error(401, "stale"), only_for("token-number-two", [say("done token-number-two")])) as model:
        auth = {"command": command, "args": arguments}
        async with watched_session(place, model, auth=auth) as watched:
            ended = await watched.say("go")

    assert isinstance(ended, events.TurnCompleted)
    assert ended.last_message == "done [redacted]"


async def test_a_command_that_prints_the_refused_token_again_is_not_asked_for_ever(place: Place) -> None:
    command, *arguments = token_command(place, *["token-number-one"] * 5)
    with FakeResponses(api_error(401, "stale")) as model:
        auth = {"command": command, "args": arguments}
        async with watched_session(place, model, auth=auth) as watched:
            ended = await watched.say("go")

    assert isinstance(ended, events.TurnFailed)
    assert (place.home / "count").read_text() == "2\n"


async def test_a_token_is_asked_for_again_after_its_interval(place: Place) -> None:
    command, *arguments = token_command(place, "token-number-one", "token-number-two", "token-number-three")
    with FakeResponses([say("one")], [say("two")]) as model:
        auth = {"command": command, "args": arguments, "refresh_interval_ms": 1}
        async with watched_session(place, model, auth=auth) as watched:
            await watched.say("go")
            await watched.say("on")

    assert [bearer(request) for request in model.requests][1] == "token-number-three"
