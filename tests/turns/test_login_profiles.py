"""Login profiles: what commands find of them, and what of them must not reach commands."""

from __future__ import annotations

import shutil

import pytest

from tests.support.fake_responses import call, say
from tests.support.home import Place
from tests.support.session import scripted_session
from tests.unit.command_builders import output_of

NVM = 'nvm() { case "$1" in use) NODE="v$2" ;; esac; }\nalias node=false\n'
WARNING = "cannot read the login profile of `{}`: commands run in the environment of codex-py"

# The shell, its profile, a command, its output each time, and whether the profile cannot be read.
ROWS = {
    "cd": ("bash", 'cd "$HOME"; export MORE=1', 'echo "$(basename "$PWD") $OLDPWD$MORE"', "repo 1\n", False),
    "cd-sh": ("sh", "cd /; export MORE=1", 'echo "$(basename "$PWD") $MORE"', "repo 1\n", False),
    "exec-sh": ("bash", "exec sh", "echo out", "out\n", True),
    "exec-cat": ("bash", "exec cat", "echo out", "out\n", True),
    "exec-in-sh": ("sh", "exec cat", "echo out", "out\n", True),
    "exit": ("bash", "export MORE=1; exit 0", "echo out$MORE", "out\n", True),
    "exit-sh": ("sh", "exit 0", "echo out", "out\n", True),
    "killed": ("bash", "kill -9 $$", "echo out", "out\n", True),
    "hangs": ("bash", "tail -f /dev/null", "echo out", "out\n", True),
    "readonly": ("bash", "readonly PATH; readonly X=1", "PATH=/a X=2; echo $PATH$X", "/a2\n", False),
    "set-e": ("bash", "set -euo pipefail", "false; echo $UNSET.", ".\n", False),
    "set-e-sh": ("sh", "set -eu", "false; echo $UNSET.", ".\n", False),
    "noclobber": ("bash", "set -C; export MORE=1", "echo a >f; echo b >f; cat f; echo $MORE", "b\n1\n", False),
    "noclobber-sh": ("sh", "set -C; export MORE=1", "echo a >f; echo b >f; cat f; echo $MORE", "b\n1\n", False),
    "aliases": ("bash", "shopt -s expand_aliases; alias echo=false", "echo out", "out\n", False),
    "functions": ("bash", NVM, "nvm use 20; echo $NODE", "v20\n", False),
    "exported-function": ("bash", "f() { echo f; }; export -f f", "f; bash -c f", "f\nf\n", False),
    "shopt": (
        "bash",
        "shopt -s globstar extglob",
        "echo **/README.m!(x); shopt globstar",
        "README.md\nglobstar       \ton\n",
        False,
    ),
    "umask": ("bash", "umask 027", "umask", "0027\n", False),
    "prints": ("bash", "echo noise; echo noise >&2; export MORE=1", "echo $MORE", "1\n", False),
    "prints-sh": ("sh", "echo noise; echo noise >&2; export MORE=1", "echo $MORE", "1\n", False),
    "status": ("bash", "export MORE=1; false", "echo $?$MORE", "01\n", False),
    "traps": ("bash", "trap 'echo bye' EXIT; export MORE=1", "echo $MORE", "1\n", False),
    "syntax-error": ("bash", "export MORE=1\nif then\n", "echo out$MORE", "out1\n", False),
    "unset": ("bash", "unset GONE; export X='a b\n$c'", 'echo "[$GONE]$X"', "[]a b\n$c\n", False),
    "redirected": ("bash", "exec >/dev/null 2>&1; export MORE=1", "echo $MORE", "1\n", False),
    "bash-env": (
        "bash",
        'echo "f() { echo f; }; cd /" >"$HOME/env"; export BASH_ENV="$HOME/env"',
        "f; bash -c f",
        "f\nf\n",
        False,
    ),
    "zsh": ("zsh", "cd /; alias echo=false; export MORE=1", 'echo "$(basename "$PWD") $MORE"', "repo 1\n", False),
    "ksh": ("ksh", "cd /; export MORE=1", 'echo "$(basename "$PWD") $MORE"', "repo 1\n", False),
}


def write_profile(place: Place, text: str) -> None:
    for name in (".bash_profile", ".profile", ".zprofile"):
        (place.home / name).write_text(f'echo x >> "$HOME/read"\n{text}\n')


async def outputs(
    place: Place, shell: str, *commands: str, sandbox: str = "danger-full-access"
) -> tuple[list[str], list[str]]:
    """What the model reads of each command, and the warnings of the session about profiles."""
    calls = [[call(f"c{n}", "exec_command", {"cmd": cmd, "shell": shell})] for n, cmd in enumerate(commands)]
    async with scripted_session(place, *calls, [say("done")], sandbox=sandbox) as (model, watched):
        await watched.say("go")
        warnings = [warned for warned in watched.warnings if "profile" in warned]
    return [output_of(model.requests[-1].output_of(f"c{n}")) for n in range(len(commands))], warnings


@pytest.mark.parametrize("name", ROWS)
async def test_commands_have_what_the_profile_found_and_nothing_else_of_it(place: Place, name: str) -> None:
    shell, profile, command, expected, fails = ROWS[name]
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell} here")
    write_profile(place, profile)
    place = place.with_env(GONE="here")
    printed, warnings = await outputs(place, path, command, command)
    assert printed == [expected, expected]
    assert warnings == ([WARNING.format(path)] if fails else [])
    assert (place.home / "read").read_text() == "x\n"


async def test_a_sandboxed_command_has_what_the_profile_found(place: Place) -> None:
    write_profile(place, "f() { echo $MORE; }; export MORE=1; cd /; echo noise")
    printed, warnings = await outputs(place, "/bin/bash", "f; pwd", "f; pwd", sandbox="workspace-write")
    assert printed == [f"1\n{place.repo}\n"] * 2
    assert warnings == []


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
@pytest.mark.parametrize("profile", ["PATH=/usr/bin:/bin", 'PATH="/usr/bin:/bin:$PATH"'], ids=["debian", "macos"])
@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
async def test_an_activated_environment_stays_at_the_front(
    place: Place, shell: str, profile: str, variable: str
) -> None:
    write_profile(place, profile)
    active = place.home / "venv"
    place = place.with_env(**{variable: str(active), "PATH": f"{active}/bin:{place.env['PATH']}"})
    printed, _ = await outputs(place, shell, "echo $PATH")
    directories = printed[0].strip().split(":")
    assert directories[:2] == [f"{active}/bin", "/usr/bin"]
    assert directories.count(f"{active}/bin") == 1


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
async def test_an_environment_that_is_not_activated_is_not_put_on_the_path(place: Place, shell: str) -> None:
    write_profile(place, "PATH=/usr/bin:/bin")
    printed, _ = await outputs(place.with_env(VIRTUAL_ENV=str(place.home / "venv")), shell, "echo $PATH")
    assert "venv/bin" not in printed[0].replace(".venv/bin", "")
