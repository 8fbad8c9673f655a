"""The program behind `warm.py`: loads packages once, then plays command lines in copies of itself.

It is started with a listening socket, the folder of the `codex-py` command, and the packages. A connection brings the
descriptors of a request and of three standard files; it gets the process's number when that runs, and the status when
it has ended. It ends when its own input does.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import io
import json
import os
import pkgutil
import runpy
import select
import selectors
import signal
import socket
import sys
import tempfile
import termios
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from multiprocessing import util
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

# Both act as soon as they are loaded, which is for each process to do: they prepare for signals, and for its end.
_ENTRY: Final = "codex_py.cli.entry"
_PARENT_OF_TASKS: Final = "codex_py.cli.preloaded"
# Put on the process before its command line is played.
_FILTER: Final = "/no_namespaces.py"
# Loaded by many command lines, but only when they come to it.
_LATER: Final = (
    *("yaml", "tomlkit", "codex_py.text.compression", "tree_sitter_bash", "typer.rich_utils", "jsonschema"),
    *("anyio._backends._asyncio", "httpcore", "httpcore2", "requests", "genai_prices.data_snapshot"),
)
# Command lines that take the ways of most others, and end without a question, a network or a thread left.
_REHEARSED: Final = (
    ("exec", "--offline", "--skip-git-repo-check", "run `true`"),
    *(("skills", "list"), ("app-server",), ("acp",), ("exce",)),
)
_COLLAPSE: Final = 25  # MADV_COLLAPSE

# What a copy does with the connection and the descriptors of its request.
Become: TypeAlias = Callable[[socket.socket, list[int]], NoReturn]


def main(listener: socket.socket, directory: str, packages: list[str]) -> None:
    # The folder of a script is the first place where its modules are looked for.
    sys.path[0] = directory
    # Not before there is something to play: in many runs there never is.
    if 0 in select.select([0, listener], [], [])[0]:
        return
    load(packages)
    serve(listener, play)


def serve(listener: socket.socket, become: Become) -> None:
    """Start copies of this process for whoever asks, until standard input ends."""
    selector = selectors.DefaultSelector()
    for source in (0, listener):
        selector.register(source, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fd == 0:
                return
            if key.fileobj is listener:
                pid, connection = begin(listener, become)
                selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, connection))
            else:
                selector.unregister(key.fd)
                os.close(key.fd)
                end(*key.data)


def begin(listener: socket.socket, become: Become) -> tuple[int, socket.socket]:
    """Start what the next connection asks for."""
    connection, _ = listener.accept()
    _, descriptors, _, _ = socket.recv_fds(connection, 1, 4)
    pid = os.fork()
    if pid == 0:
        become(connection, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    return pid, connection


def end(pid: int, connection: socket.socket) -> None:
    """Tell who asked for a process how it has ended; nobody may be left who wants to know."""
    _, status = os.waitpid(pid, 0)
    with suppress(OSError), connection:
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def load(packages: list[str]) -> None:
    """Import whatever a command line may need. A module that cannot be is left to the process that wants it."""
    # Modules stay, and looking at them again and again takes longer than to load them.
    gc.disable()
    names = list(packages)
    for package in packages:
        with suppress(ImportError):
            found = pkgutil.walk_packages(import_module(package).__path__, f"{package}.", onerror=lambda _: None)
            names += [module.name for module in found]
    for name in (*names, *_LATER):
        if name not in (_ENTRY, _PARENT_OF_TASKS):
            with suppress(Exception):
                import_module(name)
    if "codex_py" in packages:
        rehearse()
    # What the collector does not look at stays shared with the copies.
    gc.collect()
    gc.freeze()
    gc.enable()
    join_pages()


def rehearse() -> None:
    """Play some command lines in this process, so that its copies find patterns compiled and code specialised.

    The program keeps nothing from one to the next but results of functions that depend on their arguments alone.
    """
    env, cwd, streams = dict(os.environ), Path.cwd(), [os.dup(number) for number in range(3)]
    with tempfile.TemporaryDirectory(prefix="warm-") as home, Path(os.devnull).open("r+b") as nothing:
        for number in range(3):
            os.dup2(nothing.fileno(), number)
        _set_process(["codex-py"], {"HOME": home, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"}, home)
        for words in _REHEARSED:
            import_module("codex_py.cli.main").run(words)
        assert threading.active_count() == 1, threading.enumerate()
        sys.stdout.flush()
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
            os.close(descriptor)
        _set_process([], env, str(cwd))
    # The library looks once where temporary files belong, and each copy is to look for itself.
    tempfile.tempdir = None


def join_pages() -> None:
    """Put the memory into huge pages where the kernel can: a copy has thousands of pages less to take and to leave."""
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, access, _, _, inode, *name = line.split()
        if access == "rw-p" and inode == "0" and name in ([], ["[heap]"]):
            first, last = (int(address, 16) for address in span.split("-"))
            advise(first, last - first, _COLLAPSE)


def play(connection: socket.socket, descriptors: list[int]) -> NoReturn:
    """Be the process that was asked for."""
    prepare(connection, descriptors)
    try:
        if sys.argv[0].endswith(_FILTER):
            sys.argv = runpy.run_path(sys.argv[0])["forbid"](sys.argv[1:])
        if sys.argv[0].endswith(".py"):
            runpy.run_path(sys.argv[0], run_name="__main__")
            sys.stdout.flush()
            os._exit(0)
        util.spawnv_passfds = start_python
        import_module(_ENTRY).main()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def prepare(connection: socket.socket, descriptors: list[int]) -> None:
    """Have the session, files, arguments, environment and directory of the process that was asked for."""
    os.setsid()
    connection.sendall(str(os.getpid()).encode())
    letter, *files = descriptors
    os.lseek(letter, 0, os.SEEK_SET)
    with os.fdopen(letter, "rb", closefd=False) as file:
        request: dict[str, Any] = json.load(file)
    for number, descriptor in enumerate(files):
        os.dup2(descriptor, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if request["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    _set_process(request["argv"], request["env"], request["cwd"])


def start_python(_: bytes, argv: Sequence[Any], files: Sequence[int]) -> int:
    """In place of the library's start of its fork server, whose first act would be to load everything once more.

    What it starts is like a new process: no files but these, and no handlers of signals.
    """
    if pid := os.fork():
        return pid
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        # What is left of the one that started it is never looked at, and so closes no file of the same number.
        gc.freeze()
        for last_kept, next_kept in pairwise((2, *sorted(files), os.sysconf("SC_OPEN_MAX"))):
            os.closerange(last_kept + 1, next_kept)
        run_code(argv[-1])
    finally:
        os._exit(1)


def run_code(code: str) -> NoReturn:
    """Be `python -c CODE`; what was to be done at the end of the original is left to that."""
    status = 1
    at_exit: Any = atexit
    at_exit._clear()
    try:
        with suppress(SystemExit):
            exec(code, {})
        at_exit._run_exitfuncs()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _set_process(argv: list[str], env: dict[str, str], cwd: str) -> None:
    """What a new process would have, with the standard files that are open now."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.argv = list(argv)
    sys.stdin = sys.__stdin__ = _text(0, "r", "surrogateescape")
    sys.stdout = sys.__stdout__ = _text(1, "w", "surrogateescape")
    sys.stderr = sys.__stderr__ = _text(2, "w", "backslashreplace")


def _text(descriptor: int, mode: str, errors: str) -> io.TextIOWrapper:
    """A standard file as Python opens it."""
    raw = os.fdopen(descriptor, f"{mode}b", closefd=False)
    at_once = mode == "w" and (descriptor == 2 or raw.isatty())
    return io.TextIOWrapper(raw, "utf-8", errors, "\n", line_buffering=at_once)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2], sys.argv[3:])
