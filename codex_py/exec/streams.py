"""Reads the prompt of `exec` from stdin, and writes to stdout, stderr and files whose readers may be slow."""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
import time
from pathlib import Path
from typing import Final

from codex_py.errors import UsageError, UserError
from codex_py.paths import opened_directory, real_path
from codex_py.text.files import os_reason

# How long a run with a prompt argument waits for the first byte of piped input.
_FIRST_BYTE_SECONDS: Final = 1.0
# The longest delay of an interrupt while a pipe is silent.
_SIGNAL_SECONDS: Final = 0.1
_MAX_BYTES: Final = 64 * 1024 * 1024
_LOOKED_AT: Final = 8000


def read_prompt(argument: str | None) -> str:
    """The prompt: the argument, stdin (`-` or no argument), or both, with stdin in a `<stdin>` block.

    Raises `UserError` when there is nothing to do. A pipe that stays open and silent does not hold up a prompt that was
    given as an argument.
    """
    if argument is None or argument == "-":
        if argument is None and sys.stdin.isatty():
            raise UsageError("no prompt", hint='write one: `codex-py exec "fix the failing test"`, or pipe it in')
        text = _read_all()
        if not text.strip():
            raise UsageError("no prompt on standard input", hint="pipe one in, or give it as an argument")
        return text
    argument = _argument_text(argument)
    if not argument.strip():
        raise UsageError("the prompt is empty", hint='write one: `codex-py exec "fix the failing test"`')
    return with_attachment(argument, read_piped())


def read_piped() -> str:
    """Piped input beside a prompt; empty if there is none, or the pipe stays silent."""
    return _read_all() if _has_something() else ""


def with_attachment(prompt: str, piped: str) -> str:
    """The prompt with piped input in a `<stdin>` block."""
    if not piped:
        return prompt
    end = "" if piped.endswith("\n") else "\n"
    return f"{prompt}\n\n<stdin>\n{piped}{end}</stdin>"


def _argument_text(argument: str) -> str:
    """An argument as text: its bytes are read as UTF-8, whatever the locale."""
    raw = os.fsencode(argument)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        print(f"warning: the prompt is not UTF-8 at byte {error.start}: such bytes are replaced", file=sys.stderr)
        return raw.decode(errors="replace")


def _has_something() -> bool:
    """Whether stdin has input, without waiting long for a writer that may never write."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    if stat.S_ISREG(mode):
        return True
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        # A terminal is for the user's keys; /dev/null and other devices have no input.
        return False
    deadline = time.monotonic() + _FIRST_BYTE_SECONDS
    ready, _, _ = select.select([0], [], [], 0)
    while not ready and (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([0], [], [], left)
    if not ready:
        print("note: standard input is open but silent; going on without it", file=sys.stderr)
    return bool(ready)


def _read_some() -> bytes:
    """The next input, empty at the end.

    Not a blocking read: a signal that arrives just before one would only be noticed after the next input.
    """
    while not select.select([0], [], [], _SIGNAL_SECONDS)[0]:
        pass
    return os.read(0, 1 << 20)


def _read_all() -> str:
    pieces: list[bytes] = []
    size = 0
    try:
        while piece := _read_some():
            pieces.append(piece)
            size += len(piece)
            if size > _MAX_BYTES:
                raise UserError("standard input is over 64 MiB", hint="put it in a file and name the file")
    except OSError as error:
        raise UserError(f"cannot read standard input: {os_reason(error)}") from error
    return _text_of(b"".join(pieces))


def _text_of(raw: bytes) -> str:
    """Piped bytes as text; what is not UTF-8 is replaced, with one warning. Raises `UsageError` for binary input."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UsageError("standard input is UTF-16", hint="pipe it through `iconv -f UTF-16 -t UTF-8`")
    if raw.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8")):
        raise UsageError("standard input is a picture, not text", hint="attach it with `-i FILE`")
    # The test of `git` and `grep` for binary files.
    if b"\0" in raw[:_LOOKED_AT]:
        raise UsageError("standard input is binary, not text", hint="name the file in the prompt instead")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        print(
            f"warning: standard input is not UTF-8 at byte {error.start}: such bytes are replaced; for Latin-1, pipe "
            "it through `iconv -f LATIN1 -t UTF-8`",
            file=sys.stderr,
        )
        return raw.decode(errors="replace")


# What a ready pipe takes without blocking.
_PIECE_BYTES: Final = select.PIPE_BUF
_STEP_MS: Final = 250
_LAST_SECONDS: Final = 1.0
# Names of the descriptors of this process.
_STREAMS: Final = Path("/dev/fd")


class Output:
    """Writes to descriptors. A slow reader is waited for, but after `hurry` no longer than a second."""

    def __init__(self) -> None:
        self._deadline: float | None = None
        self._abandoned: set[int] = set()

    def hurry(self) -> None:
        """Wait for slow readers only a little longer, because the program ends. Safe in a signal handler."""
        if self._deadline is None:
            self._deadline = time.monotonic() + _LAST_SECONDS

    def write(self, descriptor: int, content: bytes) -> None:
        """Write all bytes, in pieces if need be.

        Raises `OSError` when the reader is gone, and its subclass `TimeoutError` when it is no longer waited for.
        """
        ready = select.poll()
        ready.register(descriptor, select.POLLOUT)
        view = memoryview(content)
        while view:
            self._wait(descriptor, ready)
            try:
                view = view[os.write(descriptor, view[:_PIECE_BYTES]) :]
            except BlockingIOError:
                # Another process that shares the pipe has made it non-blocking.
                continue

    def write_file(self, path: Path, content: bytes) -> None:
        """Replace the content of a file of `fix_target`. Raises `OSError` for a FIFO without a reader, and for a path
        that has become a link since: a command may have made it.
        """
        if path.parent == _STREAMS:
            self.write(int(path.name), content)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with opened_directory(path.parent) as directory:
                descriptor = os.open(path.name, flags, 0o666, dir_fd=directory)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise OSError(error.errno, "its path has become a link") from error
            raise
        try:
            self.write(descriptor, content)
        finally:
            os.close(descriptor)

    def _wait(self, descriptor: int, ready: select.poll) -> None:
        # In steps: a signal does not end the wait by itself.
        while descriptor in self._abandoned or not ready.poll(_STEP_MS):
            if self._deadline is not None and time.monotonic() > self._deadline:
                self._abandoned.add(descriptor)
                raise TimeoutError("the reader does not read")


def fix_target(path: Path) -> Path:
    """The file that a path leads to now, so that a link made later has no effect; it need not exist.

    What has no path of its own, such as the pipe behind `/dev/stdout`, is opened. Raises `OSError` if that fails.
    """
    real = Path(real_path(path))
    if os.path.lexists(real) or not path.exists():
        return real
    return _STREAMS / str(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
