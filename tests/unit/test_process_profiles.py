"""Login shells: what commands find of the user's profile, and how often that is read."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from codex_py.config.sections import ShellEnvironmentPolicy
from codex_py.process.env import WithheldEnv
from codex_py.process.manager import ProcessManager
from tests.unit.command_builders import Session, output_of, reply

PROFILE = r"""
echo x >> "$HOME/read"
export QUOTED="it's ! ^x
\$y" TERM=xterm PATH="$HOME/bin:$PATH"
unset GIVEN
greet() { echo "hello $1"; }
exported() { echo called; }
export -f exported
shopt -s globstar
umask 027
"""
SHOWN = 'echo "$QUOTED $TERM ${PATH%%:*} $GIVEN $BASH_ENV"; greet you; bash -c exported; shopt globstar; umask'


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    made = Session(tmp_path, GIVEN="given")
    yield made
    await made.processes.kill_all()


def _times_read(session: Session) -> int:
    return len((session.cwd / "read").read_text().split())


async def test_a_profile_is_read_once_and_what_it_leaves_is_found_each_time(session: Session) -> None:
    (session.cwd / ".bash_profile").write_text(PROFILE)
    expected = f"it's ! ^x\n$y xterm {session.cwd}/bin  \nhello you\ncalled\nglobstar       \ton\n0027\n"
    for _ in range(3):
        assert await session.exec(SHOWN, login=True) == reply(expected)
    assert output_of(await session.exec("greet you", login=True, tty=True)) == "hello you\r\n"
    assert _times_read(session) == 1
    assert output_of(await session.exec("echo $QUOTED$GIVEN")) == "given\n"


async def test_variables_that_bash_has_no_names_for_stay(session: Session) -> None:
    session.env |= {"ünï": "1", "a.b": "2"}
    assert output_of(await session.exec("env -0 | tr '\\0' '\\n' | grep -c '^a.b='", login=True)) == "1\n"


async def test_calls_at_once_read_the_profile_once(session: Session) -> None:
    (session.cwd / ".bash_profile").write_text(PROFILE)
    await asyncio.gather(*(session.exec("true", login=True) for _ in range(4)))
    assert _times_read(session) == 1


async def test_a_command_that_is_stopped_while_the_profile_is_read_leaves_nothing(session: Session) -> None:
    (session.cwd / ".bash_profile").write_text("[ -e fifo ] && cat fifo\nexport MORE=1\n")
    os.mkfifo(session.cwd / "fifo")
    first = asyncio.create_task(session.exec("true", login=True))
    writer = await asyncio.to_thread(os.open, session.cwd / "fifo", os.O_WRONLY)  # opens once `cat` reads
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    os.close(writer)
    assert session.processes.live() == []
    (session.cwd / "fifo").unlink()
    assert await session.exec("echo $MORE", login=True) == reply("1\n")


@pytest.mark.parametrize("also", [{}, {"POSIXLY_CORRECT": "1"}])
async def test_no_command_holds_the_file_with_functions_of_the_profile(session: Session, also: dict[str, str]) -> None:
    session.env |= also
    for _ in range(2):
        # The fourth is the listing's own.
        assert output_of(await session.exec("echo /proc/self/fd/*", login=True)).count("/fd/") == 4


SECRETS = """
export GITHUB_TOKEN=plain-value PLAIN=fine MULTI='one
DB_KEY=two'
export REMOTE=https://user:pa55word@example.com PUSH=ghp_0123456789abcdefghijABCDEFGHIJ
export PASSED_TOKEN=profile
"""


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
async def test_a_profile_brings_back_no_secret(session: Session, shell: str) -> None:
    for name in (".bash_profile", ".profile"):
        (session.cwd / name).write_text(SECRETS)
    session.env["PASSED_TOKEN"] = "passed"
    for _ in range(2):
        found = output_of(await session.exec("env; echo [$GITHUB_TOKEN$PUSH]", login=True, shell=shell))
        assert "GITHUB_TOKEN" not in found
        assert "pa55word" not in found
        assert "ghp_" not in found
        assert "PLAIN=fine\n" in found
        assert "MULTI=one\nDB_KEY=two\n" in found
        assert "PASSED_TOKEN=profile\n" in found
        assert found.endswith("[]\n")


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        (ShellEnvironmentPolicy(allow=("GITHUB_*",)), {"GITHUB_TOKEN", "PLAIN"}),
        (ShellEnvironmentPolicy(ignore_default_excludes=True), {"GITHUB_TOKEN", "PUSH", "PLAIN"}),
        (ShellEnvironmentPolicy(exclude=("pla[!x]n",)), set()),
    ],
)
async def test_the_environment_policy_decides_what_a_profile_brings(
    session: Session, rules: ShellEnvironmentPolicy, names: set[str]
) -> None:
    (session.cwd / ".bash_profile").write_text(SECRETS)
    session.processes = ProcessManager(WithheldEnv(rules, frozenset({"REMOTE"})))
    for _ in range(2):
        shown = output_of(await session.exec("command env | cut -d= -f1", login=True)).split()
        assert {"GITHUB_TOKEN", "PUSH", "PLAIN", "REMOTE"}.intersection(shown) == names
