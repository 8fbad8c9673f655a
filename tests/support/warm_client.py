"""`codex-py` for shells, scripts and SDKs that start it themselves: has its command line played, and ends as that does.

A run with workers puts it into a directory for `PATH` (`warm_path` of `warm.py`). It stands for a process without files
beyond the standard three, limits and a terminal of its own. Where nothing can be played it becomes the real command. It
loads as little as it can.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

_READ_BY_PYTHON: Final = ("PYTHON", "LC_", "LANG", "LD_")


def can_be_played(env: Mapping[str, str]) -> bool:
    """Whether the environment says nothing that Python reads when it starts."""
    read = {name: value for name, value in env.items() if name.startswith(_READ_BY_PYTHON)}
    return read == {"LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


def ask(
    address: str, argv: Sequence[str], files: Sequence[int], *, env: Mapping[str, str], cwd: str, terminal: bool = False
) -> tuple[socket.socket, int]:
    """Have a command line played; gives the connection that will bring its status, and the number of the process."""
    request = {"argv": list(argv), "env": dict(env), "cwd": cwd, "terminal": terminal}
    program = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with os.fdopen(os.memfd_create("request"), "wb") as letter:
        letter.write(json.dumps(request).encode())
        letter.flush()
        program.connect(address)
        socket.send_fds(program, [b"."], [letter.fileno(), *files])
        pid = program.recv(64)
    assert pid, "the program that plays the command lines has died"
    return program, int(pid)


def main() -> None:
    file = Path(__file__)
    command = str(Path(sys.executable).with_name(file.name))
    arguments = [command, *sys.argv[1:]]
    if file.name == "codex-py" and not can_be_played(os.environ):
        os.execv(command, arguments)
    try:
        address = str(file.parents[1] / file.name)
        program, pid = ask(address, arguments, (0, 1, 2), env=os.environ, cwd=str(Path.cwd()))
    except OSError:  # inside of a sandbox
        os.execv(command, arguments)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    # The other ends of pipes must see the played process close them.
    for descriptor in range(3):
        os.close(descriptor)
    status = int(program.recv(64))
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    main()
