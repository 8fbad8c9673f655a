"""The workers of a run: copies of one process that has imported the tests, where each would import them by itself.

In a new checkout the imports are what takes longest before the first test: pytest rewrites all assertions.
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from tests.support.warm import write_client
from tests.support.warm_program import prepare, run_code, serve


@contextmanager
def warm_workers(directory: Path, root: Path, paths: Sequence[Path]) -> Generator[Path]:
    """Give the Python that starts workers with the tests below the paths imported; the directory is for sockets."""
    address = directory / "python"
    client = directory / "bin/python"
    write_client(client)
    life, held = os.pipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(address))
        listener.listen(64)
        if (pid := os.fork()) == 0:
            _serve_workers(listener, life, _files(paths), root)
    os.close(life)
    try:
        yield client
    finally:
        os.close(held)
        os.waitpid(pid, 0)


def _files(paths: Sequence[Path]) -> list[Path]:
    return [file for path in paths for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])]


def _serve_workers(listener: socket.socket, life: int, files: Sequence[Path], root: Path) -> NoReturn:
    """Be the process that workers are copies of, for as long as the other end of `life` is open."""
    try:
        os.setsid()
        os.dup2(life, 0)
        os.dup2(listener.detach(), 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        # The objects of the original are there to the end, as the modules are.
        gc.disable()
        for file in files:
            # Each worker sees for itself why one cannot be imported.
            with suppress(Exception):
                importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))
        gc.freeze()
        gc.enable()
        serve(socket.socket(fileno=3), _work)
    finally:
        os._exit(0)


def _work(connection: socket.socket, descriptors: list[int]) -> NoReturn:
    """Be a worker: what the library has its Python run."""
    prepare(connection, descriptors)
    run_code(sys.argv[-1])
