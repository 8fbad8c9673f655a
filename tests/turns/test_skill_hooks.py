"""The hooks in a skill's front matter: they run for the turn that uses the skill, once the user trusts them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import SkillInput, TextInput, UserTurn
from tests.support.fake_responses import FakeResponses, Request, call, say
from tests.support.home import Place
from tests.support.hooks import NO_PUSH, entry, use_hooks
from tests.support.process import run
from tests.support.session import Watched, scripted_session, watched_session
from tests.support.skills import NO_BUNDLED, add_skill, own_root, repo_root, skill_text

TOOL = f"[skills]\ntool = true\n{NO_BUNDLED}"
GUARD = """\
hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - type: command
          command: ./scripts/check.sh
"""
DENIED = "blocked by a PreToolUse hook: BLOCKED: git push is not allowed"


def add(place: Place, hooks: str = GUARD, *, name: str = "fix", script: str = NO_PUSH, more: str = "") -> Path:
    path = add_skill(repo_root(place), name, skill_text(name, more=f"{more}{hooks}"))
    own = path.parent / "scripts/check.sh"
    own.parent.mkdir(exist_ok=True)
    own.write_text(script)
    own.chmod(0o755)
    return path


def push(call_id: str) -> dict[str, Any]:
    return call(call_id, "exec_command", {"cmd": "git push", "login": False})


def trust(place: Place, *more: str, name: str = "fix") -> None:
    ended = run(place, "hooks", "trust", "--skill", name, "--yes", *more)
    assert ended.status == 0, ended.err


def has_call(request: Request, call_id: str) -> bool:
    return any(one.get("call_id") == call_id for one in request.input)


async def turns(place: Place, *messages: str, top: str = NO_BUNDLED, **session: Any) -> tuple[list[Request], Watched]:
    """Turns in each of which the model pushes."""
    answers = [answer for number in range(len(messages)) for answer in ([push(f"c{number}")], [say("done")])]
    async with scripted_session(place, *answers, top=top, **session) as (model, watched):
        for message in messages:
            await watched.say(message)
    return model.requests, watched


async def test_trusted_hooks_run_in_the_turn_that_uses_the_skill_and_in_no_other(place: Place) -> None:
    add(place)
    trust(place)
    requests, watched = await turns(place, "push", "$fix and push", "push again")
    outputs = [requests[-1].output_of(f"c{number}") for number in range(3)]
    assert [output == DENIED for output in outputs] == [False, True, False]
    [used] = watched.of(events.SkillUsed)
    assert used.applied == (("hooks", "PreToolUse"),)
    assert not any("hook" in warning and "not run" in warning for warning in watched.warnings)


@pytest.mark.parametrize("way", ["mention", "pick", "tool", "read", "words"])
async def test_hooks_run_whatever_way_the_skill_is_used(place: Place, way: str) -> None:
    path = add(place, name="fix-tests")
    trust(place, name="fix-tests")
    top = TOOL if way != "words" else f'[skills]\nnatural_names = "on"\n{NO_BUNDLED}'
    read = call("k", "exec_command", {"cmd": f"cat {path}", "login": False})
    first = {"tool": [call("k", "skill", {"name": "fix-tests"})], "read": [read]}.get(way, [])
    with FakeResponses(*([answer] for answer in (*first, push("c1"))), [say("done")]) as model:
        async with watched_session(place, model, top) as watched:
            text = {"mention": "$fix-tests", "words": "use the fix-tests skill"}.get(way, "go")
            picked = [SkillInput("fix-tests", path)] if way == "pick" else []
            await watched.session.submit(UserTurn((*picked, TextInput(text))))
    assert model.requests[-1].output_of("c1") == DENIED


async def test_untrusted_hooks_do_not_run_and_are_named_once_with_the_way_to_trust_them(place: Place) -> None:
    path = add(place)
    requests, watched = await turns(place, "$fix push", "$fix push")
    assert [requests[-1].output_of(name) == DENIED for name in ("c0", "c1")] == [False, False]
    assert [used.applied for used in watched.of(events.SkillUsed)] == [(), ()]
    assert [warning for warning in watched.warnings if "hook" in warning] == [
        f"the skill `fix`: 1 hook in `{path}` is not run: what a skill brings runs only when you have agreed to it"
        " (`codex-py hooks trust --skill fix`, or `/hooks` in a session, shows it and asks)"
    ]


@pytest.mark.parametrize("change", ["script", "entry"])
async def test_a_changed_hook_must_be_trusted_again(place: Place, change: str) -> None:
    path = add(place)
    trust(place)
    changed = path.parent / "scripts/check.sh" if change == "script" else path
    text = changed.read_text()
    changed.write_text(f"{text}# more\n" if change == "script" else text.replace("check.sh", "check.sh --all"))
    requests, watched = await turns(place, "$fix push")
    assert requests[-1].output_of("c0") != DENIED
    [warning] = [warning for warning in watched.warnings if "hook" in warning]
    assert "is not run" in warning
    assert ("has changed since you trusted it" in warning) is (change == "script")


async def test_a_guard_that_changed_denies_when_it_is_fail_closed(place: Place) -> None:
    path = add(place, GUARD + "          fail_closed: true\n")
    trust(place)
    (path.parent / "scripts/check.sh").write_text("#!/bin/sh\nexit 0\n")
    requests, watched = await turns(place, "$fix push")
    assert "has changed since you trusted it" in requests[-1].output_of("c0")
    assert any("what it guards is denied" in warning for warning in watched.warnings)


async def test_trust_is_for_one_skill_and_can_be_taken_back(place: Place) -> None:
    add(place)
    add(place, name="other")
    trust(place)
    requests, _ = await turns(place, "$other push")
    assert requests[-1].output_of("c0") != DENIED
    trust(place, "--remove")
    requests, _ = await turns(place, "$fix push")
    assert requests[-1].output_of("c0") != DENIED


NOTE = 'touch inside; touch {out}; printf "%s" "$CODEX_SKILL_DIR" > skill'


async def test_hooks_of_a_skill_run_in_the_sandbox_in_the_session_s_directory(place: Place) -> None:
    out = place.home / "escaped"
    path = add_skill(
        own_root(place),
        "fix",
        skill_text("fix", more=GUARD.replace("./scripts/check.sh", json.dumps(NOTE.format(out=out)))),
    )
    trust(place)
    narrow = f"[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n{NO_BUNDLED}"
    await turns(place, "$fix push", top=narrow, sandbox="workspace-write")
    assert ((place.repo / "inside").exists(), out.exists()) == (True, False)
    assert (place.repo / "skill").read_text() == str(path.parent.resolve())


async def test_they_run_beside_the_user_s_own_hooks(place: Place) -> None:
    add(place, GUARD.replace("./scripts/check.sh", "echo from the skill >&2; exit 2"))
    use_hooks(place, PreToolUse=[entry("echo from the user >&2; exit 2", "Bash")])
    trust(place)
    requests, _ = await turns(place, "push", "$fix push")
    assert requests[-1].output_of("c0") == "blocked by a PreToolUse hook: from the user"
    assert "from the user" in requests[-1].output_of("c1")
    assert "from the skill" in requests[-1].output_of("c1")


async def test_a_stop_hook_of_a_skill_sends_the_model_back(place: Place) -> None:
    add(place, "hooks:\n  Stop:\n    - command: test -e done || { echo not yet >&2; exit 2; }\n")
    trust(place)
    answers = [[say("ready")], [call("c1", "exec_command", {"cmd": "touch done", "login": False})], [say("now")]]
    async with scripted_session(place, *answers, top=NO_BUNDLED, sandbox="workspace-write") as (model, watched):
        await watched.say("$fix")
    assert len(model.requests) == 3
    assert any("a Stop hook sends the model back to work: not yet" in warning for warning in watched.warnings)


async def test_once_means_once_a_session(place: Place) -> None:
    add(place, GUARD.replace("./scripts/check.sh", "echo x >> ran") + "          once: true\n")
    trust(place)
    await turns(place, "$fix push", "$fix push", sandbox="workspace-write")
    assert (place.repo / "ran").read_text() == "x\n"


@pytest.mark.parametrize("fork", [False, True])
async def test_hooks_hold_for_the_subagents_of_the_turn(place: Place, fork: bool) -> None:
    add(place, more="context: fork\n" if fork else "")
    trust(place)
    outputs: list[str] = []

    def answer(request: Request) -> Any:
        if has_call(request, "p1"):
            outputs.append(request.output_of("p1"))
            return [say("it did not work")]
        return [push("p1")]

    def top(request: Request) -> Any:
        if fork or has_call(request, "w1"):
            return [say("done")]
        if has_call(request, "s1"):
            agent = json.loads(request.output_of("s1"))["agent_id"]
            return [call("w1", "wait_agent", {"ids": [agent], "timeout_ms": 60_000})]
        return [call("s1", "spawn_agent", {"message": "push it yourself"})]

    def either(request: Request) -> Any:
        texts = [part["text"] for one in request.input if one.get("role") == "user" for part in one["content"]]
        is_agent = (fork and not any("<skill-answer" in text for text in texts)) or "push it yourself" in texts
        return answer(request) if is_agent else top(request)

    with FakeResponses(*[either] * (3 if fork else 5), excuse={"threads"}) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("$fix push it")
    assert outputs == [DENIED], watched.warnings


async def test_hooks_are_listed_with_their_skill_and_the_trust_is_shown(place: Place) -> None:
    path = add(place)
    listed = json.loads(run(place, "hooks", "list", "--json").out)
    assert [(one["event"], one["layer"], one["skill"], one["trusted"]) for one in listed] == [
        ("PreToolUse", "skill", "fix", False)
    ]
    question = run(place, "hooks", "trust", "--skill", "fix")
    assert question.status == 2
    assert f"{path.parent.resolve()}/scripts/check.sh" in question.err
    trust(place)
    assert "skill fix" in run(place, "hooks", "list").out
    unknown = run(place, "hooks", "trust", "--skill", "fxi", "--yes")
    assert (unknown.status, "did you mean `fix`?" in unknown.err) == (2, True)


@pytest.mark.parametrize("off", ["switched off", "untrusted project"])
async def test_they_do_not_run_where_hooks_are_off(place: Place, off: str) -> None:
    add(place)
    trust(place)
    top = "features.hooks = false\n"
    if off == "untrusted project":
        top = f'projects."{place.repo}".trust_level = "untrusted"\n'
    requests, watched = await turns(place, "$fix push", top=f"{top}{NO_BUNDLED}")
    assert requests[-1].output_of("c0") != DENIED
    assert any("marked the project as untrusted" in warning for warning in watched.warnings) is (
        off == "untrusted project"
    )


async def test_what_cannot_be_used_is_named(place: Place) -> None:
    add(place, "hooks:\n  PreToolUs:\n    - command: x\n  Stop:\n    - {type: prompt, prompt: is it done}\n")
    _, watched = await turns(place, "$fix push")
    text = "\n".join(watched.warnings)
    assert "did you mean `PreToolUse`?" in text
    assert "of the type `prompt`" in text
