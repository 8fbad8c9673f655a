"""`codex-py` as a real process: start it, feed it, signal it, wait for what it prints, collect what is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal, Self, TypeAlias

from tests.support import no_namespaces
from tests.support.home import BIN, Place
from tests.support.warm import WarmProcess, can_play, play

PACKAGE: Final = str(Path(__file__).parents[2] / "codex_py")
COMMAND: Final = str(BIN / "codex-py")
DRIVERS: Final = Path(__file__).with_name("sdk")
TIMEOUT: Final = 60.0

Stdin: TypeAlias = bytes | Literal["open"] | IO[bytes] | None


@dataclass(frozen=True)
class Finished:
    """How a process ended. A negative status is the signal that killed it."""

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        return self.stdout.decode()

    @property
    def err(self) -> str:
        return self.stderr.decode()

    @property
    def events(self) -> list[dict[str, Any]]:
        """Every line of stdout as JSON; each line must be one object and nothing else."""
        *lines, rest = self.stdout.split(b"\n")
        assert rest == b"", "the last line is torn"
        events = [json.loads(line) for line in lines]
        assert all(isinstance(event, dict) for event in events)
        return events

    @property
    def has_traceback(self) -> bool:
        """Whether an exception of ours was shown; a traceback of a command's is only quoted."""
        return any(f'File "{PACKAGE}' in text for text in (self.out, self.err))


class Running:
    """A started process in a group of its own. Leaving the block kills what is left of it."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdin: Stdin = None,
        stdout: int = subprocess.PIPE,
    ) -> None:
        """`stdin`: bytes to send before EOF; None for /dev/null; "open" for a pipe that stays open; or a file.

        A `stdout` of the caller's is not collected.
        """
        source = subprocess.PIPE if isinstance(stdin, bytes | str) else stdin or subprocess.DEVNULL
        self.popen: subprocess.Popen[bytes] | WarmProcess
        played = _played(argv)
        if played and can_play(env):
            self.popen = play(played, source, stdout, env=env, cwd=cwd)
        else:
            self.popen = subprocess.Popen(
                argv,
                stdin=source,
                stdout=stdout,
                stderr=subprocess.PIPE,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        self._condition = threading.Condition()
        self._taken: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self._readers = [
            threading.Thread(target=self._collect, args=(name, pipe), daemon=True)
            for name, pipe in (("stdout", self.popen.stdout), ("stderr", self.popen.stderr))
            if pipe is not None
        ]
        self._open = len(self._readers)
        for reader in self._readers:
            reader.start()
        if isinstance(stdin, bytes):
            self._feed(stdin)

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def stdout(self) -> bytes:
        with self._condition:
            return bytes(self._taken["stdout"])

    def stdout_from(self, place: int) -> bytes:
        """What was printed behind so many bytes."""
        with self._condition:
            return bytes(self._taken["stdout"][place:])

    @property
    def stderr(self) -> bytes:
        with self._condition:
            return bytes(self._taken["stderr"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()
        for reader in self._readers:
            reader.join(TIMEOUT)
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if pipe is not None:
                pipe.close()

    def send_signal(self, number: signal.Signals) -> None:
        """To the process alone, as a supervisor sends it."""
        self.popen.send_signal(number)

    def close_stdin(self) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.close()

    def wait_until(self, condition: Callable[[Self], bool], *, timeout: float = TIMEOUT) -> None:
        """Wait until the condition holds; it is asked again whenever the process has printed something."""
        with self._condition:
            self._condition.wait_for(lambda: condition(self) or self._open == 0, timeout)
            held = condition(self)
        assert held, f"not within {timeout} s; stdout: {self.stdout!r}, stderr: {self.stderr!r}"

    def wait(self, *, timeout: float = TIMEOUT) -> Finished:
        """Wait for the end; fail, with what was printed, when it does not come."""
        try:
            status = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()
            raise AssertionError(
                f"still running after {timeout} s; stdout: {self.stdout!r}, stderr: {self.stderr!r}"
            ) from None
        for reader in self._readers:
            reader.join(TIMEOUT)
            assert not reader.is_alive(), "something the process left behind holds its output open"
        return Finished(status, self.stdout, self.stderr)

    def _feed(self, content: bytes) -> None:
        pipe = self.popen.stdin
        assert pipe is not None
        with suppress(BrokenPipeError):  # it may end without reading
            pipe.write(content)
            pipe.close()

    def _collect(self, name: str, pipe: IO[bytes]) -> None:
        while chunk := os.read(pipe.fileno(), 65536):
            with self._condition:
                self._taken[name] += chunk
                self._condition.notify_all()
        with self._condition:
            self._open -= 1
            self._condition.notify_all()


def _played(argv: Sequence[str]) -> Sequence[str]:
    """What a warm start is told; nothing where there is none."""
    if argv[0] == COMMAND:
        return argv
    if argv[:2] == [sys.executable, no_namespaces.__file__] and COMMAND in argv[2:4]:
        return argv[1:]
    return argv[1:] if argv[0] == sys.executable and Path(argv[-1]).parent == DRIVERS else ()


def start(
    place: Place,
    *arguments: str | Path,
    stdin: Stdin = None,
    stdout: int = subprocess.PIPE,
    cwd: Path | None = None,
) -> Running:
    """Start `codex-py` in the place's repository."""
    argv = [COMMAND, *map(str, arguments)]
    return Running(argv, env=place.env, cwd=cwd or place.repo, stdin=stdin, stdout=stdout)


def run(
    place: Place,
    *arguments: str | Path,
    stdin: bytes | IO[bytes] | None = None,
    cwd: Path | None = None,
    timeout: float = TIMEOUT,
) -> Finished:
    """Run `codex-py` to its end. No traceback may ever be seen, whatever the test is about."""
    with start(place, *arguments, stdin=stdin, cwd=cwd) as running:
        finished = running.wait(timeout=timeout)
    assert not finished.has_traceback, finished.err
    return finished


def is_running(pid: int) -> bool:
    """Whether it is there, and more than an entry that nobody has collected."""
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


def until(attempt: Callable[[], Any]) -> Any:
    """The first result of an attempt that is something."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        try:
            if (found := attempt()) is not None:
                return found
        except OSError:
            pass
        time.sleep(0.01)
    raise AssertionError("it did not happen")
