"""What a rule that forbids, or asks, gets to see of a script."""

from __future__ import annotations

import pytest

from codex_py.tools.hidden_commands import hidden_commands


@pytest.mark.parametrize(
    "script",
    [
        "git push origin",
        "git push origin > log",
        "x=$(git push origin)",
        "bash -c 'ls; git push origin' 2>&1",
        "A=1 git push origin",
        "env A=1 nice -n 5 git push origin",
        "sudo timeout 5 git push origin | tee log",
        "echo origin | xargs -n 1 git push origin",
        "find . -exec git push origin {} ';'",
        "ls | xargs sudo git push origin",
        "setsid git push origin &",
        "while true; do git push origin; done",
        "$'git' p\\ush origin",
        "G=git; $G push origin",
        "git -C x push origin",
        "git --no-pager -c a=b push origin",
        "sh <<E\ngit push origin\nE",
        "cat <<E | bash\ngit push origin\nE",
        "bash -s <<<'git push origin'",
        "bash -s <<<'bash <<<\"git push origin\"'",
        "printf 'ls\\ngit push origin' | cat | bash",
        "GIT_PAGER='git push origin' git log",
        "export EDITOR='git push origin'",
        "env EDITOR='git push origin' crontab -e",
        "git -c alias.x='push origin' x",
        "git -c core.pager='git push origin' log",
        "git rebase -x 'git push origin'",
        "find . -exec sh -c 'git push origin' ';'",
        "trap 'git push origin' EXIT",
        "strace -f git push origin",
        "docker exec x git push origin",
        "python -c \"os.system('git push origin')\"",
    ],
)
def test_a_command_is_seen_wherever_it_hides(script: str) -> None:
    assert ("git", "push", "origin") in [words[:3] for words in hidden_commands(script, "/work", {})]


def test_what_runs_a_command_is_seen_as_well() -> None:
    assert hidden_commands("sudo -u me nice make > log", "/work", {}) == (
        ("sudo", "-u", "me", "nice", "make"),
        ("-u", "me", "nice", "make"),
        ("me", "nice", "make"),
        ("nice", "make"),
        ("make",),
    )


def test_a_word_of_an_argument_is_no_command() -> None:
    assert hidden_commands("grep make x; echo sudo; find . -name make", "/work", {}) == (
        ("grep", "make", "x"),
        ("echo", "sudo"),
        ("find", ".", "-name", "make"),
    )


@pytest.mark.parametrize(
    "script",
    ["cat > f <<E\ngit push origin\nE", "echo 'git push origin' | cat", "grep 'git push origin' x", "docker rm x"],
)
def test_what_nothing_runs_is_no_command(script: str) -> None:
    assert {"make", "git", "rm"}.isdisjoint(words[0] for words in hidden_commands(script, "/work", {}) if words)
