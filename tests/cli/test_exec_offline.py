"""`codex-py exec` without a provider: the built-in rules, a server on this machine, and never one for the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fake_responses import FakeResponses, fake_model, say, status
from tests.support.home import Place, make_place
from tests.support.process import run

LABEL = "offline model: fixed rules, no AI"


def test_the_offline_model_needs_neither_key_nor_config(place: Place) -> None:
    (place.codex_home).rmdir()
    env = {name: value for name, value in place.env.items() if name != "CODEX_HOME"}
    ended = run(Place(place.home, place.codex_home, place.repo, env), "exec", "--offline", "what is this repository?")

    assert ended.status == 0
    assert "Demo" in ended.out
    assert LABEL in ended.out
    assert LABEL in ended.err.partition("user\n")[0]


def test_an_unknown_provider_is_named_although_the_offline_model_needs_none(place: Place) -> None:
    place.configure('model_provider = "opnai"\n')
    ended = run(place, "exec", "--offline", "what is this repository?")
    assert ended.status == 0
    where = place.codex_home / "config.toml"
    assert (
        f"warning: unknown provider `opnai` in `{where}` line 1, which this run does not use; did you mean `openai`?"
        in ended.err.splitlines()
    )


def test_the_offline_model_says_so_in_json_and_runs_real_commands(place: Place) -> None:
    ended = run(place, "exec", "--offline", "--json", "run `cat README.md`")

    items = [event["item"] for event in ended.events if event["type"] == "item.completed"]
    assert ended.status == 0
    assert [item["type"] for item in items] == ["error", "command_execution", "agent_message"]
    assert LABEL in items[0]["message"]
    assert (items[1]["aggregated_output"], items[1]["exit_code"]) == ("# Demo\n\nA small demo.\n", 0)
    assert LABEL in items[2]["text"]


def test_the_offline_model_changes_a_file_only_where_that_is_allowed(tmp_path: Path) -> None:
    place = make_place(tmp_path, {"app.py": "limit = 10\n"})
    prompt = "replace `limit = 10` with `limit = 20` in app.py"
    refused = run(place, "exec", "--offline", prompt)
    before = (place.repo / "app.py").read_text()
    allowed = run(place, "exec", "--offline", "-s", "workspace-write", prompt)

    assert (refused.status, before) == (0, "limit = 10\n")
    assert "workspace-write" in refused.out
    assert (allowed.status, (place.repo / "app.py").read_text()) == (0, "limit = 20\n")


def test_the_offline_model_follows_a_skill_with_references(place: Place) -> None:
    ended = run(place, "exec", "--offline", "use $repo-tour")

    assert ended.status == 0
    assert "scripts/tour.py" in ended.out
    assert "needs judgement" not in ended.out


def test_an_offline_session_can_be_resumed(place: Place) -> None:
    first = run(place, "exec", "--offline", "run `echo one`")
    again = run(place, "exec", "--offline", "resume", "--last", "run `echo two`")

    assert ["one" in first.out, "one" in again.out, "two" in again.out] == [True, False, True]
    assert len(place.rollouts()) == 1


def test_a_local_server_is_asked_without_a_key(place: Place) -> None:
    models = {"object": "list", "data": [{"id": "tiny"}]}
    with FakeResponses([say("done")], get={"/v1/models": status(200, models)}) as model:
        env = place.with_env(CODEX_OSS_BASE_URL=model.base_url)
        ended = run(env, "exec", "--oss", "-m", "tiny", "go")

    assert (ended.status, ended.stdout) == (0, b"done\n")
    assert "authorization" not in model.requests[0].headers
    assert model.requests[0].body["model"] == "tiny"


@pytest.mark.parametrize(
    ("flags", "provider"),
    [
        (["--oss"], "lmstudio"),
        (["--oss", "--local-provider", "ollama"], "ollama"),
        (["--local-provider", "ollama"], "ollama"),
    ],
)
def test_the_local_server_is_the_one_that_is_named(place: Place, flags: list[str], provider: str) -> None:
    (place.codex_home / "config.toml").write_text('oss_provider = "lmstudio"\n')
    with FakeResponses([say("done")]) as model:
        ended = run(place.with_env(CODEX_OSS_BASE_URL=model.base_url), "exec", *flags, "go")

    assert f"provider: {provider}" in ended.err.splitlines()


def test_a_provider_that_fails_is_never_replaced_by_the_offline_model(place: Place) -> None:
    with fake_model(place, status(403, "no")):
        ended = run(place, "exec", "what is this repository?")

    assert (ended.status, ended.stdout) == (77, b"")
