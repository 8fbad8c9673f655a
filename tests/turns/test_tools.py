"""Tools beside commands and patches, as the model and the front ends see them."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from codex_py.exec.jsonl import JsonlPrinter
from codex_py.protocol import events
from codex_py.protocol.ops import AnswerQuestion
from codex_py.protocol.questions import ChoiceQuestion, PermissionsQuestion
from codex_py.render.plain import PlainPrinter
from tests.support.fake_responses import FakeResponses, api_error, call, completed, fake_model, say, web_search
from tests.support.home import Place
from tests.support.process import run
from tests.support.session import Watched, scripted_session, watched_session

ALWAYS = ["exec_command", "write_stdin", "apply_patch", "update_plan", "view_image"]
OF_AGENTS = ["spawn_agent", "send_input", "wait_agent", "close_agent", "list_agents"]
PLAN = [
    {"step": "Read", "status": "completed"},
    {"step": "Write", "status": "in_progress"},
    {"step": "Test", "status": "pending"},
]
DONE = [{"step": step["step"], "status": "completed"} for step in PLAN]
ASKED = {
    "id": "db",
    "header": "Store",
    "question": "Which?",
    "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}],
}


def names(tools: list[dict[str, Any]]) -> list[str]:
    return [tool.get("name", tool["type"]) for tool in tools]


def answer_with(watched: Watched, choose: Callable[[Any], str | None]) -> None:
    """Answer whatever is asked, from outside the turn as a front end does."""
    pending: set[asyncio.Task[None]] = set()

    def on_event(event: events.Event) -> None:
        if isinstance(event, events.QuestionRaised):
            question = event.question
            task = asyncio.ensure_future(watched.session.submit(AnswerQuestion(question.id, choose(question))))
            pending.add(task)
            task.add_done_callback(pending.discard)

    watched.session.subscribe(on_event)


def png(size: tuple[int, int]) -> bytes:
    out = BytesIO()
    Image.new("RGB", size, "navy").save(out, "PNG")
    return out.getvalue()


async def test_the_tools_come_in_a_fixed_order(place: Place) -> None:
    async with scripted_session(place, [say("one")], [say("two")]) as (model, watched):
        await watched.say("go")
        await watched.say("on")
    first, second = (request.body["tools"] for request in model.requests)
    assert names(first) == [*ALWAYS, *OF_AGENTS]
    assert first == second


async def test_who_can_be_asked_is_offered_to_be(place: Place) -> None:
    async with scripted_session(place, [say("one")], can_ask=True, approval="on-request") as (model, watched):
        await watched.say("go")
    assert names(model.requests[0].body["tools"]) == [*ALWAYS, "request_user_input", "request_permissions", *OF_AGENTS]


async def test_a_model_without_eyes_is_not_offered_pictures(place: Place) -> None:
    with FakeResponses([call("c", "view_image", {"path": "a.png"})], [say("one")]) as model:
        async with watched_session(place, model, 'models."gpt-5.1-codex".images = false') as watched:
            await watched.say("go")
    assert "view_image" not in names(model.requests[0].body["tools"])


@pytest.mark.parametrize(
    ("settings", "last"),
    [
        ([], {"type": "web_search", "external_web_access": False}),
        (["-c", "web_search=cached"], {"type": "web_search", "external_web_access": False}),
        (["-c", "web_search=live"], {"type": "web_search", "external_web_access": True}),
        (["-c", "web_search=disabled"], None),
        (["-c", "model_reasoning_effort=minimal"], None),
    ],
)
def test_only_openai_is_asked_to_search_the_web(place: Place, settings: list[str], last: Any) -> None:
    with FakeResponses([web_search("cats"), say("done")]) as model:
        env = place.with_env(OPENAI_API_KEY="sk-test-0123456789", OPENAI_BASE_URL=model.base_url)
        ended = run(env, "exec", "-m", "gpt-5.2", *settings, "go")
    assert (ended.status, ended.out) == (0, "done\n")
    tools = model.requests[0].body["tools"]
    assert [tool for tool in tools if tool["type"] == "web_search"] == ([last] if last else [])
    assert tools[-1] == (last or tools[-1])


@pytest.mark.parametrize(
    ("top", "settings", "warned"),
    [
        ("", [], False),
        ("", ["-c", "web_search=live"], True),
        ('web_search = "cached"', [], True),
        ('web_search = "disabled"', [], False),
        ('tools.web_search.allowed_domains = ["docs.python.org"]', [], True),
        ("features.web_search_request = true", [], True),
    ],
)
def test_web_search_that_the_provider_does_not_have_is_reported(
    place: Place, top: str, settings: list[str], warned: bool
) -> None:
    with fake_model(place, [say("done")], top=top):
        ended = run(place, "exec", *settings, "go")
    assert (ended.status, ended.out) == (0, "done\n")
    lines = [line for line in ended.err.splitlines() if "has no effect" in line]
    assert lines == ["warning: `web_search` has no effect: the provider `fake` has no web search"] * warned


def test_web_search_that_the_effort_prevents_is_reported(place: Place) -> None:
    with FakeResponses([say("done")]) as model:
        env = place.with_env(OPENAI_API_KEY="sk-test-0123456789", OPENAI_BASE_URL=model.base_url)
        ended = run(env, "exec", "-c", "model_reasoning_effort=minimal", "-c", "web_search=live", "go")
    assert "`web_search` has no effect: OpenAI does not search with the effort `minimal`" in ended.err


async def test_a_plan_is_reported_and_answered(place: Place) -> None:
    stream = [call("c", "update_plan", {"explanation": "as agreed", "plan": PLAN})]
    async with scripted_session(place, stream, [say("done")]) as (model, watched):
        await watched.say("go")
    assert model.requests[1].output_of("c") == "Plan updated"
    steps = (
        events.PlanStep("Read", "completed"),
        events.PlanStep("Write", "in_progress"),
        events.PlanStep("Test", "pending"),
    )
    assert watched.of(events.PlanUpdated) == [events.PlanUpdated(steps, "as agreed")]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "missing field `plan`"),
        ({"plan": "do it"}, "`plan` must be an array, found `do it`"),
        ({"plan": ["do it"]}, "`plan.0` must be an object, found `do it`"),
        ({"plan": [{"step": "a"}]}, "missing field `plan.0.status`"),
        (
            {"plan": [{"step": "a", "status": "soon"}]},
            "`plan.0.status` must be one of `pending`, `in_progress` or `completed`, found `soon`",
        ),
    ],
)
async def test_a_wrong_plan_is_named_in_one_line(place: Place, arguments: dict[str, Any], fault: str) -> None:
    async with scripted_session(place, [call("c", "update_plan", arguments)], [say("sorry")]) as (model, watched):
        await watched.say("go")
    assert model.requests[1].output_of("c") == f"failed to parse function arguments: {fault}"
    assert watched.of(events.PlanUpdated) == []


@pytest.mark.parametrize("fails", [False, True])
async def test_a_script_sees_the_plan_as_one_item_until_the_turn_ends(place: Place, fails: bool) -> None:
    plans = [call("c1", "update_plan", {"plan": PLAN}), call("c2", "update_plan", {"plan": DONE})]
    end: Any = api_error(400, "no") if fails else [say("done")]
    lines: list[bytes] = []
    with FakeResponses(plans, end, [call("c3", "update_plan", {"plan": []})], [say("bye")]) as model:
        async with watched_session(place, model) as watched:
            watched.session.subscribe(JsonlPrinter(lines.append))
            await watched.say("go")
            await watched.say("again")
    result = [json.loads(line) for line in lines]
    todo = [line for line in result if line.get("item", {}).get("type") == "todo_list"]
    before = [{"text": step["step"], "completed": step["status"] == "completed"} for step in PLAN]
    after = [{"text": step["step"], "completed": True} for step in PLAN]
    first, second = todo[0]["item"]["id"], todo[3]["item"]["id"]
    assert todo == [
        {"type": "item.started", "item": {"id": first, "type": "todo_list", "items": before}},
        {"type": "item.updated", "item": {"id": first, "type": "todo_list", "items": after}},
        {"type": "item.completed", "item": {"id": first, "type": "todo_list", "items": after}},
        {"type": "item.started", "item": {"id": second, "type": "todo_list", "items": []}},
        {"type": "item.completed", "item": {"id": second, "type": "todo_list", "items": []}},
    ]
    assert first != second
    # The list ends before the turn does.
    following = result[result.index(todo[2]) + 1]["type"]
    assert following == ("error" if fails else "turn.completed")


async def test_a_key_in_a_plan_is_not_shown(place: Place) -> None:
    plan = [{"step": "use sk-very-secret-value", "status": "pending"}]
    stream = [call("c", "update_plan", {"plan": plan, "explanation": "sk-very-secret-value"})]
    with FakeResponses(stream, [say("done")]) as model:
        place = place.with_env(FAKE_KEY="sk-very-secret-value")
        async with watched_session(place, model, env_key="FAKE_KEY") as watched:
            await watched.say("go")
    [result] = watched.of(events.PlanUpdated)
    assert result == events.PlanUpdated((events.PlanStep("use [redacted]", "pending"),), "[redacted]")


async def test_an_interrupted_turn_ends_its_list(place: Place) -> None:
    lines: list[bytes] = []
    async with scripted_session(place, [call("c1", "update_plan", {"plan": PLAN})]) as (_, watched):
        watched.session.subscribe(JsonlPrinter(lines.append))
        watched.on(events.PlanUpdated, watched.session.interrupt)
        await watched.say("go")
    # An interruption is no failure: the stream ends with the last item.
    assert [json.loads(line)["type"] for line in lines][-2:] == ["item.started", "item.completed"]


async def test_a_person_sees_the_plan_as_a_check_list(place: Place) -> None:
    plan = [*PLAN, {"step": "look\nout \x1b[31m", "status": "pending"}]
    written: list[str] = []
    with FakeResponses([call("c", "update_plan", {"explanation": "why not", "plan": plan})], [say("done")]) as model:
        async with watched_session(place, model) as watched:
            watched.session.subscribe(PlainPrinter(written.append))
            await watched.say("go")
    shown = "\n".join(written)
    assert "plan\nwhy not\n[x] Read\n[>] Write\n[ ] Test\n[ ] look" in shown
    assert "\x1b" not in shown


async def test_a_picture_goes_to_the_model_with_the_next_request(place: Place) -> None:
    place.write("a.png", png((30, 20)))
    place.write("wide.png", png((5000, 20)))
    stream = [call("c1", "view_image", {"path": "a.png"}), call("c2", "view_image", {"path": "wide.png"})]
    async with scripted_session(place, stream, [say("done")], [say("again")]) as (model, watched):
        await watched.say("look")
        await watched.say("and?")
    outputs = {one["call_id"]: one["output"] for one in model.requests[2].input if "output" in one}
    url = "data:image/png;base64," + base64.b64encode(png((30, 20))).decode()
    assert outputs["c1"] == [{"type": "input_image", "image_url": url, "detail": "high"}]
    [wide] = outputs["c2"]
    with Image.open(BytesIO(base64.b64decode(wide["image_url"].partition(",")[2]))) as shown:
        assert shown.width == 2048


async def test_a_file_that_shows_nothing_is_reported_in_words(place: Place) -> None:
    async with scripted_session(place, [call("c", "view_image", {"path": "a.png"})], [say("done")]) as (model, watched):
        await watched.say("look")
    expected = f"unable to locate image at `{place.repo}/a.png`: No such file or directory (os error 2)"
    assert model.requests[1].output_of("c") == expected


async def test_the_answer_of_the_user_reaches_the_model(place: Place) -> None:
    with FakeResponses([call("c", "request_user_input", {"questions": [ASKED]})], [say("done")]) as model:
        async with watched_session(place, model, can_ask=True) as watched:
            answer_with(watched, lambda question: question.options[1].label)
            await watched.say("go")
    assert json.loads(model.requests[1].output_of("c")) == {"answers": {"db": {"answers": ["B"]}}}
    [request] = watched.of(events.QuestionRaised)
    assert isinstance(request.question, ChoiceQuestion)
    assert request.question.question == "Which?"


async def test_an_open_question_does_not_outlive_an_interrupt(place: Place) -> None:
    with FakeResponses([call("c", "request_user_input", {"questions": [ASKED]})], [say("ok")]) as model:
        async with watched_session(place, model, can_ask=True) as watched:
            watched.on(events.QuestionRaised, watched.session.interrupt)
            stopped = await watched.say("go")
            await watched.say("never mind")
    assert isinstance(stopped, events.TurnInterrupted)
    assert model.requests[1].output_of("c") == "aborted"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("request_user_input", {"questions": [ASKED]}),
        ("request_permissions", {"permissions": {"network": {"enabled": True}}}),
    ],
)
async def test_where_nobody_can_be_asked_the_model_is_informed_so(place: Place, name: str, arguments: Any) -> None:
    async with scripted_session(place, [call("c", name, arguments)], [say("ok")]) as (model, watched):
        ended = await watched.say("go")
    assert model.requests[1].output_of("c").startswith(f"{name} is not available")
    assert isinstance(ended, events.TurnCompleted)
    assert watched.of(events.QuestionRaised) == []


async def test_what_the_user_grants_holds_until_the_turn_ends(place: Place) -> None:
    outside = place.home / "outside"
    outside.mkdir()
    wanted = {"permissions": {"file_system": {"write": [str(outside)]}}, "reason": "to write there"}

    def touch(call_id: str) -> dict[str, Any]:
        return call(call_id, "exec_command", {"cmd": f"touch {outside}/{call_id}", "login": False})

    # Only the granted directory may become writable, not the temporary one that all of this is in.
    top = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true"
    streams = [[touch("c1")], [call("c2", "request_permissions", wanted)], [touch("c3")], [say("ok")]]
    with FakeResponses(*streams, [touch("c4")], [say("done"), completed()]) as model:
        options: dict[str, Any] = {"can_ask": True, "approval": "on-request"}
        async with watched_session(place, model, top, sandbox="workspace-write", **options) as watched:
            answer_with(watched, lambda question: "yes" if isinstance(question, PermissionsQuestion) else None)
            await watched.say("go")
            await watched.say("again")
    granted = {"permissions": {"file_system": {"write": [str(outside)]}}, "scope": "turn"}
    assert json.loads(model.requests[2].output_of("c2")) == granted
    assert [path.name for path in outside.iterdir()] == ["c3"]


async def test_older_names_of_the_shell_are_answered_and_not_offered(place: Place) -> None:
    stream = [
        call("c1", "shell", {"command": ["echo", "one"]}),
        call("c2", "shell_command", {"command": "echo two; exit 4", "login": False}),
    ]
    async with scripted_session(place, stream, [say("done")]) as (model, watched):
        await watched.say("go")
    assert not {"shell", "shell_command"} & set(names(model.requests[0].body["tools"]))
    assert model.requests[1].output_of("c1").endswith("\nOutput:\none\n")
    assert model.requests[1].output_of("c2").startswith("Exit code: 4\n")
    assert [event.exit_code for event in watched.of(events.CommandFinished)] == [0, 4]


async def test_a_credential_in_a_variables_value_reaches_no_command_and_is_named_once(place: Place) -> None:
    url = "postgres://app:hunter2-hunter2@db.example.com/app"
    place.write("settings.txt", f"url = {url}\n")
    calls = [call("c1", "exec_command", {"cmd": "env"})], [call("c2", "exec_command", {"cmd": "cat settings.txt"})]
    with FakeResponses(*calls, [say("done")]) as model:
        async with watched_session(place.with_env(DATABASE_URL=url, SITE="https://example.com/"), model) as watched:
            await watched.say("go")
    outputs = [model.requests[1].output_of("c1"), model.requests[2].output_of("c2")]
    assert "SITE=https://example.com/" in outputs[0]
    assert "DATABASE_URL" not in outputs[0]
    assert "url = [redacted]" in outputs[1]
    assert watched.warnings == [
        "`DATABASE_URL` holds a credential and is not passed to commands;"
        ' to pass one on: `shell_environment_policy.allow = ["DATABASE_URL"]`'
    ]


@pytest.mark.parametrize("sandbox", ["workspace-write", "danger-full-access"])
async def test_the_profile_of_the_shell_brings_no_secret_back(place: Place, sandbox: str) -> None:
    """Neither to the command that has the profile read nor to later ones, nor to those of another shell."""
    exports = "export GITHUB_TOKEN=plain-value REMOTE=https://u:pa55word@example.com MINE=kept EDITOR=vi\n"
    for name in (".bash_profile", ".profile"):
        (place.home / name).write_text(exports)
    env = place.with_env(MINE="postgres://app:hunter2-hunter2@db.example.com/app")
    shells = ("bash", "bash", "sh")
    calls = [
        [call(f"c{number}", "exec_command", {"cmd": "env", "shell": shell})] for number, shell in enumerate(shells)
    ]
    async with scripted_session(env, *calls, [say("done")], sandbox=sandbox) as (model, watched):
        await watched.say("go")
    for number in range(len(shells)):
        output = model.requests[-1].output_of(f"c{number}")
        assert "EDITOR=vi" in output
        assert [name for name in ("GITHUB_TOKEN", "REMOTE", "MINE") if f"{name}=" in output] == []


async def test_a_variable_with_a_credential_can_be_allowed(place: Place) -> None:
    env = place.with_env(DATABASE_URL="postgres://app:hunter2-hunter2@db.example.com/app")
    with FakeResponses([call("c1", "exec_command", {"cmd": "env"})], [say("done")]) as model:
        async with watched_session(env, model, 'shell_environment_policy.allow = ["DATABASE_*"]') as watched:
            await watched.say("go")
    assert "DATABASE_URL=postgres://app:hunter2-hunter2@db" in model.requests[1].output_of("c1")
    assert watched.of(events.Warned) == []


async def test_an_allowance_that_opens_nothing_is_warned_of_once(place: Place) -> None:
    calls = [[call(name, "exec_command", {"cmd": "true"})] for name in ("c1", "c2")]
    with FakeResponses(*calls, [say("done")]) as model:
        top = "[sandbox]\nallow_read = ['~/.ssh/config']"
        async with watched_session(place, model, top) as watched:
            await watched.say("go")
    ssh = place.home / ".ssh"
    assert watched.warnings == [
        f"`~/.ssh/config` in `sandbox.allow_read` opens nothing: `{ssh}` stays denied; allow that directory instead"
    ]


async def test_secrets_of_the_settings_are_hidden_however_a_command_prints_them(place: Place) -> None:
    secret = "hunter2-hunter2-hunter2"
    encoded = base64.b64encode(f"key={secret}\n".encode()).decode()
    place.write("leaks.txt", f"{secret}\n{encoded}\n{secret.encode().hex()}\n")
    settings = f'[mcp_servers.off]\nenabled = false\ncommand = "serve"\nargs = ["--token", "{secret}"]\n'
    with FakeResponses([call("c1", "exec_command", {"cmd": "cat leaks.txt"})], [say("done")]) as model:
        async with watched_session(place, model, settings) as watched:
            await watched.say("go")
    output = model.requests[1].output_of("c1")
    assert output.count("[redacted]") == 3
    for place_of_it in (output, repr(watched.seen), place.rollouts()[0].read_text()):
        assert secret not in place_of_it
        assert encoded[8:-4] not in place_of_it
        assert secret.encode().hex() not in place_of_it
