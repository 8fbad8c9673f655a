"""Hooks in `exec`, as a script meets them."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_responses import FakeResponses, call, custom_call, fake_model, say
from tests.support.home import Place
from tests.support.hooks import (
    NO_PUSH,
    entry,
    hook_inputs,
    listed_hooks,
    noting,
    saying,
    use_hooks,
    use_project_hooks,
    write_script,
)
from tests.support.process import Finished, is_running, run, start

CHANGED = "is not run: a file that it names has changed since you trusted it"
UNTRUSTED = "is not run: what a project brings runs only when you have agreed to it"


def push(place: Place, cmd: str = "git push", *flags: str) -> tuple[Finished, str]:
    """A run in which the model wants to run a command, and what it read of that."""
    with FakeResponses([call("c1", "exec_command", {"cmd": cmd, "login": False})], [say("done")]) as model:
        place.use_model(model.base_url, 'sandbox_mode = "danger-full-access"\n')
        ended = run(place, "exec", *flags, "push it")
    return ended, model.requests[1].output_of("c1")


@pytest.mark.parametrize("cmd", ["git push", "bash -c 'git push'"])
def test_exec_does_not_push_against_a_hook(place: Place, cmd: str) -> None:
    use_hooks(place, PreToolUse=[entry(write_script(place, "no-push.sh", NO_PUSH), "Bash")])
    ended, output = push(place, cmd, "--json")

    reason = "BLOCKED: git push is not allowed"
    assert output == f"blocked by a PreToolUse hook: {reason}"
    assert ended.status == 0
    items = [event["item"] for event in ended.events if event["type"] == "item.completed"]
    assert [(item["type"], item.get("message") or item.get("status") or item.get("text")) for item in items] == [
        ("error", f"a PreToolUse hook blocked `{cmd}`: {reason}"),
        ("command_execution", "failed"),
        ("agent_message", "done"),
    ]


def test_a_blocked_prompt_is_a_failed_run_that_says_why(place: Place) -> None:
    use_hooks(place, UserPromptSubmit=[entry("echo 'no secrets, please' >&2; exit 2")])
    with fake_model(place) as model:
        ended = run(place, "exec", "the password is swordfish")

    assert ended.status == 76
    assert "the prompt was blocked by a UserPromptSubmit hook and is dropped: no secrets, please" in ended.err
    assert model.requests == []


def test_a_projects_hooks_run_after_a_yes_to_exactly_them(place: Place) -> None:
    script = place.write("tools/check.sh", NO_PUSH)
    use_project_hooks(place, PreToolUse=[entry("bash tools/check.sh", "Bash")])
    ended, output = push(place, "git push --dry-run nowhere")
    assert "hook" not in output
    assert ended.err.count(UNTRUSTED) == 1
    assert listed_hooks(place) == [("PreToolUse", "project", False)]

    trusted = run(place, "hooks", "trust", "--yes")
    assert (trusted.status, trusted.out) == (0, f"trusted as they are now: 1 hook of {place.repo}\n")
    assert "bash tools/check.sh" in trusted.err
    ended, output = push(place)
    assert output.startswith("blocked by a PreToolUse hook")
    assert UNTRUSTED not in ended.err
    assert listed_hooks(place) == [("PreToolUse", "project", True)]

    script.write_text(NO_PUSH + "# something else\n")
    ended, output = push(place, "git push --dry-run nowhere")
    assert "hook" not in output
    assert (ended.err.count(CHANGED), ended.err.count(UNTRUSTED)) == (1, 0)

    ended, output = push(place, "git push", "--dangerously-bypass-hook-trust")
    assert output.startswith("blocked by a PreToolUse hook")
    assert "is run without your agreement (`--dangerously-bypass-hook-trust`)" in ended.err


def test_a_script_that_changes_in_the_session_is_not_run_any_more(place: Place) -> None:
    place.write("tools/check.sh", "exit 0\n")
    use_project_hooks(place, PreToolUse=[entry("bash tools/check.sh", "Bash")])
    run(place, "hooks", "trust", "--yes")
    change = {"cmd": "echo 'touch /tmp/out-of-the-sandbox' > tools/check.sh", "login": False}
    with fake_model(
        place, [call("c1", "exec_command", change)], [call("c2", "exec_command", {"cmd": "true"})], [say("done")]
    ) as model:
        ended = run(place, "exec", "-s", "workspace-write", "go")

    assert len(model.requests) == 3
    assert "it, or a file it names, has changed since you trusted it" in ended.err
    assert not Path("/tmp/out-of-the-sandbox").exists()


@pytest.mark.parametrize("junk", ["{", "[]", '"hooks"', "\0\1\2", "{" * 100_000, '{"hooks": {"Stop": 5, "Stopp": []}}'])
def test_a_broken_file_costs_a_warning(place: Place, junk: str) -> None:
    (place.codex_home / "hooks.json").write_text(junk)
    with fake_model(place, [say("done")]):
        ended = run(place, "exec", "go")
    assert (ended.status, ended.out) == (0, "done\n")
    assert "hooks.json" in ended.err or junk.startswith('{"hooks"')


def test_hooks_that_only_other_programs_run_are_reported_once(place: Place) -> None:
    use_hooks(place, Stop=[{"hooks": [{"type": "prompt", "prompt": "is it done?"}]}])
    notice = f"warning: 1 hook of the type `prompt` in `{place.codex_home / 'hooks.json'}` is not run"
    with fake_model(place, [say("one")], [say("two")], excuse={"threads"}):
        told_of = [notice in run(place, "exec", "go").err for _ in range(2)]
    assert told_of == [True, False]
    assert notice in run(place, "hooks", "list").err


def test_keys_do_not_reach_a_hook(place: Place) -> None:
    use_hooks(place, Stop=[entry(f"env > {place.home / 'env'}; cat > /dev/null")])
    keyed = place.with_env(OPENAI_API_KEY="sk-123", MY_TOKEN="t", HARMLESS="yes")
    with fake_model(place, [say("done")]):
        assert run(keyed, "exec", "go").status == 0
    env = dict(line.split("=", 1) for line in (place.home / "env").read_text().splitlines() if "=" in line)
    assert (env.get("OPENAI_API_KEY"), env.get("MY_TOKEN"), env["HARMLESS"]) == (None, None, "yes")
    assert (env["CLAUDE_PROJECT_DIR"], env["CODEX_HOOK_EVENT"]) == (str(place.repo), "Stop")


def test_what_a_hook_says_to_the_user_keeps_its_lines(place: Place) -> None:
    use_hooks(place, Stop=[entry(saying({"systemMessage": "two things:\ncodex\n\x1b[31mred\n"}))])
    with fake_model(place, [say("done")]):
        ended = run(place, "exec", "go")
    assert "warning: Stop hook: two things:\n  codex\n  ␛[31mred\n" in ended.err
    assert ended.out == "done\n"


def test_a_plugins_hooks_know_where_their_plugin_is(place: Place) -> None:
    for name in ("neat", "tidy"):
        root = place.codex_home / "plugins" / "cache" / "shop" / name / "1.0.0"
        (root / "hooks").mkdir(parents=True)
        (root / ".codex-plugin").mkdir()
        (root / ".codex-plugin" / "plugin.json").write_text(json.dumps({"name": name}))
        (root / "say.sh").write_text(f'cat > "$CLAUDE_PLUGIN_DATA/last"; echo swept by {name}\n')
        # The same words in both, for a script of each.
        command = {"command": 'bash "${CLAUDE_PLUGIN_ROOT}/say.sh"'}
        (root / "hooks" / "hooks.json").write_text(json.dumps({"hooks": {"SessionStart": [command]}}))
    with fake_model(
        place, [say("done")], top="".join(f'[plugins."{one}@shop"]\nenabled = true\n' for one in ("neat", "tidy"))
    ) as model:
        assert run(place, "exec", "go").status == 0
    assert [text.split("\n")[1] for text in model.requests[0].texts("developer") if "swept" in text] == [
        "swept by neat",
        "swept by tidy",
    ]
    kept = [place.codex_home / "plugins" / "data" / f"{name}-shop" / "last" for name in ("neat", "tidy")]
    assert [json.loads(file.read_text())["hook_event_name"] for file in kept] == ["SessionStart"] * 2
    assert listed_hooks(place) == [("SessionStart", "plugin", True)] * 2


@pytest.mark.parametrize(("manifest", "name"), [(".claude-plugin", "Write"), (".codex-plugin", "apply_patch")])
def test_a_plugin_gets_the_names_of_the_program_it_is_for(place: Place, manifest: str, name: str) -> None:
    root = place.codex_home / "plugins" / "cache" / "shop" / "neat" / "1.0.0"
    (root / "hooks").mkdir(parents=True)
    (root / manifest).mkdir()
    (root / manifest / "plugin.json").write_text('{"name": "neat"}')
    (root / "hooks" / "hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": [entry(noting(place), "*")]}}))
    patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** End Patch\n"
    with FakeResponses([custom_call("c1", "apply_patch", patch)], [say("done")]) as model:
        place.use_model(model.base_url, '[plugins."neat@shop"]\nenabled = true\n')
        assert run(place, "exec", "-s", "workspace-write", "go").status == 0
    assert [one["tool_name"] for one in hook_inputs(place)] == [name]


def test_an_ended_session_waits_for_what_hooks_still_do(place: Place) -> None:
    done = place.home / "done"
    use_hooks(place, SessionEnd=[entry(f"cat > /dev/null; sleep 0.3; touch {done}")])
    with fake_model(place, [say("done")]):
        assert run(place, "exec", "go").status == 0
    assert done.exists()


def test_an_interrupt_ends_the_wait_for_what_hooks_still_do(place: Place) -> None:
    begun = place.home / "begun"
    os.mkfifo(begun)
    use_hooks(place, SessionEnd=[entry(f"echo $$ > {begun}; sleep 300")])
    with fake_model(place, [say("done")]), start(place, "exec", "go") as running:
        pid = int(begun.read_text())
        running.send_signal(signal.SIGINT)
        ended = running.wait()
    assert (ended.status, ended.out) == (0, "done\n")
    assert ended.err.splitlines()[-1] == "warning: SessionEnd hooks were stopped"
    assert not is_running(pid)


def test_nothing_of_a_hook_that_hangs_is_left(place: Place) -> None:
    pids = place.home / "pids"
    script = f"echo $$ >> {pids}; (setsid sh -c 'echo $$ >> {pids}; sleep 300' &) ; sleep 300"
    use_hooks(place, UserPromptSubmit=[entry(script, timeout=1)])
    with fake_model(place, [say("done")]):
        ended = run(place, "exec", "go")
    assert (ended.status, ended.out) == (0, "done\n")
    assert "did not end within 1 s and was killed" in ended.err
    numbers = [int(line) for line in pids.read_text().split()]
    assert len(numbers) == 2
    assert [number for number in numbers if is_running(number)] == []


def leave(place: Place, command: str, *flags: str, said: str = "", status: int = 0) -> tuple[bool, list[Any]]:
    """Whether a command may write outside of the sandbox, and what a hook that answers is told.

    `said` is how the output that the model reads begins, `status` how the run ends.
    """
    use_hooks(place, PermissionRequest=[entry(noting(place, command), "Bash")])
    outside = place.home / "outside"
    arguments = {"cmd": f"touch {outside}", "sandbox_permissions": "require_escalated", "justification": "to see"}
    with fake_model(place, [call("c1", "exec_command", arguments)], [say("done")]) as model:
        assert run(place, "exec", "-s", "workspace-write", *flags, "go").status == status
    assert model.requests[1].output_of("c1").startswith(said)
    return outside.exists(), [(one["permission_mode"], one["tool_input"]["command"]) for one in hook_inputs(place)]


DECISION = '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}'
ALLOW = f"echo '{DECISION}'"


@pytest.mark.parametrize(
    ("command", "leaves", "status", "said"),
    [
        (ALLOW, True, 0, "Chunk ID: "),
        ("echo no >&2; exit 2", False, 0, "command declined by a PermissionRequest hook: no"),
        ("exit 0", False, 73, "command declined by default: nobody can be asked in this session, and no hook has said"),
    ],
)
def test_where_nobody_can_be_asked_a_hook_gives_permission(
    place: Place, command: str, leaves: bool, status: int, said: str
) -> None:
    flags = ("-c", "approval_policy=on-request")
    left = leave(place, command, *flags, said=said, status=status)
    assert left == (leaves, [("default", f"touch {place.home / 'outside'}")])


@pytest.mark.parametrize("flags", [(), ("-c", "approval_policy=never")])
def test_a_hook_gives_no_permission_where_the_user_wants_no_questions(place: Place, flags: tuple[str, ...]) -> None:
    assert leave(place, ALLOW, *flags) == (False, [])


def test_a_project_does_not_have_hooks_give_permission(place: Place) -> None:
    place.write(".codex/config.toml", 'approval_policy = "on-request"\n')
    assert leave(place, ALLOW, "--trust") == (False, [])


def test_hooks_that_give_permission_are_asked_about_nothing_that_runs_without_them(place: Place) -> None:
    use_hooks(place, PermissionRequest=[entry(noting(place))])
    with fake_model(place, [call("c1", "exec_command", {"cmd": "touch made"})], [say("done")]):
        assert run(place, "exec", "-s", "workspace-write", "-c", "approval_policy=untrusted", "go").status == 0
    assert (place.repo / "made").exists()
    assert hook_inputs(place) == []
