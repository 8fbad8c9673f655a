"""`shell` and `shell_command`: the older names some models call, with their own layout."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import pytest

from codex_py.errors import ToolError
from codex_py.protocol.events import CommandFinished, CommandStarted, PatchFinished
from codex_py.protocol.items import ToolCall
from codex_py.protocol.policy import ReadOnly
from codex_py.tools.exec_command import Shell, ShellCommandTool
from tests.unit.command_builders import Session, is_alive

PATCH = "*** Begin Patch\n*** Add File: a.txt\n+it's new\n*** End Patch"
_WALL_TIME = re.compile(r"^Wall time: \d+\.\d seconds$", re.MULTILINE)


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    made = Session(tmp_path)
    yield made
    await made.processes.kill_all()


async def run(session: Session, tool: ShellCommandTool, arguments: Mapping[str, object] | str) -> str:
    """What the model reads; the wall time, which changes, is blotted out."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    try:
        output = await tool.run(ToolCall("c", "shell", raw), session.context("c"))
        session.events += [] if output.ended is None else [output.ended]
        text = output.text
    except ToolError as error:
        return f"error: {error}"
    return _WALL_TIME.sub("Wall time: S", text, count=1)


async def shell(session: Session, *argv: str, **arguments: object) -> str:
    return await run(session, Shell(), {"command": argv, **arguments})


async def command(session: Session, line: str, **arguments: object) -> str:
    return await run(session, ShellCommandTool(), {"command": line, "login": False, **arguments})


def answer(output: str, exit_code: int = 0) -> str:
    return f"Exit code: {exit_code}\nWall time: S\nOutput:\n{output}"


async def test_the_answer_has_the_older_layout(session: Session) -> None:
    assert await command(session, "echo out; echo err >&2; exit 3") == answer("out\nerr\n", 3)
    assert await shell(session, "bash", "-c", "echo hi") == answer("hi\n")


async def test_arguments_reach_the_program_as_they_are(session: Session) -> None:
    words = ["a b", "$HOME", "it's", '"', "*", "", "new\nline", "`x`", "\\"]
    assert await shell(session, "printf", "<%s>", *words) == answer("".join(f"<{word}>" for word in words))


async def test_a_shell_with_a_script_is_that_shell(session: Session) -> None:
    await shell(session, "sh", "-c", "true")
    await shell(session, "/bin/bash", "-lc", "true")
    await run(session, Shell(allow_login_shell=False), {"command": ["bash", "-lc", "true"]})
    started = [event.command for event in session.events if isinstance(event, CommandStarted)]
    assert started == ["sh -c true", "/bin/bash -lc true", "bash -c true"]


async def test_a_program_that_is_not_there_is_127(session: Session) -> None:
    assert (await shell(session, "no-such-program")).startswith("Exit code: 127\n")


@pytest.mark.parametrize("key", ["timeout_ms", "timeout"])
async def test_what_takes_too_long_is_killed_with_all_it_started(session: Session, key: str) -> None:
    said = await command(session, "sleep 600 & echo $!; wait", **{key: 2000})
    pid = int(said.splitlines()[-1])
    assert said == answer(f"command timed out after 2000 milliseconds\n{pid}\n", 124)
    assert not is_alive(pid)
    [finished] = [event for event in session.events if isinstance(event, CommandFinished)]
    assert (finished.exit_code, finished.output, finished.status) == (124, f"{pid}\n", "failed")


@pytest.mark.parametrize("limit", [0, -5, -1e9])
async def test_a_limit_of_nothing_is_over_at_once(session: Session, limit: float) -> None:
    assert (await command(session, "sleep 600", timeout_ms=limit)).startswith("Exit code: 124\n")


async def test_a_limit_beyond_all_clocks_is_no_trouble(session: Session) -> None:
    assert await command(session, "echo hi", timeout_ms=10**30) == answer("hi\n")


async def test_long_output_loses_its_middle_and_counts_its_lines(session: Session) -> None:
    session.output_tokens = 10
    said = await command(session, "seq 1000")
    assert said.startswith("Exit code: 0\nWall time: S\nTotal output lines: 1000\nOutput:\n1\n2\n")
    assert "tokens truncated…" in said
    assert said.endswith("\n1000\n")


@pytest.mark.parametrize(
    "argv",
    [["apply_patch", PATCH], ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]],
)
async def test_a_patch_is_applied_and_not_run(session: Session, argv: list[str]) -> None:
    (session.cwd / "sub").mkdir()
    said = await shell(session, *argv, workdir="sub")
    assert said == answer("Success. Updated the following files:\nA a.txt\n")
    assert (session.cwd / "sub/a.txt").read_text() == "it's new\n"
    assert [type(event) for event in session.events][-1] is PatchFinished


async def test_a_patch_in_a_command_line_is_applied_too(session: Session) -> None:
    said = await command(session, f"apply_patch <<'EOF'\n{PATCH}\nEOF")
    assert said == answer("Success. Updated the following files:\nA a.txt\n")
    assert "patch detected without explicit call" in await command(session, PATCH)
    assert "patch detected without explicit call" in await shell(session, PATCH)


async def test_the_sandbox_holds_them_as_well(session: Session) -> None:
    session.policy = ReadOnly()
    assert not (await command(session, "echo x > a.txt")).startswith("Exit code: 0\n")
    assert not (await shell(session, "touch", "a.txt")).startswith("Exit code: 0\n")
    assert not (session.cwd / "a.txt").exists()
