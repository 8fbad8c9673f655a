"""`codex-py hooks`, as a script meets it."""

from __future__ import annotations

import json

import pytest

from tests.support.home import Place
from tests.support.hooks import (
    NO_PUSH,
    entry,
    hook_inputs,
    listed_hooks,
    log_of,
    noting,
    saying,
    use_hooks,
    use_project_hooks,
    write_script,
)
from tests.support.process import run


def test_trust_is_for_one_project_and_can_be_taken_back(place: Place) -> None:
    use_project_hooks(place, Stop=[entry(noting(place))])
    run(place, "hooks", "trust", "--yes")
    kept = place.codex_home / "trusted_hooks.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert list(json.loads(kept.read_text())["projects"]) == [str(place.repo)]

    assert run(place, "hooks", "trust", "--remove").status == 0
    assert listed_hooks(place) == [("Stop", "project", False)]


def test_nothing_is_trusted_where_nobody_can_be_asked(place: Place) -> None:
    use_project_hooks(place, Stop=[entry("bash tools/check.sh")])
    question = run(place, "hooks", "trust")
    assert (question.status, question.out) == (2, "")
    assert question.err.splitlines()[-2:] == [
        "they run in the sandbox of the session; `--outside N` lets hook N run outside",
        "error: trusting hooks needs approval, and nobody can be asked; pass --yes",
    ]
    assert listed_hooks(place) == [("Stop", "project", False)]


def test_a_hook_that_was_trusted_before_its_script_changed_is_distinguished_from_a_new_one(place: Place) -> None:
    script = place.write("tools/check.sh", "exit 0\n")
    use_project_hooks(place, Stop=[entry("bash tools/check.sh")])
    run(place, "hooks", "trust", "--yes")
    script.write_text("exit 2\n")
    use_project_hooks(place, Stop=[entry("bash tools/check.sh"), entry("exit 0")])

    listed = run(place, "hooks", "list")
    where = place.repo / ".codex/hooks.json"
    how = "(`codex-py hooks trust`, or `/hooks` in a session, shows it and asks)"
    assert listed.err.splitlines() == [
        f"warning: 1 hook in `{where}` is not run: a file that it names has changed since you trusted it {how}",
        f"warning: 1 hook in `{where}` is not run: what a project brings runs only when you have agreed to it {how}",
    ]
    assert listed.out == (
        "EVENT  MATCHER  SOURCE   STATUS       COMMAND\n"
        "Stop   *        project  changed      bash tools/check.sh\n"
        "Stop   *        project  not trusted  exit 0\n"
    )
    agreed = run(place, "hooks", "trust", "--yes")
    assert f"Stop, in `{where}` (not what you agreed to before):\n" in agreed.err
    assert [runs for _, _, runs in listed_hooks(place)] == [True, True]


def test_a_project_marked_as_untrusted_has_no_hooks(place: Place) -> None:
    use_project_hooks(place, Stop=[entry(noting(place))])
    place.configure(f'[projects."{place.repo}"]\ntrust_level = "untrusted"\n')
    listed = run(place, "hooks", "list")
    assert (listed.out, "you marked the project as untrusted" in listed.err) == ("", True)
    assert run(place, "hooks", "trust", "--json").status == 0
    assert listed_hooks(place) == []


def test_a_projects_config_toml_is_a_place_for_hooks_too(place: Place) -> None:
    place.write(".codex/config.toml", '[[hooks.Stop]]\ncommand = "exit 0"\n')
    assert listed_hooks(place) == [("Stop", "project", False)]
    run(place, "hooks", "trust", "--yes")
    assert listed_hooks(place) == [("Stop", "project", True)]


def test_all_layers_are_listed_in_their_order(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry("true", "Bash")])
    place.configure('[[hooks.PreToolUse]]\nmatcher = "Edit|Write"\ncommand = ["fmt", "a b"]\ntimeout = 2.5\n')
    use_project_hooks(place, Stop=[entry("exit 0")])
    listed = run(place, "hooks", "list", "-c", "hooks.Stop=[{command='echo bye'}]")
    assert listed.out == (
        "EVENT       MATCHER     SOURCE   STATUS       COMMAND\n"
        "Stop        *           user     run          echo bye\n"
        "PreToolUse  Edit|Write  user     run          fmt 'a b'\n"
        "PreToolUse  Bash        user     run          true\n"
        "Stop        *           project  not trusted  exit 0\n"
    )


@pytest.mark.parametrize(
    ("tool", "alias"), [("spawn_agent", "Task"), ("send_input", "SendMessage"), ("skill", "Skill")]
)
def test_a_tool_is_tried_with_hooks_for_its_other_name(place: Place, tool: str, alias: str) -> None:
    use_hooks(place, PreToolUse=[entry("exit 0", alias)])
    assert "  exit code 0\n" in run(place, "hooks", "test", "PreToolUse", "--tool", tool).out
    assert run(place, "hooks", "test", "PreToolUse", "--tool", "update_plan").out == "no hook is run at PreToolUse\n"


def test_a_file_others_can_write_has_no_say(place: Place) -> None:
    use_hooks(place, Stop=[entry("exit 0")])
    (place.codex_home / "hooks.json").chmod(0o666)
    listed = run(place, "hooks", "list")
    assert listed.out == ""
    path = place.codex_home / "hooks.json"
    warning = f"`{path}` can be written by others: run `chmod go-w {path}`; until then `hooks.json` is ignored"
    assert listed.err.splitlines()[0] == f"warning: {warning}"


def test_hooks_are_tried_without_a_session(place: Place) -> None:
    use_hooks(
        place,
        PreToolUse=[entry(write_script(place, "no-push.sh", NO_PUSH), "Bash")],
        Stop=[entry("exit 1")],
    )
    tried = run(place, "hooks", "test", "PreToolUse", "--command", "git push")
    assert tried.status == 0
    assert "  exit code 2\n" in tried.out
    assert tried.out.endswith("together: deny; reason: BLOCKED: git push is not allowed\n")

    assert run(place, "hooks", "test", "Stop").status == 1
    assert run(place, "hooks", "test", "Notification").out == "no hook is run at Notification\n"
    wrong = run(place, "hooks", "test", "PreToolUs")
    assert (wrong.status, "did you mean `PreToolUse`" in wrong.err) == (2, True)
    assert run(place, "hooks", "test", "Stop", "--input", "[").status == 2

    use_hooks(place, PostToolUseFailure=[entry(noting(place, saying({"systemMessage": "look at it"})))])
    assert run(place, "hooks", "test", "PostToolUseFailure").out.endswith(
        "together: for you: PostToolUseFailure hook: look at it\n"
    )
    [failed] = hook_inputs(place)
    assert (failed["error"], failed["tool_response"]["exit_code"]) == ("Exit code 1\n", 1)

    log_of(place).unlink()
    use_hooks(place, UserPromptSubmit=[entry(noting(place, "echo more"))])
    spoken = run(place, "hooks", "test", "UserPromptSubmit", "--input", '{"prompt": "hey"}', "--json")
    said = json.loads(spoken.out)
    assert said["verdict"]["context"] == ["more"]
    assert [one["prompt"] for one in hook_inputs(place)] == ["hey"]
