"""A pseudo-terminal of 24 rows by 80 columns for a command that wants one.

The command gets its own session with the terminal as controlling terminal, so that Ctrl-C reaches it and nothing else.
That is done by a small interpreter in front of the command, inside the sandbox if there is one: a terminal can only be
acquired by the session leader itself, and forking this process to do it would cost more than the extra start.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import termios
from collections.abc import Sequence
from typing import Final

ROWS: Final = 24
COLUMNS: Final = 80

_STAGE: Final = """\
import fcntl, os, signal, sys, termios
if os.getsid(0) != os.getpid():
    os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    os.write(2, f"{sys.argv[1]}: {error.strerror}\\n".encode())
    os._exit(127)
"""


def on_terminal(argv: Sequence[str]) -> tuple[str, ...]:
    """`argv` started as the leader of a session that owns the terminal on its standard input."""
    return (sys.executable, "-I", "-S", "-c", _STAGE, *argv)


def set_size(terminal: int, rows: int, columns: int) -> None:
    """Make a terminal as large as this; whoever runs on it is told by SIGWINCH."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def open_terminal() -> tuple[int, int]:
    """A new terminal: the end this program reads and writes (not blocking), and the command's end."""
    parent_end, child_end = os.openpty()
    try:
        set_size(child_end, ROWS, COLUMNS)
        os.set_blocking(parent_end, False)
    except OSError:
        os.close(parent_end)
        os.close(child_end)
        raise
    return parent_end, child_end
