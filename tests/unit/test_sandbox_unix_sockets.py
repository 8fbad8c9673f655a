"""Unix sockets: closed with the network on as well, until a setting opens them."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from codex_py.protocol.policy import NetworkAccess, WorkspaceWrite
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.linux import BACKENDS, BackendName
from codex_py.sandbox.wrapped import Limits
from tests.unit.command_builders import Session, output_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")
every_backend = pytest.mark.parametrize("backend", BACKENDS)
every_network = pytest.mark.parametrize("network", [False, "loopback", True])
PYTHON = f"{sys.executable} -I -S -c"
CONNECT = (
    "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1].replace('@', chr(0))); print('in')"
)


def policy(network: NetworkAccess) -> WorkspaceWrite:
    return WorkspaceWrite(network_access=network, exclude_slash_tmp=True, exclude_tmpdir_env_var=True)


@pytest.fixture
def addresses(tmp_path: Path) -> Generator[list[str], None, None]:
    """A listening socket file and an abstract socket, the latter marked by an `@`."""
    name = f"codex-test-{os.getpid()}-{tmp_path.name}"
    with socket.socket(socket.AF_UNIX) as file, socket.socket(socket.AF_UNIX) as abstract:
        file.bind(f"{tmp_path}/s")
        abstract.bind(f"\0{name}")
        for listener in (file, abstract):
            listener.listen()
        yield [f"{tmp_path}/s", f"@{name}"]


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    (tmp_path / "repo").mkdir()
    made = Session(tmp_path / "repo", policy(True))
    yield made
    await made.processes.kill_all()


def hold(session: Session, backend: BackendName, limits: Limits | None = None) -> None:
    session.sandbox = Sandbox({"PATH": os.environ["PATH"]}, limits=limits or Limits(), backends=(backend,))


async def _out(session: Session, cmd: str) -> str:
    return output_of(await session.exec(f"{{ {cmd}; }} 2>&1")).strip()


@every_network
@every_backend
async def test_no_unix_socket_is_reached_without_the_setting(
    session: Session, addresses: list[str], backend: BackendName, network: NetworkAccess
) -> None:
    hold(session, backend)
    session.policy = policy(network)
    for address in addresses:
        assert "Operation not permitted" in await _out(session, f'{PYTHON} "{CONNECT}" {address}')


@every_network
@every_backend
async def test_the_setting_opens_socket_files_whatever_the_network(
    session: Session, addresses: list[str], backend: BackendName, network: NetworkAccess
) -> None:
    hold(session, backend, Limits(unix_sockets=True))
    session.policy = policy(network)
    assert await _out(session, f'{PYTHON} "{CONNECT}" {addresses[0]}') == "in"


@every_backend
async def test_with_the_network_on_names_and_socket_pairs_and_event_loops_work(
    session: Session, backend: BackendName
) -> None:
    hold(session, backend)
    script = (
        "import asyncio, socket\n"
        "a, b = socket.socketpair(); a.sendall(b'x'); print(b.recv(1))\n"
        "print(socket.getaddrinfo('localhost', 80, socket.AF_INET)[0][4])\n"
        "asyncio.run(asyncio.sleep(0)); print('slept')\n"
    )
    (session.cwd / "check.py").write_text(script)
    assert await _out(session, f"{sys.executable} check.py") == "b'x'\n('127.0.0.1', 80)\nslept"


@every_network
@every_backend
async def test_a_list_of_sockets_opens_none_where_it_cannot_be_held(
    session: Session, addresses: list[str], backend: BackendName, network: NetworkAccess
) -> None:
    hold(session, backend, Limits(unix_sockets=(Path(addresses[0]),)))
    session.policy = policy(network)
    for address in addresses:
        assert "Operation not permitted" in await _out(session, f'{PYTHON} "{CONNECT}" {address}')
