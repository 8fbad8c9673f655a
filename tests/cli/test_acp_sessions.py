"""Sessions of `codex-py acp`: several at a time, stored ones, and what a client brings to one."""

from __future__ import annotations

import threading
from typing import Any, Final

import pytest

from tests.support import agents
from tests.support.acp import Json, Refused, acp, choose, texts
from tests.support.fake_responses import FakeResponses, Request, Stream, call, custom_call, fake_model, hang, say
from tests.support.home import Place, fake_config, toml_value
from tests.support.hooks import NO_PUSH, entry, hook_inputs, noting, use_hooks, use_project_hooks, write_script
from tests.support.mcp_http import McpOverHttp
from tests.support.mcp_servers import node, odd_words, server
from tests.support.mcp_servers import script as npm_script
from tests.support.process import run

PATCH = "*** Begin Patch\n*** Update File: README.md\n@@\n-A small demo.\n+A demo.\n*** End Patch\n"
OUTSIDE = {"cmd": "touch made", "sandbox_permissions": "require_escalated", "justification": "to make it"}
PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def use(place: Place, model: FakeResponses, top: str = "") -> Place:
    place.use_model(model.base_url, top)
    return place


def stdio_server(name: str, *words: str, **env: str) -> Json:
    """A stdio server as clients write it."""
    command, *arguments = words
    return {
        "name": name,
        "command": command,
        "args": arguments,
        "env": [{"name": key, "value": value} for key, value in env.items()],
    }


WRONG: Final[list[Json]] = [
    {"cwd": "relative"},
    {"cwd": "/nosuch/directory"},
    {"cwd": 5},
    {"cwd": None},
    {"mcpServers": "all"},
    {"mcpServers": [{"name": "x"}]},
    {"mcpServers": [{"command": "x", "args": [], "env": []}]},
    {"mcpServers": [{"name": "x", "type": "sse", "url": "http://x", "headers": []}]},
    {"mcpServers": [{"name": "x", "type": "http", "url": "file:///etc/passwd", "headers": []}]},
    {"mcpServers": [stdio_server("x", "y") | {"env": [{"name": "A"}]}]},
    {"additionalDirectories": ["relative"]},
]


EVERYTHING: Final = stdio_server("everything", node(), npm_script("server-everything"), "stdio")


def test_two_sessions_work_at_a_time(place: Place) -> None:
    go_on = threading.Event()
    parts = {"slow": [[hang(go_on), say("slow done")]], "quick": [[say("quick done")]]}
    other = place.home / "other"
    other.mkdir()
    with agents.cast(parts) as model, acp(use(place, model)) as client:
        first, second = client.open(place), client.open(place, cwd=str(other))
        slow = client.begin_prompt(first, "slow")
        assert client.prompt(second, "quick")["stopReason"] == "end_turn"
        assert (client.said(session=first), client.said(session=second)) == ("", "quick done")
        client.ask("session/close", sessionId=second)
        go_on.set()
        assert client.answer(slow)["stopReason"] == "end_turn"
        with pytest.raises(Refused, match="there is no open session"):
            client.prompt(second, "more")

    assert client.said(session=first) == "slow done"


def test_an_agent_is_reported_whenever_it_works(place: Place) -> None:
    more = call("t1", "send_input", {"target": "agent-1", "message": "look again"})
    parts = {
        "go": [
            [agents.spawn("s1", "look at a")],
            [agents.wait("w1", "agent-1", timeout_ms=60000)],
            [more],
            [agents.wait("w2", "agent-1", timeout_ms=60000)],
            [say("done")],
        ],
        "look at a": [[agents.run("c1", "echo hi")], [say("fine")], [say("still fine")]],
    }
    with agents.cast(parts) as model, acp(use(place, model, 'sandbox_mode = "danger-full-access"')) as client:
        client.prompt(client.open(place), "go")

    titles = ("agent-1: look at a", "agent-1: look again")
    first, second = [one["toolCallId"] for one in client.updates("tool_call") if one["title"] in titles]
    hook_inputs = [(one["toolCallId"], one.get("status"), texts(one)) for one in client.updates("tool_call_update")]
    assert [one for one in hook_inputs if one[0] in (first, second)] == [
        (first, None, ["look at a", "```\necho hi\n```"]),
        (first, None, ["look at a"]),
        (first, "completed", ["look at a", "fine"]),
        (second, "completed", ["look again", "still fine"]),
    ]


def test_a_stored_session_is_reported_again_and_goes_on(place: Place) -> None:
    steps = {"plan": [{"step": "look", "status": "completed"}]}
    work = [
        call("c1", "exec_command", {"cmd": "echo hi"}),
        custom_call("p1", "apply_patch", PATCH),
        call("u1", "update_plan", steps),
    ]
    top = 'sandbox_mode = "workspace-write"'
    script = (work, [say("done")], [say("indeed")], [say("no more")])
    blocks = [{"type": "text", "text": "go"}, {"type": "image", "data": PIXEL, "mimeType": "image/gif"}]
    with FakeResponses(*script, excuse={"threads", "tools"}) as model:
        with acp(use(place, model, top)) as client:
            session = client.open(place)
            client.ask("session/prompt", sessionId=session, prompt=blocks)
            client.close()
        with acp(place) as client:
            loaded = client.ask("session/load", sessionId=session, cwd=str(place.repo), mcpServers=[])
            before = client.updates("agent_message_chunk")
            client.prompt(session, "sure?")
            client.close()
        resumed = run(place, "exec", "resume", session, "and now?")

    picture, words = client.updates("user_message_chunk")
    ran, edited = client.calls()
    assert loaded["modes"]["currentModeId"] == "auto"
    assert picture["content"] == {"type": "image", "data": PIXEL, "mimeType": "image/gif"}
    assert words["content"]["text"] == "go"
    assert "".join(one["content"]["text"] for one in before) == "done"
    assert (ran["status"], texts(ran)) == ("completed", ["```\nhi\n```"])
    assert (edited["kind"], edited["status"]) == ("edit", "completed")
    assert edited["content"][0]["newText"] == "A demo.\n"
    assert len(client.updates("plan")) == 1
    assert model.requests[2].texts("assistant") == ["done"]
    assert (resumed.status, resumed.out) == (0, "no more\n")


def test_what_exec_began_an_editor_goes_on_with(place: Place) -> None:
    with FakeResponses([say("one")], [say("two")], excuse={"threads", "tools"}) as model:
        use(place, model)
        assert run(place, "exec", "first").status == 0
        with acp(place) as client:
            [listed] = client.ask("session/list", cwd=str(place.repo))["sessions"]
            elsewhere = client.ask("session/list", cwd="/nosuch")["sessions"]
            client.ask("session/resume", sessionId=listed["sessionId"], cwd=str(place.repo), mcpServers=[])
            silent = list(client.notifications)
            client.prompt(listed["sessionId"], "second")

    assert (listed["title"], listed["cwd"], elsewhere) == ("first", str(place.repo), [])
    assert [one["params"]["update"]["sessionUpdate"] for one in silent] in ([], ["available_commands_update"])
    assert model.requests[1].texts("user")[-2:] == ["first", "second"]


def test_a_fork_goes_its_own_way(place: Place) -> None:
    script = (
        [say("one")],
        [say("two")],
        [say("three")],
    )
    with fake_model(place, *script, excuse={"threads"}) as model, acp(place) as client:
        first = client.open(place)
        client.prompt(first, "begin")
        forked = client.ask("session/fork", sessionId=first, cwd=str(place.repo))["sessionId"]
        client.prompt(forked, "left")
        client.prompt(first, "right")

    assert forked != first
    assert [request.texts("user")[-2:] for request in model.requests[1:]] == [["begin", "left"], ["begin", "right"]]


def test_an_open_session_is_loaded_again_but_not_while_it_works(place: Place) -> None:
    script = (
        [say("one")],
        [hang(threading.Event())],
    )
    with fake_model(place, *script, excuse={"unplayed"}), acp(place) as client:
        session = client.open(place)
        client.prompt(session, "go")
        client.ask("session/load", sessionId=session, cwd=str(place.repo), mcpServers=[])
        client.begin_prompt(session, "again")
        with pytest.raises(Refused, match="is busy"):
            client.ask("session/load", sessionId=session, cwd=str(place.repo), mcpServers=[])


def test_sessions_are_listed_in_pages_and_deleted(place: Place) -> None:
    with FakeResponses([say("one")], excuse={"threads"}) as model:
        use(place, model)
        assert run(place, "exec", "first").status == 0
        [rollout] = place.rollouts()
        first = rollout.stem[-36:]
        for number in range(120):
            other = f"{first[:-4]}{number:04}"
            copy = rollout.with_name(rollout.name.replace(first, other))
            copy.write_text(rollout.read_text().replace(first, other))
        with acp(place) as client:
            page = client.ask("session/list")
            rest = client.ask("session/list", cursor=page["nextCursor"])
            with pytest.raises(Refused, match="`cursor`"):
                client.ask("session/list", cursor="nosuch")
            client.ask("session/delete", sessionId=first)
            client.ask("session/delete", sessionId="nosuch")

    ids = {one["sessionId"] for one in (*page["sessions"], *rest["sessions"])}
    assert (len(page["sessions"]), len(rest["sessions"]), len(ids)) == (100, 21, 121)
    assert "nextCursor" not in rest
    assert not rollout.exists()


def test_servers_of_a_client_are_for_its_session_alone(place: Place) -> None:
    script = ([call("c1", "mcp__s__plain", {"text": "x"})], [say("done")], [say("none")])
    before = fake_config("http://127.0.0.1:1")
    with fake_model(place, *script, excuse={"threads"}) as model, acp(place, decide=choose("once")) as client:
        with_server = client.open(place, mcpServers=[stdio_server("s", *odd_words("good"))])
        client.prompt(with_server, "go")
        client.prompt(client.open(place), "go")
        config = (place.codex_home / "config.toml").read_text()

    [question], [called] = client.questions, client.calls()
    assert [one["optionId"] for one in question["options"]] == ["once", "session", "no"]
    assert (called["title"], called["status"], called["rawInput"]) == ("s: plain", "completed", {"text": "x"})
    assert "mcp_servers" not in config + before
    assert not [tool for tool in agents.tool_names(model.requests[2]) if "mcp" in tool]


def test_a_server_over_http_is_reached_with_the_clients_headers(place: Place) -> None:
    script = ([call("c1", "mcp__web__whoami", {"text": "x"})], [say("done")])
    with McpOverHttp() as server, fake_model(place, *script), acp(place) as client:
        web = {"type": "http", "name": "web", "url": server.url, "headers": [{"name": "x-team", "value": "core"}]}
        client.prompt(client.open(place, mcpServers=[web]), "go")

    assert [one["status"] for one in client.calls()] == ["completed"]
    assert {headers.get("x-team") for _, headers, _ in server.requests} == {"core"}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_session_that_cannot_be_is_refused_by_name(place: Place, wrong: Json) -> None:
    with fake_model(place), acp(place) as client, pytest.raises(Refused) as refused:
        client.open(place, **wrong)

    assert refused.value.code == -32602
    assert (
        next(iter(wrong)) in str(refused.value)
        or "MCP server" in str(refused.value)
        or "directory" in str(refused.value)
    )


def test_a_broken_configuration_is_reported_where_it_counts(place: Place) -> None:
    place.configure("model = [")
    with acp(place) as client, pytest.raises(Refused, match=r"config\.toml") as refused:
        client.open(place)

    assert refused.value.code == -32603


def test_a_directory_beside_the_project_is_writable_too(place: Place) -> None:
    beside = place.home / "beside"
    beside.mkdir()
    script = ([call("c1", "exec_command", {"cmd": f"touch {beside}/made"})], [say("done")])
    with fake_model(place, *script, top='sandbox_mode = "workspace-write"'), acp(place) as client:
        client.prompt(client.open(place, additionalDirectories=[str(beside)]), "go")

    assert (beside / "made").exists()


def test_without_a_login_the_client_learns_how_to_get_one(place: Place) -> None:
    with acp(place, auth={"terminal": True}) as client:
        greeted = client.ask("initialize", protocolVersion=7, clientCapabilities={"auth": {"terminal": True}})
        with pytest.raises(Refused, match="`codex-py login`") as opening:
            client.open(place)
        with pytest.raises(Refused, match="`codex-py login`") as checking:
            client.ask("authenticate", methodId="login")
        (place.codex_home / "auth.json").write_text('{"OPENAI_API_KEY": "sk-made-up-0123456789"}')
        client.ask("authenticate", methodId="login")
        with pytest.raises(Refused, match="no authentication method"):
            client.ask("authenticate", methodId="nosuch")
        client.open(place)

    assert greeted["protocolVersion"] == 1
    assert [(one.get("type"), one.get("args")) for one in greeted["authMethods"]] == [
        (None, None),
        ("terminal", ["--login"]),
    ]
    assert (opening.value.code, checking.value.code) == (-32000, -32000)


def test_hooks_fire_as_everywhere(place: Place) -> None:
    use_hooks(
        place,
        SessionStart=[entry(noting(place))],
        UserPromptSubmit=[entry(noting(place))],
        PreToolUse=[entry(write_script(place, "no-push.sh", NO_PUSH), "Bash")],
        PermissionRequest=[entry(noting(place))],
        Notification=[entry(noting(place))],
        Stop=[entry(noting(place))],
        SessionEnd=[entry(noting(place))],
    )
    script = ([call("c1", "exec_command", {"cmd": "git push"}), call("c2", "exec_command", OUTSIDE)], [say("done")])
    with fake_model(place, *script) as model, acp(place, decide=choose("once")) as client:
        session = client.open(place)
        client.prompt(session, "push it")
        assert "SessionEnd" not in [one["hook_event_name"] for one in hook_inputs(place)]
        finished = client.close()

    seen = [one["hook_event_name"] for one in hook_inputs(place)]
    assert "blocked by a PreToolUse hook: BLOCKED" in model.requests[1].output_of("c1")
    assert seen[:2] == ["SessionStart", "UserPromptSubmit"]
    assert seen[-2:] == ["Stop", "SessionEnd"]
    assert set(seen[2:-2]) == {"PermissionRequest", "Notification"}
    assert {one["session_id"] for one in hook_inputs(place)} == {session}
    assert finished.status == 0


def test_a_prompt_that_a_hook_blocks_is_a_refusal(place: Place) -> None:
    refuses = """grep -q password && { echo 'no secrets, please' >&2; exit 2; }; exit 0"""
    use_hooks(place, UserPromptSubmit=[entry(refuses)])
    with fake_model(place, [say("done")]), acp(place) as client:
        session = client.open(place)
        ended = client.prompt(session, "the password is swordfish")
        said = client.said()
        client.prompt(session, "then without it")

    assert ended["stopReason"] == "refusal"
    assert "no secrets, please" in said
    assert [one["title"] for one in client.updates("session_info_update")] == ["then without it"]


def test_what_an_untrusted_project_brings_does_not_act(place: Place) -> None:
    marks = place.home / "acted"
    use_project_hooks(place, SessionStart=[entry(f"touch {marks}")])
    place.write(".codex/config.toml", f'[mcp_servers.own]\ncommand = "touch"\nargs = ["{marks}"]\n')
    with fake_model(place, [say("done")]), acp(place) as client:
        client.prompt(client.open(place), "go")
        client.close()

    assert client.requests == []
    assert not marks.exists()


def test_the_question_of_an_agent_carries_its_name(place: Place) -> None:
    def wait_for_it(request: Request) -> Stream:
        return [agents.wait("w1", agents.answer_of(request, "s1")["agent_id"], timeout_ms=30_000)]

    parts: dict[str, Any] = {
        "go": [[agents.spawn("s1", "look")], wait_for_it, [say("done")]],
        "look": [[call("c1", "exec_command", OUTSIDE)], [say("looked")]],
    }
    with agents.cast(parts) as model, acp(use(place, model), decide=choose("once")) as client:
        client.prompt(client.open(place), "go")

    [question] = client.questions
    titles = {one["title"]: one["status"] for one in client.calls()}
    assert question["toolCall"]["title"] == "agent-1: `touch made`"
    assert titles == {
        "Start an agent": "completed",
        "agent-1: look": "completed",
        "Wait for agents": "completed",
        "agent-1: `touch made`": "completed",
    }
    assert (place.repo / "made").exists()


def test_a_question_that_nobody_needs_answered_any_more_is_taken_back(place: Place) -> None:
    was_asked = threading.Event()

    def close_it(request: Request) -> Stream:
        assert was_asked.wait(30)
        return [call("k1", "close_agent", {"target": agents.answer_of(request, "s1")["agent_id"]})]

    parts: dict[str, Any] = {
        "go": [[agents.spawn("s1", "look")], close_it, [say("done")]],
        "look": [[call("c1", "exec_command", OUTSIDE)]],
    }
    with agents.cast(parts) as model, acp(use(place, model), decide=lambda _: was_asked.set()) as client:
        assert client.prompt(client.open(place), "go")["stopReason"] == "end_turn"

    assert client.taken_back == [client.requests[0]["id"]]
    assert {one["title"]: one["status"] for one in client.calls()}["agent-1: `touch made`"] == "failed"


def test_no_secret_reaches_the_client(place: Place) -> None:
    script = ([call("c1", "exec_command", {"cmd": "echo $GIVEN; cat key.txt"})], [say("it is hunter2hunter2")])
    place.write("key.txt", "hunter2hunter2\n")
    server = stdio_server("s", *odd_words("good"), API_TOKEN="hunter2hunter2")
    with fake_model(place, *script), acp(place) as client:
        client.prompt(client.open(place, mcpServers=[server]), "go")
        finished = client.close()

    assert b"hunter2hunter2" not in finished.stdout + finished.stderr
    assert client.calls()[0]["status"] == "completed"


def test_a_long_past_is_reported_whole(place: Place) -> None:
    long = "x" * 200_000
    with FakeResponses([say(long)], excuse={"threads"}) as model:
        use(place, model)
        run(place, "exec", "first")
        [rollout] = place.rollouts()
        head, *turn = rollout.read_text().splitlines(keepends=True)
        rollout.write_text(head + "".join(turn) * 60)
        with acp(place) as client:
            client.ask("session/load", sessionId=rollout.stem[-36:], cwd=str(place.repo), mcpServers=[])

    assert len(client.updates("agent_message_chunk")) == 60


def test_a_form_of_a_server_is_the_clients_form(place: Place) -> None:
    def decide(message: Json) -> Json:
        if message["method"] == "elicitation/create":
            return {"action": "accept", "content": {"name": "Ada", "check": True}}
        return {"outcome": {"outcome": "selected", "optionId": "once"}}

    script = ([call("c1", "mcp__everything__trigger-elicitation-request", {})], [say("done")])
    with fake_model(place, *script) as model, acp(place, decide=decide, elicitation={"form": {}}) as client:
        client.prompt(client.open(place, mcpServers=[EVERYTHING]), "go")

    [form] = [one["params"] for one in client.requests if one["method"] == "elicitation/create"]
    assert form["message"].startswith("The MCP server everything asks: ")
    assert "name" in form["requestedSchema"]["properties"]
    assert "Ada" in str(model.requests[1].input[-1])


def test_a_form_that_is_declined_is_declined_as_a_whole(place: Place) -> None:
    def decide(message: Json) -> Json:
        if message["method"] == "elicitation/create":
            return {"action": "decline"}
        return {"outcome": {"outcome": "selected", "optionId": "once"}}

    script = ([call("c1", "mcp__everything__trigger-elicitation-request", {})], [say("done")])
    with fake_model(place, *script) as model, acp(place, decide=decide, elicitation={"form": {}}) as client:
        client.prompt(client.open(place, mcpServers=[EVERYTHING]), "go")

    assert len([one for one in client.requests if one["method"] == "elicitation/create"]) == 1
    assert "decline" in str(model.requests[1].input[-1])


def test_a_client_without_forms_can_decline_what_it_cannot_fill_in(place: Place) -> None:
    def decide(message: Json) -> Json:
        offered = {one["name"]: one["optionId"] for one in message["params"]["options"]}
        chosen = offered.get("Decline") or offered.get("Yes, this once", "no")
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    script = ([call("c1", "mcp__everything__trigger-elicitation-request", {})], [say("done")])
    with fake_model(place, *script) as model, acp(place, decide=decide) as client:
        client.prompt(client.open(place, mcpServers=[EVERYTHING]), "go")

    assert "decline" in str(model.requests[1].input[-1])


def test_the_prompts_of_a_server_are_commands(place: Place) -> None:
    script = ([say("one")], [call("c1", "mcp__everything__echo", {"message": "x"})], [say("two")], [say("three")])
    with fake_model(place, *script) as model, acp(place, decide=choose("once")) as client:
        session = client.open(place, mcpServers=[EVERYTHING])
        client.prompt(session, "go")
        client.prompt(session, "go on")
        client.prompt(session, "/mcp__everything__args-prompt Paris")

    commands = {one["name"]: one for one in client.updates("available_commands_update")[-1]["availableCommands"]}
    assert commands["mcp__everything__args-prompt"]["input"]["hint"].startswith("city")
    assert "Paris" in model.requests[-1].texts("user")[-1]


def test_a_projects_server_is_started_after_a_yes(place: Place) -> None:
    log = place.home / "asked"
    command, *arguments = odd_words("good", f"log={log}")
    place.write(".codex/config.toml", server("theirs", command=command, args=arguments))
    trusted = f'[projects.{toml_value(str(place.repo))}]\ntrust_level = "trusted"\n'
    with fake_model(place, [say("one")], top=trusted), acp(place, decide=choose("yes")) as client:
        client.prompt(client.open(place), "go")

    [question] = client.questions
    assert [(one["name"], one["kind"]) for one in question["options"]] == [
        ("Yes, start in the sandbox", "allow_always"),
        ("Yes, in the sandbox with network access", "allow_always"),
        ("Yes, outside the sandbox, as you", "allow_always"),
        ("No, not in this session", "reject_once"),
        ("Never as it is now", "reject_always"),
    ]
    assert "theirs runs on your machine" in texts(question["toolCall"])[0]
    assert log.exists()
    assert "trusted_mcp_servers" in (place.codex_home / "config.toml").read_text()


def test_undo_brings_back_the_files_and_the_conversation(place: Place) -> None:
    script = ([call("c1", "exec_command", {"cmd": "echo one > one.txt"})], [say("one")], [say("two")])
    top = 'sandbox_mode = "workspace-write"'
    with fake_model(place, *script, excuse={"threads", "prefix", "replay"}, top=top) as model, acp(place) as client:
        session = client.open(place)
        client.prompt(session, "first")
        assert (place.repo / "one.txt").exists()
        dry = client.ask("_codex-py/rewind", sessionId=session, to="1", dryRun=True)
        assert (dry["files"]["deleted"], dry["message"]) == (["one.txt"], "first")
        assert client.prompt(session, "/undo")["stopReason"] == "end_turn"
        assert not (place.repo / "one.txt").exists()
        with pytest.raises(Refused, match="no turn"):
            client.prompt(session, "/rewind 9")
        client.prompt(session, "second")
    assert "deleted: one.txt" in client.said(session=session)
    assert [text for text in model.requests[-1].texts("user") if not text.startswith("<")] == ["second"]
