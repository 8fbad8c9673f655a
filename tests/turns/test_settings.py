"""Settings that change what the model sees."""

from __future__ import annotations

import re
import stat
from typing import Any

import pytest

from codex_py.protocol.ops import OverrideTurnContext
from tests.support.fake_responses import FakeResponses, Request, call, repeat, say
from tests.support.home import Place
from tests.support.process import run
from tests.support.session import scripted_session, watched_session


async def requests_of(place: Place, top: str, *script: list[dict[str, Any]]) -> list[Request]:
    """The requests of one turn with these settings."""
    async with scripted_session(place, *(script or ([say("done")],)), top=top) as (model, watched):
        await watched.say("go")
    return model.requests


def tool_names(request: Request) -> list[str]:
    return [tool.get("name", tool["type"]) for tool in request.body["tools"]]


async def test_commands_can_be_taken_away(place: Place) -> None:
    shell = call("c1", "shell", {"command": ["touch", "made"]})
    command = call("c2", "exec_command", {"cmd": "touch made"})
    requests = await requests_of(place, "features.shell_tool = false", [shell, command], [say("done")])

    assert {"exec_command", "write_stdin"} & set(tool_names(requests[0])) == set()
    assert "unsupported call" in requests[1].output_of("c1")
    assert "unsupported call" in requests[1].output_of("c2")
    assert not (place.repo / "made").exists()


@pytest.mark.parametrize("top", ["features.view_image = false", "tools.view_image = false"])
async def test_looking_at_pictures_can_be_taken_away(place: Place, top: str) -> None:
    [without] = await requests_of(place, top)
    assert "view_image" not in tool_names(without)


@pytest.mark.parametrize(
    ("top", "result"),
    [
        ('personality = "friendly"', "Write the way a good colleague talks"),
        ('personality = "pragmatic"', "Write the way an experienced engineer reports"),
        ('personality = "none"', None),
        ("", None),
    ],
)
async def test_a_tone_is_reported_after_the_users_own_instructions(place: Place, top: str, result: str | None) -> None:
    [request] = await requests_of(place, f'developer_instructions = "Be exact."\n{top}')
    [text] = [text for text in request.texts("developer") if text.startswith("Be exact.")]
    assert (text == "Be exact.") is (result is None)
    assert result is None or text.startswith(f"Be exact.\n\n{result}")


async def test_requests_say_which_installation_they_come_from(place: Place) -> None:
    with FakeResponses(repeat([say("done")]), excuse={"threads"}) as model:
        for _ in range(2):
            async with watched_session(place, model) as watched:
                await watched.say("go")

    file = place.codex_home / "installation_id"
    ids = {request.body["client_metadata"]["x-codex-installation-id"] for request in model.requests}
    assert ids == {file.read_text()}
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}", file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_an_installation_id_that_is_none_is_left_alone_and_not_sent(place: Place) -> None:
    file = place.codex_home / "installation_id"
    file.write_bytes(b"not an id\r\nx: y")
    [request] = await requests_of(place, "")

    assert "x-codex-installation-id" not in request.body["client_metadata"]
    assert file.read_bytes() == b"not an id\r\nx: y"


def test_the_search_gets_where_to_look(place: Place) -> None:
    search = '{ context_size = "high", allowed_domains = ["docs.python.org"], location = { country = "GB" } }'
    with FakeResponses([say("done")]) as model:
        place.configure(f'openai_base_url = "{model.base_url}"\ntools.web_search = {search}\n')
        ended = run(place.with_env(OPENAI_API_KEY="sk-0123456789abcdef"), "exec", "go")

    assert ended.status == 0
    assert model.requests[0].body["tools"][-1] == {
        "type": "web_search",
        "external_web_access": False,
        "filters": {"allowed_domains": ["docs.python.org"]},
        "user_location": {"type": "approximate", "country": "GB"},
        "search_context_size": "high",
    }


async def test_settings_changed_one_after_the_other_all_count(place: Place) -> None:
    async with scripted_session(place, [say("ok")]) as (model, watched):
        for op in (OverrideTurnContext(model="stranger"), OverrideTurnContext(sandbox="read-only")):
            await watched.session.submit(op)
        await watched.say("go")
    [request] = model.requests
    assert request.body["model"] == "stranger"
    [patch] = [tool for tool in request.body["tools"] if tool.get("name") == "apply_patch"]
    # As for every model nothing is known about.
    assert patch["type"] == "function"
    assert "`sandbox_mode` is `read-only`" in request.texts("developer")[-1]


async def test_an_empty_effort_is_that_of_the_model_again(place: Place) -> None:
    with FakeResponses([say("one")], [say("two")], [say("three")]) as model:
        async with watched_session(place, model, 'model_reasoning_effort = "high"') as watched:
            for effort in ("low", None, ""):
                await watched.session.submit(OverrideTurnContext(effort=effort))
                await watched.say("go")
    assert [one.body["reasoning"]["effort"] for one in model.requests] == ["low", "low", "medium"]
