"""What `exec` takes from standard input."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from typing import Final

from codex_py.errors import UsageError, UserError

# How long a prompt on the command line waits for the first byte of a pipe that may never speak.
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
    if not argument.strip():
        raise UsageError("the prompt is empty", hint='write one: `codex-py exec "fix the failing test"`')
    extra = _read_all() if _has_something() else ""
    if not extra:
        return argument
    end = "" if extra.endswith("\n") else "\n"
    return f"{argument}\n\n<stdin>\n{extra}{end}</stdin>"


def _has_something() -> bool:
    """Whether reading stdin can give anything without waiting for somebody who may never write."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    if stat.S_ISREG(mode):
        return True
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        # A terminal belongs to the person; /dev/null and other devices have nothing to say.
        return False
    deadline = time.monotonic() + _FIRST_BYTE_SECONDS
    ready, _, _ = select.select([0], [], [], 0)
    while not ready and (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([0], [], [], left)
    if not ready:
        print("note: standard input is open but silent; going on without it", file=sys.stderr)
    return bool(ready)


def _read_some() -> bytes:
    """What there is, or nothing at the end.

    Not a blocking read: a signal that arrives just before one is noticed only when somebody writes again.
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
        raise UserError(f"cannot read standard input: {error.strerror}") from error
    return _text_of(b"".join(pieces))


def _text_of(raw: bytes) -> str:
    """Text of a pipe; bytes that are not UTF-8 are replaced, which is said once. Raises `UsageError` for no text."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UsageError("standard input is UTF-16", hint="pipe it through `iconv -f UTF-16 -t UTF-8`")
    if raw.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8")):
        raise UsageError("standard input is a picture, not text", hint="attach it with `-i FILE`")
    # What `git` and `grep` go by.
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
