"""`exec` without a sandbox and without questions: what still refuses a command, and what does not."""

from __future__ import annotations

import pytest

from tests.support.fake_responses import call, fake_model, say
from tests.support.home import Place
from tests.support.hooks import entry, use_hooks
from tests.support.process import run

BYPASS = ("--dangerously-bypass-approvals-and-sandbox",)
SPELT_OUT = ("-s", "danger-full-access", "-c", "approval_policy=never")


def output_of(place: Place, cmd: str, *flags: str, top: str = "") -> str:
    """What the model reads of a command."""
    with fake_model(place, [call("c1", "exec_command", {"cmd": cmd, "login": False})], [say("done")], top=top) as model:
        ended = run(place, "exec", *flags, "go")
    assert ended.status == 0, ended.err
    return model.requests[1].output_of("c1")


@pytest.mark.parametrize("flags", [BYPASS, SPELT_OUT, ("-s", "danger-full-access")])
@pytest.mark.parametrize("cmd", ["rm -rf README.md", "echo x >> README.md && git reset -q --hard", "git clean -qfdx"])
def test_nothing_guards_against_accidents_where_the_user_wants_no_limits(
    place: Place, flags: tuple[str, ...], cmd: str
) -> None:
    assert "Process exited with code 0" in output_of(place, cmd, *flags)
    assert (place.repo / "README.md").exists() != cmd.startswith("rm")


@pytest.mark.parametrize(
    ("decision", "refusal"),
    [
        ("forbidden", "command refused: forbidden by a rule of the user: ask me"),
        (
            "prompt",
            "refused: a rule of the user wants to be asked: ask me; nobody can be asked under the approval policy",
        ),
    ],
)
def test_rules_of_the_user_hold_all_the_same(place: Place, decision: str, refusal: str) -> None:
    rules = place.codex_home / "rules"
    rules.mkdir(mode=0o700)
    (rules / "own.rules").write_text(f'prefix_rule(["git", "push"], "{decision}", "ask me")\n')
    assert output_of(place, "git push", *BYPASS).startswith(refusal)


def test_hooks_of_the_user_hold_all_the_same(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry("echo not now >&2; exit 2", "Bash")])
    assert output_of(place, "rm -rf README.md", *BYPASS) == "blocked by a PreToolUse hook: not now"
