"""A path that a sandbox needs and that vanishes between the layout of its mounts and its start."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from codex_py.protocol.events import CommandFinished
from codex_py.protocol.policy import NetworkAccess, SandboxPolicy, WorkspaceWrite
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.linux import BackendName
from codex_py.sandbox.wrapped import C
from tests.unit.command_builders import Session, output_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")
WORKSPACE = WorkspaceWrite(exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
mounting = pytest.mark.parametrize("backend", ["bubblewrap", "namespaces"])


class DisturbedSandbox(Sandbox):
    """The real sandbox on a machine where another program acts right after each layout."""

    disturb: Callable[[], None]
    layouts = 0

    def wrap(self, command: C, *, policy: SandboxPolicy, cwd: Path, network: NetworkAccess = False) -> C:
        wrapped = super().wrap(command, policy=policy, cwd=cwd, network=network)
        self.layouts += 1
        self.disturb()
        return wrapped


def _real(path: Path) -> Path:
    return path.resolve()


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    made = Session(_real(tmp_path), WORKSPACE)
    yield made
    await made.processes.kill_all()


def disturbed(session: Session, backend: BackendName, disturb: Callable[[], None]) -> DisturbedSandbox:
    sandbox = DisturbedSandbox({"PATH": os.environ["PATH"], "HOME": "/nowhere"}, backends=(backend,))
    sandbox.disturb = disturb
    session.sandbox = sandbox
    return sandbox


@mounting
async def test_a_command_runs_although_a_protected_directory_vanishes_before_it_starts(
    session: Session, backend: BackendName
) -> None:
    directory = session.cwd / ".codex"
    directory.mkdir()
    sandbox = disturbed(session, backend, lambda: directory.rmdir() if directory.exists() else None)
    said = await session.exec("echo ran; mkdir .git/x || echo held")
    assert output_of(said).startswith("ran\n")
    assert output_of(said).endswith("held\n")
    assert sandbox.layouts == 2
    ends = [event for event in session.events if isinstance(event, CommandFinished)]
    assert [event.exit_code for event in ends] == [0]


@mounting
async def test_a_directory_that_vanishes_each_time_is_tried_three_times(session: Session, backend: BackendName) -> None:
    directory = session.cwd / "sub" / ".codex"

    def vanish() -> None:
        directory.rmdir()
        (session.cwd / "sub").rmdir()

    class Comes(DisturbedSandbox):
        def wrap(self, command: C, *, policy: SandboxPolicy, cwd: Path, network: NetworkAccess = False) -> C:
            directory.mkdir(parents=True)
            return super().wrap(command, policy=policy, cwd=cwd, network=network)

    session.sandbox = sandbox = Comes({"PATH": os.environ["PATH"], "HOME": "/nowhere"}, backends=(backend,))
    sandbox.disturb = vanish
    said = await session.exec("echo ran")
    assert "exited with code 1" in said
    assert "ran\n" not in said
    assert sandbox.layouts == 3


@mounting
async def test_a_command_that_ends_with_status_1_runs_once(session: Session, backend: BackendName) -> None:
    sandbox = disturbed(session, backend, lambda: None)
    said = await session.exec("echo ran >> log; cat log; exit 1")
    assert output_of(said) == "ran\n"
    assert sandbox.layouts == 1


@mounting
async def test_a_command_cannot_reach_what_tells_that_it_began(session: Session, backend: BackendName) -> None:
    disturbed(session, backend, lambda: None)
    said = output_of(await session.exec("for fd in /proc/self/fd/*; do readlink $fd; done"))
    assert "memfd" not in said
