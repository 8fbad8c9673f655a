"""Makes every attempt from inside a sandbox, each in a process of its own, and prints how each ended."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import sys
from typing import Final

from codex_py.sandbox.attempts import files, system
from codex_py.sandbox.attempts.arena import Arena, Attempt, Refused

ATTEMPTS: Final = (*files.ATTEMPTS, *system.ATTEMPTS)
_SECONDS: Final = 10.0


def main(arguments: list[str]) -> None:
    """`ARENA [NAME…]`, the arena as a JSON array, and of the attempts all when none is named. Prints a line, and when
    it is answered by one a JSON object: for each name how it was refused, null when it was not. In between the world
    outside may change."""
    arena = Arena(*json.loads(arguments[0]))
    wanted = arguments[1:]
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps({name: _ending(attempt, arena) for name, attempt in ATTEMPTS if not wanted or name in wanted}))


def _ending(attempt: Attempt, arena: Arena) -> str | None:
    theirs, ours = os.pipe()
    child = os.fork()
    if not child:
        os.close(theirs)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.write(ours, (_refusal(attempt, arena) or "").encode())
        os._exit(0)
    os.close(ours)
    in_time, _, _ = select.select([theirs], [], [], _SECONDS)
    said = os.read(theirs, 4096).decode() if in_time else ""
    os.close(theirs)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not in_time:
        return "no answer"
    killed = os.waitstatus_to_exitcode(status)
    return signal.Signals(-killed).name if killed < 0 else said or None


def _refusal(attempt: Attempt, arena: Arena) -> str | None:
    try:
        attempt(arena)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    except Refused as refused:
        return str(refused)
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
