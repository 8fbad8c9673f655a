"""The table of live commands, and what is left when it is emptied."""

from __future__ import annotations

import asyncio
import os
import select
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from codex_py.errors import ToolError
from codex_py.process.manager import MAX_LIVE, ProcessManager
from codex_py.process.output import Captured
from codex_py.process.session import RunningCommand
from codex_py.process.spawn import CommandSpec
from tests.unit.command_builders import is_alive

SLEEP = ("/bin/sleep", "1000")


@pytest.fixture
async def manager() -> AsyncGenerator[ProcessManager, None]:
    made = ProcessManager()
    yield made
    await made.kill_all()


def _size(captured: Captured) -> int:
    """How many bytes were printed."""
    return len(captured.head) + captured.omitted + len(captured.tail)


def _spec(tmp_path: Path, *argv: str) -> CommandSpec:
    return CommandSpec(argv, tmp_path, {"PATH": os.environ["PATH"]})


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _is_stopped(pid: str) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


async def _printed(session: RunningCommand, text: str) -> str:
    """What the command has printed once `text` is part of it."""
    while text not in (printed := session.transcript()):
        await session.wait(0.005)
    return printed


async def test_a_command_that_closes_its_terminal_first_ends_as_it_wants(
    manager: ProcessManager, tmp_path: Path
) -> None:
    argv = ("/bin/sh", "-c", "echo hi; exec 0<&- 1>&- 2>&-; sleep 0.2; exit 5")
    before = _open_descriptors()
    session = await manager.start(CommandSpec(argv, tmp_path, {"PATH": os.environ["PATH"]}, tty=True))
    assert await session.wait(60)
    assert (session.exit_code, session.take().text()) == (5, "hi\r\n")
    await manager.kill_all()
    assert _open_descriptors() == before


async def test_a_command_runs_to_its_end(manager: ProcessManager, tmp_path: Path) -> None:
    session = await manager.start(_spec(tmp_path, "/bin/sh", "-c", "echo hi; exit 7"))
    assert manager.get(session.id) is session
    assert await session.wait(60)
    assert (session.exit_code, session.take().text(), session.transcript()) == (7, "hi\n", "hi\n")
    manager.forget(session)
    with pytest.raises(ToolError):
        manager.get(session.id)


async def test_waiting_ends_with_the_time_given(manager: ProcessManager, tmp_path: Path) -> None:
    session = await manager.start(_spec(tmp_path, *SLEEP))
    assert not await session.wait(0.01)
    assert session.exit_code is None


async def test_a_program_that_is_not_there_is_a_tool_error(manager: ProcessManager, tmp_path: Path) -> None:
    called: list[str] = []
    reader, writer = os.pipe()
    spec = CommandSpec(("/no/such/program",), tmp_path, {}, (writer,), cleanup=lambda: called.append("cleanup"))
    with pytest.raises(ToolError, match="cannot start `/no/such/program`: no such file or directory"):
        await manager.start(spec)
    assert (os.read(reader, 1), called) == (b"", ["cleanup"])
    os.close(reader)


async def test_descriptors_are_closed_at_the_start_and_cleanup_comes_after_the_end(
    manager: ProcessManager, tmp_path: Path
) -> None:
    called: list[str] = []
    reader, writer = os.pipe()
    spec = CommandSpec(("/bin/sh", "-c", "exit 0"), tmp_path, {}, (writer,), cleanup=lambda: called.append("cleanup"))
    session = await manager.start(spec)
    assert called == []
    await session.wait(60)
    assert os.read(reader, 1) == b""
    os.close(reader)
    manager.forget(session)
    await manager.kill_all()
    assert called == ["cleanup"]


async def test_no_descriptor_of_ours_reaches_a_command(manager: ProcessManager, tmp_path: Path) -> None:
    inheritable = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(inheritable, True)
    try:
        session = await manager.start(_spec(tmp_path, "/bin/sh", "-c", "exec ls /proc/self/fd"))
    finally:
        os.close(inheritable)
    await session.wait(60)
    assert session.take().text().split() == ["0", "1", "2", "3"]  # 3 is the directory being listed


async def test_no_descriptor_is_left_open_here(manager: ProcessManager, tmp_path: Path) -> None:
    before = _open_descriptors()
    for tty in (False, True):
        session = await manager.start(CommandSpec(("/bin/true",), tmp_path, {}, tty=tty))
        await session.wait(60)
        manager.forget(session)
    with pytest.raises(ToolError):
        await manager.start(_spec(tmp_path, "/no/such/program"))
    running = await manager.start(_spec(tmp_path, *SLEEP))
    await manager.close(running)
    await manager.kill_all()
    assert _open_descriptors() == before


async def test_at_most_64_are_live_and_the_one_unused_for_longest_gives_way(
    manager: ProcessManager, tmp_path: Path
) -> None:
    sessions = [await manager.start(_spec(tmp_path, *SLEEP)) for _ in range(MAX_LIVE)]
    await sessions[0].wait(0)  # used again
    await manager.start(_spec(tmp_path, *SLEEP))
    with pytest.raises(ToolError):
        manager.get(sessions[1].id)
    assert sessions[1].exit_code == 137
    assert manager.get(sessions[0].id) is sessions[0]
    await asyncio.gather(*(manager.start(_spec(tmp_path, *SLEEP)) for _ in range(3)))
    assert len(manager.live()) == MAX_LIVE


async def test_one_that_has_ended_gives_way_before_one_that_runs(manager: ProcessManager, tmp_path: Path) -> None:
    sessions = [await manager.start(_spec(tmp_path, *SLEEP)) for _ in range(20)]
    ended = await manager.start(_spec(tmp_path, "/bin/true"))
    await ended.wait(60)
    for _ in range(MAX_LIVE - 21):
        await manager.start(_spec(tmp_path, *SLEEP))
    await manager.start(_spec(tmp_path, *SLEEP))
    with pytest.raises(ToolError):
        manager.get(ended.id)
    assert all(manager.get(session.id) is session for session in sessions)


async def test_nothing_outlives_the_session(manager: ProcessManager, tmp_path: Path) -> None:
    cleared = "env -i setsid sh -c 'echo $$; echo; exec sleep 1000'"
    script = f"sleep 1000 & echo $!; (setsid sleep 1000 >/dev/null & echo $!); echo $$; {cleared} & exec sleep 1000"
    session = await manager.start(_spec(tmp_path, "/bin/sh", "-c", script))
    pids = [int(pid) for pid in (await _printed(session, "\n\n")).split()]
    assert len(pids) == 4
    assert all(is_alive(pid) for pid in pids)
    await manager.kill_all()
    assert not any(is_alive(pid) for pid in pids)


async def test_daemons_of_a_command_that_has_ended_go_too(manager: ProcessManager, tmp_path: Path) -> None:
    script = "(setsid sh -c 'exec sleep 1000' >/dev/null 2>&1 & echo $!)"
    session = await manager.start(_spec(tmp_path, "/bin/sh", "-c", script))
    await session.wait(60)
    daemon = int(session.take().text())
    manager.forget(session)
    assert is_alive(daemon)
    await manager.kill_all()
    assert not is_alive(daemon)


async def test_a_killed_program_leaves_none_of_its_commands(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, pathlib\n"
        "from codex_py.process.manager import ProcessManager\n"
        "from codex_py.process.spawn import CommandSpec\n"
        "async def main():\n"
        "    line = 'setsid sleep 1000 & echo $! $$; exec sleep 1000'\n"
        "    spec = CommandSpec(('/bin/sh', '-c', line), pathlib.Path('/'), {'PATH': os.environ['PATH']})\n"
        "    session = await ProcessManager().start(spec)\n"
        "    while len(session.transcript().split()) < 2: await session.wait(0.005)\n"
        "    print(session.transcript(), flush=True)\n"
        "    await asyncio.sleep(1000)\n"
        "asyncio.run(main())\n"
    )
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert program.stdout is not None
    pids = [int(pid) for pid in (await program.stdout.readline()).split()]
    watched = [os.pidfd_open(pid) for pid in pids]
    program.kill()
    await program.wait()
    for fd in watched:
        assert await asyncio.to_thread(select.select, [fd], [], [], 60) == ([fd], [], [])
        os.close(fd)


async def test_a_background_writer_does_not_die_of_a_closed_pipe(manager: ProcessManager, tmp_path: Path) -> None:
    script = "(read -r go < go; echo one; echo two; echo done > done) & exit 0"
    os.mkfifo(tmp_path / "go")
    os.mkfifo(tmp_path / "done")
    session = await manager.start(_spec(tmp_path, "/bin/bash", "-c", script))
    await session.wait(60)
    manager.forget(session)
    await asyncio.to_thread((tmp_path / "go").write_text, "\n")
    assert await asyncio.to_thread((tmp_path / "done").read_text) == "done\n"


async def test_a_flood_can_be_closed_in_its_midst(manager: ProcessManager, tmp_path: Path) -> None:
    # The first command starts what watches over all of them.
    await manager.close(await manager.start(_spec(tmp_path, "true")))
    before = _open_descriptors()
    session = await manager.start(_spec(tmp_path, "yes"))
    while session.transcript().count("omitted") == 0:
        await session.wait(0.005)
    await manager.close(session)
    assert session.exit_code == 137
    await asyncio.get_running_loop().shutdown_default_executor()
    assert _open_descriptors() == before


async def test_a_flood_ends_with_its_command_though_another_process_keeps_its_output_open(
    manager: ProcessManager, tmp_path: Path
) -> None:
    session = await manager.start(_spec(tmp_path, "/bin/bash", "-c", "yes | head -c 5000000; sleep 1000 & exit 3"))
    assert await session.wait(60)
    assert (session.exit_code, _size(session.take())) == (3, 5_000_000)


async def test_a_flood_that_becomes_a_trickle_is_heard(manager: ProcessManager, tmp_path: Path) -> None:
    for name in ("first", "second"):
        os.mkfifo(tmp_path / name)
    script = "yes | head -c 5000000; read -r go < first; echo one; read -r go < second; echo two"
    session = await manager.start(_spec(tmp_path, "/bin/bash", "-c", script))
    await _printed(session, "omitted")
    await asyncio.to_thread((tmp_path / "first").write_text, "\n")
    await _printed(session, "one\n")
    first = session.take()
    await asyncio.to_thread((tmp_path / "second").write_text, "\n")
    await session.wait(60)
    assert (_size(first), first.text()[-6:]) == (5_000_004, "y\none\n")
    assert session.take().text() == "two\n"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
async def test_a_stopped_command_can_be_interrupted(manager: ProcessManager, tmp_path: Path) -> None:
    session = await manager.start(_spec(tmp_path, "/bin/sh", "-c", "echo $$; kill -STOP $$; echo on"))
    pid = (await _printed(session, "\n")).strip()
    while not _is_stopped(pid):
        await session.wait(0.005)
    session.interrupt()
    assert await session.wait(60)
    assert (session.exit_code, session.take().text()) == (130, f"{pid}\n")


async def test_every_look_at_a_flood_has_its_beginning_and_its_end(manager: ProcessManager, tmp_path: Path) -> None:
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    script = "yes a | head -c 3000000; read x < go; printf second; yes b | head -c 3000000; printf end"
    session = await manager.start(_spec(tmp_path, "/bin/sh", "-c", script))
    total = 0
    while total < 3_000_000:
        await session.wait(0.005)
        total += _size(session.take())
    fifo.write_text("\n")
    assert await session.wait(60)
    captured = session.take()
    assert (_size(captured), len(captured.head), len(captured.tail)) == (3_000_009, 524_288, 524_288)
    assert (captured.head[:10], captured.tail[-7:]) == (b"secondb\nb\n", b"b\nb\nend")


async def test_the_end_of_many_floods_at_once_is_reported(manager: ProcessManager, tmp_path: Path) -> None:
    script = "yes | head -c 5000000; printf end; sleep 1000 &"
    sessions = [await manager.start(_spec(tmp_path, "/bin/sh", "-c", script)) for _ in range(16)]
    for session in sessions:
        assert await session.wait(60)
        captured = session.take()
        assert (_size(captured), captured.head[:4], captured.tail[-5:]) == (5_000_003, b"y\ny\n", b"y\nend")


async def test_typing_that_nobody_reads_is_bounded(manager: ProcessManager, tmp_path: Path) -> None:
    # Raw, because a terminal that edits lines drops by itself what makes a line too long.
    argv = ("/bin/sh", "-c", "stty raw -echo; echo ready; exec sleep 1000")
    session = await manager.start(CommandSpec(argv, tmp_path, {"PATH": os.environ["PATH"]}, tty=True))
    await _printed(session, "ready")
    session.write(b"x" * 1_000_000)
    with pytest.raises(ToolError, match="does not read its input"):
        session.write(b"x" * 100_000)


async def test_a_long_text_typed_into_a_terminal_arrives_whole(manager: ProcessManager, tmp_path: Path) -> None:
    argv = ("/bin/sh", "-c", "stty raw -echo; echo ready; head -c 200000 | md5sum")
    session = await manager.start(CommandSpec(argv, tmp_path, {"PATH": os.environ["PATH"]}, tty=True))
    await _printed(session, "ready")
    session.write(b"0123456789" * 20_000)
    assert await session.wait(60)
    assert session.take().text().split() == ["ready", "bcc4bfca43786497d970f7d3e2fdd455", "-"]
