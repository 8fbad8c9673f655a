"""Plays command lines of `codex-py` in forks of one process, each killed before the change of a file that it counts to.

Started as a script with a directory: for each line of stdin, `[arguments, number]` as JSON, it prints the status, the
output, and how many changes there were. Changes are files opened for writing in the directory, and names that are
made, moved or removed anywhere. With the number 0 a command line runs to its end.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
import tempfile
from typing import Any, Final, NoReturn

from codex_py.cli import main as cli
from codex_py.cli import skills as _skills  # noqa: F401  (loaded once, for all forks)
from codex_py.cli import skills_install as _skills_install  # noqa: F401

_CHANGES: Final = frozenset(
    f"os.{verb}" for verb in ("rename", "remove", "mkdir", "rmdir", "symlink", "link", "chmod", "truncate")
)


def main(directory: str) -> None:
    for line in sys.stdin:
        arguments, number = json.loads(line)
        with mmap.mmap(-1, 8) as count, tempfile.TemporaryFile() as out:
            pid = os.fork()
            if pid == 0:
                os.dup2(out.fileno(), 1)
                _play(arguments, directory, number, count)
            _, status = os.waitpid(pid, 0)
            out.seek(0)
            ended = [os.waitstatus_to_exitcode(status), out.read().decode(), int.from_bytes(count[:])]
        print(json.dumps(ended), flush=True)


def _play(arguments: list[str], directory: str, number: int, count: mmap.mmap) -> NoReturn:
    def look(event: str, details: tuple[Any, ...]) -> None:
        is_write = event == "open" and details[2] & (os.O_WRONLY | os.O_RDWR) and str(details[0]).startswith(directory)
        if is_write or event in _CHANGES:
            seen = int.from_bytes(count[:]) + 1
            count[:] = seen.to_bytes(8)
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)
    sys.argv = ["codex-py", *arguments]
    try:
        cli.main()
    finally:
        os._exit(99)


if __name__ == "__main__":
    main(sys.argv[1])
