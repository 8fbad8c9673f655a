"""Running the command of a hook."""

from __future__ import annotations

import asyncio
import os
import select
import sys
from pathlib import Path

import pytest

from codex_py.hooks.command import MAX_OUTPUT, HookResult, run_to_end
from codex_py.protocol.command import PreparedCommand

ENV = {"PATH": "/usr/bin:/bin"}


def shell(script: str, directory: Path) -> PreparedCommand:
    return PreparedCommand(("/bin/sh", "-c", script), directory, ENV)


async def test_a_command_reads_all_of_its_input_and_says_how_it_ended(tmp_path: Path) -> None:
    value = b"x" * 3_000_000
    ran = await run_to_end(shell("wc -c; echo no >&2; exit 2", tmp_path), value, seconds=60)
    assert (ran.exit_code, ran.stdout.strip(), ran.stderr, ran.error) == (2, b"3000000", b"no\n", "")


async def test_a_command_need_not_read_its_input(tmp_path: Path) -> None:
    ran = await run_to_end(shell("exec <&-; echo done", tmp_path), b"x" * 3_000_000, seconds=60)
    assert ran == HookResult(0, b"done\n")


async def test_a_death_by_signal_has_a_code(tmp_path: Path) -> None:
    assert (await run_to_end(shell("kill -9 $$", tmp_path), b"", seconds=60)).exit_code == 137


@pytest.mark.parametrize("script", ["yes", "yes >&2"])
async def test_a_flood_ends_the_command(tmp_path: Path, script: str) -> None:
    ran = await run_to_end(shell(script, tmp_path), b"", seconds=600)
    assert ran.exit_code is None
    assert ran.error == "printed more than 1 MiB and was killed"
    assert len(ran.stdout) + len(ran.stderr) == MAX_OUTPUT


async def test_what_it_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    # It would hold the pipes open for five minutes.
    ran = await run_to_end(shell("sleep 300 & echo $! > pid; echo done", tmp_path), b"", seconds=600)
    assert ran == HookResult(0, b"done\n")
    pid = (tmp_path / "pid").read_text().strip()
    await run_to_end(shell(f"kill {pid}", tmp_path), b"", seconds=60)


async def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    missing = await run_to_end(PreparedCommand(("/does/not/exist",), tmp_path, ENV), b"", seconds=60)
    assert missing == HookResult(None, error="cannot be started: no such file or directory")
    nowhere = await run_to_end(shell("true", tmp_path / "gone"), b"", seconds=60)
    assert nowhere.error == f"cannot be started: the directory `{tmp_path / 'gone'}` is gone"


async def test_a_command_that_is_cancelled_is_gone_with_what_it_started(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    script = (
        "import os, subprocess, time\n"
        "left = subprocess.Popen(['sleep', '300'], start_new_session=True)\n"
        "open('pipe', 'w').write(f'{os.getpid()} {left.pid}')\n"
        "time.sleep(300)\n"
    )
    start = PreparedCommand((sys.executable, "-c", script), tmp_path, ENV)
    running = asyncio.create_task(run_to_end(start, b"", seconds=600))
    watched = [os.pidfd_open(int(pid)) for pid in (await asyncio.to_thread(pipe.read_text)).split()]
    assert len(watched) == 2
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    for fd in watched:
        assert await asyncio.to_thread(select.select, [fd], [], [], 60) == ([fd], [], [])
        os.close(fd)
