"""A project's hooks in the sandbox, and hooks whose failure is a no."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.test_exec_without_sandbox import run_in_container
from tests.cli.test_mcp_held import BACKENDS
from tests.support.fake_responses import FakeResponses, call, fake_model, say
from tests.support.home import Place
from tests.support.hooks import entry, listed_hooks, use_hooks, use_project_hooks
from tests.support.process import COMMAND, Finished, Running, run


def work(place: Place, *cmds: str, sandbox: str = "workspace-write", top: str = "") -> tuple[Finished, list[str]]:
    """A run of commands, and what the model read of each."""
    calls = [[call(f"c{n}", "exec_command", {"cmd": cmd, "login": False})] for n, cmd in enumerate(cmds)]
    with fake_model(place, *calls, [say("done")], top=top) as model:
        ended = run(place, "exec", "-s", sandbox, "go")
    return ended, [model.requests[-1].output_of(f"c{n}") for n in range(len(cmds))]


def narrow(place: Place) -> str:
    """Settings under which only the repository can be written."""
    return "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"


@pytest.mark.parametrize("command", ["make lint", "sh tools/check.sh"])
def test_a_project_s_hook_runs_in_the_sandbox(place: Place, command: str) -> None:
    out = place.home / "escaped"
    place.write("Makefile", "lint:\n\t@sh tools/check.sh\n")
    place.write("tools/check.sh", f"touch inside\ntouch {out}\nexit 0\n")
    use_project_hooks(place, PreToolUse=[entry(command, "Bash")])
    assert run(place, "hooks", "trust", "--yes").status == 0
    work(place, "true", top=narrow(place))
    assert ((place.repo / "inside").exists(), out.exists()) == (True, False)

    (place.repo / "inside").unlink()
    work(place, "true", sandbox="read-only")
    assert ((place.repo / "inside").exists(), out.exists()) == (False, False)

    trusted = run(place, "hooks", "trust", "--yes", "--outside", "1")
    assert (trusted.status, "outside the sandbox" in trusted.err) == (0, True)
    assert "run, outside" in run(place, "hooks", "list").out
    work(place, "true", sandbox="read-only")
    assert ((place.repo / "inside").exists(), out.exists()) == (True, True)


def test_what_a_changed_makefile_does_is_not_run(place: Place) -> None:
    out = place.home / "escaped"
    place.write("Makefile", "lint:\n\t@true\n")
    use_project_hooks(place, PreToolUse=[entry("make lint", "Bash")])
    run(place, "hooks", "trust", "--yes", "--outside", "1")
    ended, _ = work(place, f"printf 'lint:\\n\\ttouch {out}\\n' > Makefile", "true")
    assert "has changed since you trusted it" in ended.err
    assert not out.exists()


EXCHANGE = """\
#!/bin/sh
# Runs after the comparison and before the script.
printf 'open("%s", "w")\\n' {out} > {repo}/tools/check.py
printf 'touch %s\\n' {out} > {repo}/tools/check.sh
"""


@pytest.mark.parametrize(
    "command",
    [
        "sh tools/check.sh",
        "tools/check.sh --fast",
        '"$CLAUDE_PROJECT_DIR"/tools/check.sh',
        'bash -e "${CODEX_PROJECT_DIR}/tools/check.sh"; true',
        "LEVEL=1 python3 -B 'tools/check.py' && true",
        ". tools/check.sh",
    ],
)
def test_a_script_exchanged_after_the_comparison_does_not_run_outside(place: Place, command: str) -> None:
    out = place.home / "escaped"
    place.write("tools/check.py", "open('agreed', 'w')\n")
    place.write("tools/check.sh", "#!/bin/sh\ntouch agreed\n").chmod(0o755)
    exchange = place.home / "exchange"
    exchange.write_text(EXCHANGE.format(out=out, repo=place.repo))
    exchange.chmod(0o755)
    use_project_hooks(place, PreToolUse=[entry(f"{exchange} && {command}", "Bash")])
    run(place, "hooks", "trust", "--yes", "--outside", "1")
    work(place, "true", sandbox="read-only")
    assert str(out) in (place.repo / "tools/check.sh").read_text()
    assert ((place.repo / "agreed").exists(), out.exists()) == (True, False)
    assert list((place.codex_home / "cache" / "hooks").iterdir()) == []


@pytest.mark.parametrize(
    ("script", "command"),
    [
        ('cd "$(dirname "$0")" && . ./lib.sh', "sh tools/check.sh"),
        (". ./lib.sh", "cd tools && sh check.sh"),
        (". tools/lib.sh", "bash -c 'sh tools/check.sh'"),
    ],
)
def test_what_cannot_run_from_a_copy_runs_where_it_is(place: Place, script: str, command: str) -> None:
    place.write("tools/check.sh", f"{script}\n")
    place.write("tools/lib.sh", f"touch {place.home}/ran\n")
    use_project_hooks(place, PreToolUse=[entry(command, "Bash")])
    run(place, "hooks", "trust", "--yes", "--outside", "1")
    work(place, "true", sandbox="read-only")
    assert (place.home / "ran").exists()


IN_PLACE = [
    ("sh tools/itself.sh", "tools/itself.sh"),
    ("cd tools && sh check.sh", "tools/check.sh"),
    ("bash -c 'sh tools/check.sh'", "tools/check.sh"),
    ("make", "Makefile"),
    ("npm run lint || sh tools/check.sh", "package.json"),
    ("node tools/check.js || sh tools/check.sh", "tools/check.js"),
    ("sh tools/check.sh tools/settings.json", "tools/settings.json"),
    ("bin/sh tools/check.sh", "bin"),
    ("sh linked/itself.sh", "linked"),
    ("sh nested/.codex/itself.sh", "nested/.codex/itself.sh"),
]


def make_scripts(place: Place, *directories: str) -> None:
    """Scripts that leave a file when they run, one of which looks for its own place."""
    for directory in directories:
        place.write(f"{directory}/check.sh", f"touch {place.home}/ran\n")
        place.write(f"{directory}/itself.sh", 'cd "$(dirname "$0")" && . ./check.sh\n')


@pytest.mark.parametrize(("command", "named"), IN_PLACE)
def test_a_hook_outside_is_not_run_where_commands_may_exchange_its_files(
    place: Place, command: str, named: str
) -> None:
    make_scripts(place, "tools", ".codex/tools", "nested/.codex")
    place.write("Makefile", "lint:\n\tsh tools/check.sh\n")
    place.write("tools/check.js", "throw 1\n")
    for name in ("package.json", "tools/settings.json"):
        place.write(name, "{}\n")
    (place.repo / "bin").symlink_to("/bin")
    (place.repo / "linked").symlink_to(".codex/tools")
    use_project_hooks(place, PreToolUse=[entry(command, "Bash")])
    run(place, "hooks", "trust", "--yes", "--outside", "1")
    ended, _ = work(place, "true")
    assert f"is not run outside the sandbox: commands may write `{place.repo}/{named}`" in ended.err
    assert not (place.home / "ran").exists()
    work(place, "true", sandbox="read-only")
    assert (place.home / "ran").exists()


@BACKENDS
def test_a_hook_outside_may_use_its_own_place_where_that_is_protected(place: Place, wrapper: list[str]) -> None:
    make_scripts(place, ".codex/hooks")
    use_project_hooks(place, PreToolUse=[entry("sh .codex/hooks/itself.sh", "Bash")])
    run(place, "hooks", "trust", "--yes", "--outside", "1")
    with FakeResponses([call("c", "exec_command", {"cmd": "true", "login": False})], [say("done")]) as model:
        place.use_model(model.base_url, f"[sandbox]\nallow_partial = {str(bool(wrapper)).lower()}\n")
        argv = [*wrapper, COMMAND, "exec", "-s", "workspace-write", "go"]
        with Running(argv, env=place.env, cwd=place.repo) as running:
            ended = running.wait()
    # With Landlock alone commands may write there too.
    assert (place.home / "ran").exists() == (not wrapper)
    assert ("is not run outside the sandbox" in ended.err) == bool(wrapper)


def test_a_hook_has_the_network_of_the_session_only(place: Place) -> None:
    place.write("net.py", "import socket\nsocket.create_connection(('127.0.0.1', 9))\n")
    use_project_hooks(place, PreToolUse=[entry("python3 net.py 2> seen; exit 0", "Bash")])
    run(place, "hooks", "trust", "--yes")
    work(place, "true")
    assert (
        "PermissionError" in (place.repo / "seen").read_text() or "not permitted" in (place.repo / "seen").read_text()
    )


def test_where_no_sandbox_holds_a_project_s_hook_is_not_run(place: Place) -> None:
    place.write("check.sh", "touch ran\n")
    use_project_hooks(place, PreToolUse=[entry("sh check.sh", "Bash", fail_closed=True)])
    run(place, "hooks", "trust", "--yes")
    # No sandbox can be made where nothing may be read.
    ended, [output] = work(place, "true", top='[sandbox]\ndeny_read = ["/"]\n')
    assert "(`fail_closed`) is not run: " in output
    assert not (place.repo / "ran").exists()
    assert ended.status == 0


FAILURES: dict[str, tuple[str, dict[str, Any]]] = {
    "crash": ("exit 7", {}),
    "killed": ("kill -9 $$", {}),
    "too slow": ("sleep 30", {"timeout": 0.2}),
    "no program": ("/no/such/guard", {}),
    "half an answer": ("echo '{'", {}),
    "text": ("echo fine", {}),
    "another word": ("""echo '{"decision": "denied"}'""", {}),
    "too much": ("yes", {}),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_the_failure_of_a_hook_is_a_no_where_it_is_set_to(place: Place, failure: str) -> None:
    command, more = FAILURES[failure]
    use_hooks(place, PreToolUse=[entry(command, "Bash", fail_closed=True, **more)])
    _, [output] = work(place, "touch made")
    assert output.startswith("blocked by a PreToolUse hook: a hook that must not fail (`fail_closed`) ")
    assert not (place.repo / "made").exists()

    use_hooks(place, PreToolUse=[entry(command, "Bash", **more)])
    work(place, "touch made")
    assert (place.repo / "made").exists()


def test_a_prompt_does_not_pass_a_guard_that_fails(place: Place) -> None:
    use_hooks(place, UserPromptSubmit=[entry("exit 7", fail_closed=True)])
    with fake_model(place) as model:
        ended = run(place, "exec", "go")
    assert (ended.status, model.requests) == (76, [])
    assert "a hook that must not fail (`fail_closed`) failed with exit code 7" in ended.err


def test_a_guard_that_says_yes_lets_through(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry("exit 0", "Bash", fail_closed=True)])
    assert "code 0" in work(place, "touch made")[1][0]
    listed = json.loads(run(place, "hooks", "list", "--json").out)
    assert [one["fail_closed"] for one in listed] == [True]
    assert "run, fail closed" in run(place, "hooks", "list").out


@pytest.mark.parametrize(
    ("event", "more", "reason"),
    [
        ("PreToolUse", {"matcher": "("}, "its matcher"),
        ("PreToolUse", {"async": True}, "an `async` hook cannot be `fail_closed`"),
        ("Stop", {}, "`fail_closed` is for `PreToolUse`"),
        ("PreToolUse", {"command": ""}, "it has no `command`"),
    ],
)
def test_a_guard_that_is_written_wrongly_stops_the_start(
    place: Place, event: str, more: dict[str, Any], reason: str
) -> None:
    use_hooks(place, **{event: [{"command": "true", "fail_closed": True, **more}]})
    with fake_model(place) as model:
        ended = run(place, "exec", "go")
    assert (ended.status, model.requests) == (1, [])
    assert reason in ended.err


def test_a_project_s_guard_that_a_command_changes_stops_what_comes_next(place: Place) -> None:
    place.write("guard.sh", "exit 0\n")
    use_project_hooks(place, PreToolUse=[entry("sh guard.sh", "Bash", fail_closed=True)])
    run(place, "hooks", "trust", "--yes")
    assert listed_hooks(place) == [("PreToolUse", "project", True)]
    _, outputs = work(place, "echo '# weaker' >> guard.sh", "touch made")
    assert "has changed since you trusted it" in outputs[1]
    assert not (place.repo / "made").exists()


def test_a_project_s_guard_that_changed_before_the_session_denies_too(place: Place) -> None:
    place.write("guard.sh", "exit 0\n")
    guard = entry("sh guard.sh", "Bash", fail_closed=True)
    use_project_hooks(place, PreToolUse=[guard], Stop=[entry("sh guard.sh")])
    run(place, "hooks", "trust", "--yes")
    place.write("guard.sh", "exit 0 # weaker\n")
    assert listed_hooks(place) == [("PreToolUse", "project", False), ("Stop", "project", False)]
    ended, [output] = work(place, "touch made")
    assert "a hook that must not fail (`fail_closed`) is not run: it, or a file it names, has changed" in output
    assert "with `fail_closed`, what it guards is denied" in ended.err
    assert not (place.repo / "made").exists()

    assert run(place, "hooks", "trust", "--yes").status == 0
    assert "code 0" in work(place, "touch made")[1][0]

    # Nobody has agreed to this one, so that a repository cannot stop the work in it.
    use_project_hooks(place, PreToolUse=[{**guard, "matcher": "Bash|Edit"}])
    assert "code 0" in work(place, "touch made")[1][0]


def test_on_landlock_alone_a_project_s_hook_is_held_or_not_run(place: Place) -> None:
    out = place.home / "escaped"
    place.write("check.sh", f"touch inside\ntouch {out}\nexit 0\n")
    use_project_hooks(place, UserPromptSubmit=[entry("sh check.sh")])
    assert run(place, "hooks", "trust", "--yes").status == 0
    for partial in (False, True):
        with fake_model(place, [say("done")], top=narrow(place)):
            accept = ["-c", f"sandbox.allow_partial={str(partial).lower()}"]
            ended = run_in_container(place, "partial", "exec", "-s", "workspace-write", *accept, "go")
        assert ended.status == 0
        assert ("is not run: the sandbox here cannot hold everything" in ended.err) == (not partial)
        assert ((place.repo / "inside").exists(), out.exists()) == (partial, False)


def test_no_hook_of_a_skill_may_run_outside(place: Place) -> None:
    ended = run(place, "hooks", "trust", "--skill", "spell", "--yes", "--outside", "1")
    assert (ended.status, "hooks of a skill always run in the sandbox" in ended.err) == (2, True)
