"""Makes every attempt from inside a sandbox, each in a process of its own, and prints how each ended."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import sys
from typing import Final

from tests.support.escapes import files, system
from tests.support.escapes.fixture import Attempt, Fixture, Refused

ATTEMPTS: Final = (*files.ATTEMPTS, *system.ATTEMPTS)
_SECONDS: Final = 10.0


def main(arguments: list[str]) -> None:
    """`FIXTURE [NAME…]`, the first as a JSON array, and of the attempts all when none is named. Prints a line, and when
    it is answered by one a JSON object: for each name how it was refused, null when it was not. In between the world
    outside may change."""
    fixture = Fixture(*json.loads(arguments[0]))
    names = arguments[1:]
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps({name: _ending(attempt, fixture) for name, attempt in ATTEMPTS if not names or name in names}))


def _ending(attempt: Attempt, fixture: Fixture) -> str | None:
    parent_end, child_end = os.pipe()
    child = os.fork()
    if not child:
        os.close(parent_end)
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.write(child_end, (_refusal(attempt, fixture) or "").encode())
        os._exit(0)
    os.close(child_end)
    in_time, _, _ = select.select([parent_end], [], [], _SECONDS)
    message = os.read(parent_end, 4096).decode() if in_time else ""
    os.close(parent_end)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not in_time:
        return "no answer"
    killed = os.waitstatus_to_exitcode(status)
    return signal.Signals(-killed).name if killed < 0 else message or None


def _refusal(attempt: Attempt, fixture: Fixture) -> str | None:
    try:
        attempt(fixture)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    except Refused as refused:
        return str(refused)
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
